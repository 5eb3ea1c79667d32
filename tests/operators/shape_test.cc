// Views, shape arithmetic, copies between strides, padding, resizing: cases that ONNX's node tests lack (other dtypes, edges, layouts,
// tiles, error texts).
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "operators/pointwise_support.h"

namespace heddle::testing {
namespace {

Tensor numbers(const Shape& shape) {
  std::vector<float> v(static_cast<size_t>(shape.element_count()));
  std::iota(v.begin(), v.end(), 0.0f);
  return tensor<float>(shape, v);
}
Tensor integers(const std::vector<int64_t>& v) {
  return tensor<int64_t>({static_cast<int64_t>(v.size())}, v);
}
template <class T>
Tensor counting(const Shape& shape) {
  std::vector<T> v(static_cast<size_t>(shape.element_count()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<T>(i * 7 + 3);
  return tensor<T>(shape, v);
}

// The plain reference for Transpose.
template <class T>
std::vector<T> transposed(const Tensor& x, const std::vector<int64_t>& perm) {
  const std::vector<T> from = values<T>(*x);
  std::vector<T> to;
  const int rank = x->shape.rank();
  std::vector<int64_t> at(static_cast<size_t>(rank), 0);
  for (size_t n = 0; n < from.size(); ++n) {
    int64_t source = 0;
    for (int axis = 0; axis < rank; ++axis) {
      int64_t position = 0;
      for (int i = 0; i < rank; ++i)
        if (perm[static_cast<size_t>(i)] == axis) position = at[static_cast<size_t>(i)];
      source = source * x->shape[axis] + position;
    }
    to.push_back(from[static_cast<size_t>(source)]);
    for (int i = rank - 1; i >= 0; --i) {
      if (++at[static_cast<size_t>(i)] < x->shape[static_cast<int>(perm[static_cast<size_t>(i)])]) break;
      at[static_cast<size_t>(i)] = 0;
    }
  }
  return to;
}

template <class T>
void expect_transposed(const Shape& shape, const std::vector<int64_t>& perm) {
  SCOPED_TRACE(shape.text() + " width " + std::to_string(sizeof(T)));
  const Tensor x = counting<T>(shape);
  for (uint64_t seed : {0, 5}) {
    OperatorCall call = call_of("Transpose", {x}, {{"perm", perm}});
    call.split_seed = seed;
    const auto y = run(call);
    ASSERT_EQ(y.size(), 1u);
    EXPECT_EQ(values<T>(*y[0]), transposed<T>(x, perm));
  }
}

TEST(Transpose, AgreesWithAPlainLoopForEveryWidthAndOrder) {
  const std::vector<std::pair<Shape, std::vector<int64_t>>> cases = {
      {{37, 53}, {1, 0}},
      {{2, 19, 23}, {0, 2, 1}},
      {{5, 6, 7}, {2, 1, 0}},
      {{3, 4, 5, 6}, {0, 2, 1, 3}},
      {{3, 5, 7, 2}, {3, 1, 0, 2}},
      {{2, 3, 17, 19}, {0, 2, 3, 1}},
      {{300, 400}, {1, 0}},
      {{2, 75}, {1, 0}},
      {{75, 2}, {1, 0}},
      {{3, 5, 41}, {0, 2, 1}},
      {{41, 3}, {1, 0}},
      {{3, 4, 39}, {0, 2, 1}},
      {{39, 4}, {1, 0}},
      {{2, 64, 129}, {0, 2, 1}},
      {{16, 15}, {1, 0}},
      {{1, 9, 1, 4}, {3, 2, 1, 0}},
      {{4, 130, 1, 4}, {1, 0, 2, 3}},
      {{0, 3}, {1, 0}},
  };
  for (const auto& [shape, perm] : cases) {
    expect_transposed<uint8_t>(shape, perm);
    expect_transposed<int16_t>(shape, perm);
    expect_transposed<float>(shape, perm);
    expect_transposed<int64_t>(shape, perm);
  }
}

TEST(Transpose, ReadsAndWritesChannelsLast) {
  heddle_layout last = {};
  last.rank = 4;
  for (int i = 0; i < 4; ++i) last.order[i] = static_cast<uint8_t>(std::vector<int>{0, 2, 3, 1}[static_cast<size_t>(i)]);
  // A channels-last [2, 3, 4, 5] transposed to a row-major [2, 4, 5, 3] has the same bytes.
  OperatorCall call = call_of("Transpose", {numbers({2, 3, 4, 5})}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  call.input_layouts = {last};
  const auto y = run(call);
  ASSERT_EQ(y.size(), 1u);
  EXPECT_EQ(y[0]->shape, (Shape{2, 4, 5, 3}));
  EXPECT_EQ(values<float>(*y[0]), values<float>(*call.inputs[0]));
}

template <class F>
void for_each_width(F&& f) {
  f(uint8_t());
  f(int16_t());
  f(float());
  f(int64_t());
}
template <class T>
std::vector<T> run_split(OperatorCall call) {
  call.split_seed = 3;
  const auto y = run(call);
  return y.size() == 1 ? values<T>(*y[0]) : std::vector<T>();
}

// Repetitions of elements, of rows, and of both.
TEST(Expand, RepeatsEveryWidthAndExtent) {
  for_each_width([](auto width) {
    using T = decltype(width);
    for (const int64_t rows : {1, 5, 37})
      for (const int64_t columns : {1, 3, 16, 41})
        for (const int64_t times : {1, 2, 3, 4, 5, 130}) {
          const std::vector<T> x = values<T>(*counting<T>({rows * columns}));
          std::vector<T> elements, whole_rows;
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t c = 0; c < columns; ++c)
              elements.insert(elements.end(), static_cast<size_t>(times), x[static_cast<size_t>(r * columns + c)]);
            for (int64_t t = 0; t < times; ++t) whole_rows.insert(whole_rows.end(), x.begin() + r * columns, x.begin() + (r + 1) * columns);
          }
          EXPECT_EQ(run_split<T>(call_of("Expand", {tensor<T>({rows, columns, 1}, x), integers({rows, columns, times})})), elements)
              << rows << " x " << columns << " x " << times << ", width " << sizeof(T);
          EXPECT_EQ(run_split<T>(call_of("Expand", {tensor<T>({rows, 1, columns}, x), integers({rows, times, columns})})), whole_rows)
              << rows << " x " << times << " x " << columns << ", width " << sizeof(T);
        }
  });
}

TEST(Slice, TakesEveryNthOfEveryWidth) {
  for_each_width([](auto width) {
    using T = decltype(width);
    for (const int64_t columns : {2, 15, 64, 131})
      for (const int64_t start : {0, 1})
        for (const int64_t step : {1, 2, 3, 4, 5, -1}) {
          const std::vector<T> x = values<T>(*counting<T>({3 * columns}));
          const int64_t first = step < 0 ? columns - 1 - start : start, end = step < 0 ? -columns - 1 : columns;
          std::vector<T> expected;
          for (int64_t r = 0; r < 3; ++r)
            for (int64_t c = first; c >= 0 && c < columns; c += step) expected.push_back(x[static_cast<size_t>(r * columns + c)]);
          EXPECT_EQ(run_split<T>(call_of(
                        "Slice", {tensor<T>({3, columns}, x), integers({first}), integers({end}), integers({1}), integers({step})})),
                    expected)
              << columns << " from " << first << " by " << step << ", width " << sizeof(T);
        }
  });
}

TEST(Concat, WritesChannelsLast) {
  heddle_layout last = {};
  last.rank = 4;
  for (int i = 0; i < 4; ++i) last.order[i] = static_cast<uint8_t>(std::vector<int>{0, 2, 3, 1}[static_cast<size_t>(i)]);
  // There are two pixels of 2 and of 1 channels: physical [h, w, c].
  OperatorCall call =
      call_of("Concat", {tensor<float>({1, 2, 1, 2}, {1, 2, 3, 4}), tensor<float>({1, 1, 1, 2}, {8, 9})}, {{"axis", int64_t{1}}});
  call.input_layouts = {last, last};
  call.output_layouts = {last};
  const auto y = run(call);
  ASSERT_EQ(y.size(), 1u);
  EXPECT_EQ(values<float>(*y[0]), (std::vector<float>{1, 2, 8, 3, 4, 9}));
}

TEST(Concat, IsTheInverseOfSplitAlongEveryAxis) {
  for (int64_t axis : {0, 1, 2, -1}) {
    OperatorCall split = call_of("Split",
                                 {counting<int16_t>({9, 8, 130}), integers(axis == 0   ? std::vector<int64_t>{2, 0, 7}
                                                                           : axis == 1 ? std::vector<int64_t>{5, 1, 2}
                                                                                       : std::vector<int64_t>{100, 29, 1})},
                                 {{"axis", axis}}, 3);
    split.split_seed = 3;
    const auto parts = run(split);
    ASSERT_EQ(parts.size(), 3u);
    const Tensor whole = run1("Concat", parts, {{"axis", axis}});
    EXPECT_EQ(whole->shape, split.inputs[0]->shape);
    EXPECT_EQ(values<int16_t>(*whole), values<int16_t>(*split.inputs[0])) << "axis " << axis;
  }
}

TEST(Split, LastPartOfEqualOnesMayBeSmaller) {
  const auto parts = run(call_of("Split", {numbers({7})}, {{"num_outputs", int64_t{3}}}, 3));
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[2]->shape, Shape{1});
  EXPECT_EQ(values<float>(*parts[2]), std::vector<float>{6});
}

TEST(Slice, ClampsAsOnnxSays) {
  const Tensor x = numbers({5});
  const auto slice = [&](int64_t start, int64_t end, int64_t step) {
    return values<float>(*run1("Slice", {x, integers({start}), integers({end}), integers({0}), integers({step})}));
  };
  EXPECT_EQ(slice(-3, INT64_MAX, 1), (std::vector<float>{2, 3, 4}));
  EXPECT_EQ(slice(INT64_MAX, INT64_MIN, -2), (std::vector<float>{4, 2, 0}));
  EXPECT_EQ(slice(3, -6, -1), (std::vector<float>{3, 2, 1, 0}));
  EXPECT_EQ(slice(INT64_MIN, 2, 1), (std::vector<float>{0, 1}));
  EXPECT_EQ(slice(0, 5, INT64_MAX), (std::vector<float>{0}));
  EXPECT_EQ(slice(4, 0, INT64_MIN), (std::vector<float>{4}));
  EXPECT_TRUE(slice(2, 2, 1).empty());
  EXPECT_TRUE(slice(1, 3, -1).empty());
}

TEST(Slice, RefusesStepZeroAndAxesGivenTwice) {
  EXPECT_NE(
      error_of(call_of("Slice", {numbers({4}), integers({0}), integers({2}), integers({0}), integers({0})})).find("step of axis 0 is 0"),
      std::string::npos);
  EXPECT_NE(error_of(call_of("Slice", {numbers({4}), integers({0, 0}), integers({2, 2}), integers({0, -1})})).find("twice"),
            std::string::npos);
}

TEST(Reshape, InfersAndCopiesExtents) {
  const auto reshape = [](const Shape& from, const std::vector<int64_t>& to, int64_t allow_zero = 0) {
    return run1("Reshape", {numbers(from), integers(to)}, {{"allowzero", allow_zero}})->shape;
  };
  EXPECT_EQ(reshape({2, 3, 4}, {0, -1}), (Shape{2, 12}));
  EXPECT_EQ(reshape({6}, {1, 6, 1}), (Shape{1, 6, 1}));
  EXPECT_EQ(reshape({1}, {}), Shape{});
  EXPECT_EQ(reshape({0, 3}, {3, 0}, 1), (Shape{3, 0}));
}

TEST(Reshape, RefusesWhatDoesNotFit) {
  const auto text = [](const Shape& from, const std::vector<int64_t>& to, int64_t allow_zero = 0) {
    return error_of(call_of("Reshape", {numbers(from), integers(to)}, {{"allowzero", allow_zero}}));
  };
  EXPECT_NE(text({2, 3}, {4, -1}).find("do not divide by 4"), std::string::npos);
  EXPECT_NE(text({2, 3}, {7}).find("6 elements"), std::string::npos);
  EXPECT_NE(text({2, 3}, {-1, -1}).find("more than one -1"), std::string::npos);
  EXPECT_NE(text({2, 3}, {-2}).find("-2"), std::string::npos);
  EXPECT_NE(text({2, 3}, {0, 3, 0}).find("dimension 2"), std::string::npos);
  EXPECT_NE(text({2, 3}, {INT64_MAX, INT64_MAX}).find("overflows"), std::string::npos);
  EXPECT_NE(text({0, 3}, {0, -1}, 1).find("allowzero"), std::string::npos);
  EXPECT_NE(text({1}, {1, 1, 1, 1, 1, 1, 1, 1, 1}).find("at most 8"), std::string::npos);
}

TEST(Squeeze, RefusesAnAxisThatIsNotOne) {
  EXPECT_NE(error_of(call_of("Squeeze", {numbers({1, 2}), integers({1})})).find("cannot squeeze axis 1"), std::string::npos);
  EXPECT_NE(error_of(call_of("Unsqueeze", {numbers({2}), integers({5})})).find("axes is 5"), std::string::npos);
}

TEST(Tile, RefusesExtentsThatOverflow) {
  EXPECT_NE(error_of(call_of("Tile", {numbers({4}), integers({INT64_MAX / 2})})).find("overflow"), std::string::npos);
  EXPECT_NE(error_of(call_of("Tile", {numbers({4}), integers({-1})})).find("-1"), std::string::npos);
}

TEST(Expand, RepeatsInnerAndOuterDimensions) {
  OperatorCall call = call_of("Expand", {tensor<int8_t>({2, 1, 3, 1}, {1, 2, 3, 4, 5, 6}), integers({2, 1, 2, 3, 2})});
  call.split_seed = 2;
  const auto y = run(call);
  ASSERT_EQ(y.size(), 1u);
  ASSERT_EQ(y[0]->shape, (Shape{2, 2, 2, 3, 2}));
  const auto v = values<int8_t>(*y[0]);
  for (size_t i = 0; i < v.size(); ++i) ASSERT_EQ(v[i], static_cast<int8_t>(1 + i / 12 % 2 * 3 + i / 2 % 3)) << i;
}

TEST(Pad, CropsAndPadsInEveryMode) {
  const auto pad = [](const std::string& mode, const std::vector<int64_t>& pads) {
    return values<float>(*run1("Pad", {numbers({4}), integers(pads), tensor<float>({}, {9})}, {{"mode", mode}}));
  };
  EXPECT_EQ(pad("constant", {2, -1}), (std::vector<float>{9, 9, 0, 1, 2}));
  EXPECT_EQ(pad("constant", {-6, 3}), (std::vector<float>{9}));
  EXPECT_EQ(pad("edge", {1, 2}), (std::vector<float>{0, 0, 1, 2, 3, 3, 3}));
  EXPECT_EQ(pad("reflect", {5, 1}), (std::vector<float>{1, 2, 3, 2, 1, 0, 1, 2, 3, 2}));
  EXPECT_EQ(pad("wrap", {5, 5}), (std::vector<float>{3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0}));
}

// Walks from the first element to position `at`, turning or starting again at the ends.
int64_t padded_position(const std::string& mode, int64_t at, int64_t extent) {
  if (at >= 0 && at < extent) return at;
  if (mode == "constant") return -1;
  if (mode == "edge") return at < 0 ? 0 : extent - 1;
  int64_t position = 0, step = at < 0 ? -1 : 1;
  for (int64_t i = 0; i != at; i += at < 0 ? -1 : 1) {
    if (mode == "wrap") {
      position = (position + step + extent) % extent;
    } else if (extent > 1) {
      if (position + step < 0 || position + step == extent) step = -step;
      position += step;
    }
  }
  return position;
}

TEST(Pad, EqualsAPlainLoopInEveryModeAndWidth) {
  constexpr int64_t depth = 2, height = 5, width = 7;
  const std::vector<std::array<int64_t, 6>> all_pads = {{0, 1, 1, 0, 1, 1},   {0, 0, 3, 0, 0, 2},   {1, 2, 0, 0, 3, 0},
                                                        {0, 4, 9, 0, 11, 10}, {0, -1, 2, 0, 2, -3}, {1, 0, 0, 2, 0, 0},
                                                        {0, 12, 25, 0, 1, 0}, {0, 0, -9, 0, 0, 3}};
  for_each_width([&](auto of_width) {
    using T = decltype(of_width);
    const Tensor x = counting<T>({depth, height, width});
    const std::vector<T> from = values<T>(*x);
    for (const std::string mode : {"constant", "edge", "reflect", "wrap"})
      for (const auto& pads : all_pads) {
        std::vector<T> expected;
        for (int64_t i = -pads[0]; i < depth + pads[3]; ++i)
          for (int64_t j = -pads[1]; j < height + pads[4]; ++j)
            for (int64_t k = -pads[2]; k < width + pads[5]; ++k) {
              const int64_t a = padded_position(mode, i, depth), b = padded_position(mode, j, height), c = padded_position(mode, k, width);
              expected.push_back(a < 0 || b < 0 || c < 0 ? T(9) : from[static_cast<size_t>((a * height + b) * width + c)]);
            }
        EXPECT_EQ(run_split<T>(call_of("Pad", {x, integers({pads.begin(), pads.end()}), tensor<T>({}, {9})}, {{"mode", mode}})), expected)
            << mode << ", width " << sizeof(T) << ", pads from " << pads[0] << " " << pads[1] << " " << pads[2];
      }
  });
}

TEST(Pad, WorksAlongSomeAxesOfSeveralDimensions) {
  const Tensor y = run1("Pad", {tensor<uint16_t>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), integers({1, 0}), nullptr, integers({-2})});
  EXPECT_EQ(y->shape, (Shape{2, 3, 2}));
  EXPECT_EQ(values<uint16_t>(*y), (std::vector<uint16_t>{0, 0, 1, 2, 3, 4, 0, 0, 5, 6, 7, 8}));
}

TEST(Range, CountsAsOnnxSays) {
  const auto range = [](int32_t start, int32_t limit, int32_t delta) {
    return values<int32_t>(*run1("Range", {tensor<int32_t>({}, {start}), tensor<int32_t>({}, {limit}), tensor<int32_t>({}, {delta})}));
  };
  EXPECT_EQ(range(10, 4, -4), (std::vector<int32_t>{10, 6}));
  EXPECT_TRUE(range(3, 3, 1).empty());
  EXPECT_TRUE(range(3, 9, -1).empty());
  EXPECT_EQ(values<int64_t>(
                *run1("Range", {tensor<int64_t>({}, {INT64_MIN}), tensor<int64_t>({}, {INT64_MAX}), tensor<int64_t>({}, {INT64_MAX})})),
            (std::vector<int64_t>{INT64_MIN, -1, INT64_MAX - 1}));
  EXPECT_NE(error_of(call_of("Range", {tensor<float>({}, {0}), tensor<float>({}, {1}), tensor<float>({}, {0})})).find("delta is 0"),
            std::string::npos);
}

TEST(SpaceToDepth, IsTheInverseOfDepthToSpace) {
  const Tensor x = counting<float>({2, 8, 3, 5});
  const Tensor wide = run1("DepthToSpace", {x}, {{"blocksize", int64_t{2}}});
  EXPECT_EQ(wide->shape, (Shape{2, 2, 6, 10}));
  EXPECT_EQ(values<float>(*run1("SpaceToDepth", {wide}, {{"blocksize", int64_t{2}}})), values<float>(*x));
}

TEST(Resize, InterpolatesAlongAnyAxisAndType) {
  // Linear along the first axis of [2, 3]: rows in between are means.
  const Tensor y = run1("Resize", {tensor<double>({2, 3}, {0, 10, 20, 4, 14, 24}), nullptr, nullptr, integers({3})},
                        {{"mode", std::string("linear")},
                         {"coordinate_transformation_mode", std::string("align_corners")},
                         {"axes", std::vector<int64_t>{0}}});
  EXPECT_EQ(values<double>(*y), (std::vector<double>{0, 10, 20, 2, 12, 22, 4, 14, 24}));
  // Conversion to integers rounds towards zero and never wraps.
  const Tensor cubic =
      run1("Resize", {tensor<uint8_t>({1, 4}, {0, 255, 255, 0}), nullptr, tensor<float>({2}, {1, 2})}, {{"mode", std::string("cubic")}});
  const auto v = values<uint8_t>(*cubic);
  EXPECT_EQ(v.size(), 8u);
  EXPECT_EQ(v[3], 255);  // overshoots
}

TEST(Resize, AntialiasingAveragesOverTheWiderKernel) {
  const Tensor y = run1("Resize", {numbers({1, 8}), nullptr, nullptr, integers({1, 4})},
                        {{"mode", std::string("linear")}, {"antialias", int64_t{1}}, {"exclude_outside", int64_t{1}}});
  const auto v = values<float>(*y);
  ASSERT_EQ(v.size(), 4u);
  EXPECT_NEAR(v[1], 2.5f, 1e-5f);  // symmetric weights around 2.5
  EXPECT_NEAR(v[2], 4.5f, 1e-5f);
}

TEST(Resize, KeepsTheAspectRatio) {
  const auto shape = [](const char* policy) {
    return run1("Resize", {numbers({1, 1, 4, 8}), nullptr, nullptr, integers({8, 8})},
                {{"axes", std::vector<int64_t>{2, 3}}, {"keep_aspect_ratio_policy", std::string(policy)}})
        ->shape;
  };
  EXPECT_EQ(shape("not_larger"), (Shape{1, 1, 4, 8}));
  EXPECT_EQ(shape("not_smaller"), (Shape{1, 1, 8, 16}));
  EXPECT_EQ(shape("stretch"), (Shape{1, 1, 8, 8}));
}

}  // namespace
}  // namespace heddle::testing
