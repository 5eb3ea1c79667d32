// Pooling against plain loops over odd windows; channels-last and every split give the same bits as row-major.
#include "layout_support.h"
#include "operators/float_tiles_support.h"

namespace heddle::testing {
namespace {

struct PoolCase {
  const char* type;
  Shape x;
  std::vector<Attribute> attributes;
  Ints kernel, strides, dilations, pads;
  bool include_pad = false;
  int64_t p = 2;
};

int64_t at(const Ints& list, size_t i, int64_t otherwise) {
  return list.empty() ? otherwise : list[i];
}

// Two spatial dimensions are supported.
std::vector<float> expected(const PoolCase& c, const Shape& y, const std::vector<float>& x) {
  std::vector<float> result;
  const int64_t height = c.x[2], width = c.x[3];
  for (int64_t plane = 0; plane < y[0] * y[1]; ++plane) {
    for (int64_t oh = 0; oh < y[2]; ++oh) {
      for (int64_t ow = 0; ow < y[3]; ++ow) {
        double sum = 0, largest = -INFINITY, power = 0;
        int64_t inside = 0, padded = 0;
        for (int64_t i = 0; i < c.kernel[0]; ++i) {
          for (int64_t j = 0; j < c.kernel[1]; ++j) {
            const int64_t h = oh * at(c.strides, 0, 1) - at(c.pads, 0, 0) + i * at(c.dilations, 0, 1);
            const int64_t w = ow * at(c.strides, 1, 1) - at(c.pads, 1, 0) + j * at(c.dilations, 1, 1);
            if (h < height + at(c.pads, 2, 0) && w < width + at(c.pads, 3, 0)) ++padded;
            if (h < 0 || w < 0 || h >= height || w >= width) continue;
            const double v = x[static_cast<size_t>((plane * height + h) * width + w)];
            ++inside;
            sum += v;
            largest = std::max(largest, v);
            power += std::pow(std::fabs(v), static_cast<double>(c.p));
          }
        }
        const std::string type = c.type;
        double value = largest;
        if (type == "AveragePool") value = sum / static_cast<double>(c.include_pad ? padded : inside);
        if (type == "LpPool") value = std::pow(power, 1.0 / static_cast<double>(c.p));
        result.push_back(static_cast<float>(value));
      }
    }
  }
  return result;
}

TEST(Pooling, EqualsPlainLoopsInEveryLayoutAndSplit) {
  const Attribute ceil = {"ceil_mode", int64_t{1}}, with_pad = {"count_include_pad", int64_t{1}};
  const PoolCase cases[] = {
      {"MaxPool", {1, 64, 112, 112}, {}, {3, 3}, {2, 2}, {}, {1, 1, 1, 1}},
      {"MaxPool", {2, 5, 9, 11}, {}, {2, 3}, {3, 1}, {}, {0, 1, 1, 2}},
      {"MaxPool", {1, 19, 17, 15}, {}, {3, 2}, {1, 2}, {2, 3}, {}},
      {"MaxPool", {2, 3, 10, 10}, {ceil}, {3, 3}, {2, 2}, {}, {}},
      {"AveragePool", {2, 33, 13, 14}, {}, {3, 3}, {1, 1}, {}, {1, 1, 1, 1}},
      {"AveragePool", {1, 8, 13, 14}, {with_pad}, {3, 3}, {2, 2}, {}, {1, 1, 0, 2}, true},
      {"AveragePool", {1, 7, 12, 12}, {ceil, with_pad}, {3, 3}, {2, 2}, {}, {1, 1, 1, 1}, true},
      {"AveragePool", {1, 4, 30, 30}, {}, {12, 12}, {3, 3}, {2, 1}, {}},
      {"MaxPool", {1, 24, 30, 29}, {}, {3, 3}, {1, 1}, {}, {1, 1, 1, 1}},
      {"MaxPool", {2, 19, 9, 50}, {}, {5, 5}, {1, 2}, {1, 2}, {2, 4, 2, 4}},
      {"MaxPool", {1, 6, 28, 28}, {}, {2, 2}, {2, 2}, {}, {}},
      {"AveragePool", {1, 17, 20, 44}, {}, {2, 2}, {2, 2}, {}, {0, 1, 1, 0}},
      {"AveragePool", {1, 3, 8, 70}, {}, {1, 9}, {1, 3}, {}, {0, 4, 0, 4}},
      {"AveragePool", {1, 2, 6, 130}, {}, {3, 3}, {1, 1}, {}, {1, 1, 1, 1}},
      {"MaxPool", {1, 2, 6, 131}, {}, {2, 3}, {1, 2}, {}, {1, 1, 0, 1}},
      {"AveragePool", {1, 40, 7, 7}, {}, {7, 7}, {}, {}, {}},
      {"MaxPool", {3, 11, 2, 5}, {}, {2, 5}, {}, {}, {}},
      {"MaxPool", {1, 9, 5, 2}, {}, {2, 5}, {3, 3}, {}, {0, 2, 0, 1}},
      {"LpPool", {2, 3, 5, 2}, {{"p", int64_t{1}}}, {5, 2}, {3, 1}, {}, {1, 0, 1, 0}, false, 1},
      {"LpPool", {1, 5, 9, 40}, {{"p", int64_t{1}}}, {3, 3}, {1, 2}, {}, {}, false, 1},
      {"LpPool", {1, 20, 9, 9}, {{"p", int64_t{1}}}, {3, 3}, {1, 1}, {}, {}, false, 1},
      {"LpPool", {1, 20, 9, 9}, {}, {3, 3}, {2, 2}, {}, {1, 1, 1, 1}},
      {"LpPool", {1, 3, 9, 9}, {{"p", int64_t{3}}}, {2, 2}, {}, {}, {}, false, 3},
  };
  for (const PoolCase& c : cases) {
    std::vector<Attribute> attributes = c.attributes;
    attributes.push_back({"kernel_shape", c.kernel});
    if (!c.strides.empty()) attributes.push_back({"strides", c.strides});
    if (!c.dilations.empty()) attributes.push_back({"dilations", c.dilations});
    if (!c.pads.empty()) attributes.push_back({"pads", c.pads});
    const Tensor x = random_tensor(c.x, 1);
    OperatorCall call = call_of(c.type, {x}, attributes);
    const auto y = run(call);
    ASSERT_EQ(y.size(), 1u) << c.type;
    expect_close(values<float>(*y[0]), expected(c, y[0]->shape, values<float>(*x)), 2e-6f, c.type);
    call.split_seed = 5;
    expect_same_bits(run(call)[0], y[0], c.type);
    const std::vector<float> narrow = values<float>(*x);
    call.inputs = {tensor(c.x, std::vector<double>(narrow.begin(), narrow.end()))};
    const std::vector<double> wide = values<double>(*run(call)[0]);
    expect_close({wide.begin(), wide.end()}, values<float>(*y[0]), 2e-6f, std::string(c.type) + " of f64");
    if (c.p > 2) continue;
    call.inputs = {reorder_channels(x, true)};
    call.input_layouts = call.output_layouts = {channels_last_layout(4)};
    expect_same_bits(reorder_channels(run(call)[0], false), y[0], std::string(c.type) + ", channels-last");
  }
}

// Results of 16-bit floats are those of f32 rounded once, with the same bits in both layouts.
void check_narrow_pool(const OperatorCall& form, const Tensor& x) {
  expect_f32_rounded_once(form, {x}, true);
  for (const DType dtype : narrow_dtypes) {
    OperatorCall call = form;
    call.inputs = {as_dtype(x, dtype)};
    const Tensor plain = run(call)[0];
    call.inputs = {as_dtype(reorder_channels(x, true), dtype)};
    call.input_layouts = call.output_layouts = {channels_last_layout(4)};
    for (const uint64_t seed : {0, 3}) {
      call.split_seed = seed;
      const auto last = run(call);
      ASSERT_EQ(last.size(), 1u) << form.type;
      const Tensor wide = reorder_channels(as_dtype(last[0], DType::f32), false);
      expect_same_bits(as_dtype(wide, dtype), plain, name_of_call(form.type, {x}, dtype) + ", channels-last");
    }
  }
}

TEST(Pooling, NarrowFloatsAreF32RoundedOnceInBothLayouts) {
  for (const char* type : {"MaxPool", "AveragePool", "LpPool"}) {
    const std::vector<Attribute> attributes = {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}};
    for (const Shape& shape : {Shape{2, 33, 13, 14}, Shape{1, 64, 20, 21}, Shape{1, 3, 5, 5}})
      check_narrow_pool(call_of(type, {}, attributes), random_tensor(shape, 1));
    check_narrow_pool(call_of(type, {}, {{"kernel_shape", Ints{12, 12}}}), random_tensor(Shape{1, 20, 30, 30}, 2));
  }
  for (const char* type : {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"})
    check_narrow_pool(call_of(type, {}), random_tensor(Shape{2, 300, 9, 15}, 1));
}

TEST(Pooling, Global) {
  const Tensor x = random_tensor(Shape{2, 300, 9, 15}, 1);
  const std::vector<float> v = values<float>(*x);
  std::vector<float> means, largest;
  for (size_t plane = 0; plane < 600; ++plane) {
    double sum = 0;
    for (size_t i = 0; i < 135; ++i) sum += v[plane * 135 + i];
    means.push_back(static_cast<float>(sum / 135));
    largest.push_back(*std::max_element(v.begin() + static_cast<std::ptrdiff_t>(plane * 135),
                                        v.begin() + static_cast<std::ptrdiff_t>(plane * 135 + 135)));
  }
  for (const char* type : {"GlobalAveragePool", "GlobalMaxPool"}) {
    OperatorCall call = call_of(type, {x});
    const Tensor y = run(call)[0];
    EXPECT_EQ(y->shape, (Shape{2, 300, 1, 1}));
    expect_close(values<float>(*y), std::string(type) == "GlobalMaxPool" ? largest : means, 1e-6f, type);
    call.inputs = {reorder_channels(x, true)};
    call.input_layouts = call.output_layouts = {channels_last_layout(4)};
    for (uint64_t seed : {0, 3}) {
      call.split_seed = seed;
      expect_same_bits(reorder_channels(run(call)[0], false), y, type);
    }
  }
}

TEST(Pooling, IndicesInBothStorageOrders) {
  const Tensor x = tensor<float>(Shape{1, 2, 2, 3}, {1, 5, 2, 4, 3, 0, 0, 1, 9, 2, 3, 4});
  auto indices = [&](int64_t order) {
    return values<int64_t>(*run(call_of("MaxPool", {x}, {{"kernel_shape", Ints{2, 2}}, {"storage_order", order}}, 2))[1]);
  };
  EXPECT_EQ(indices(0), (std::vector<int64_t>{1, 1, 10, 8}));
  EXPECT_EQ(indices(1), (std::vector<int64_t>{2, 2, 9, 10}));
}

TEST(Pooling, OneAndThreeDimensionsAndDtypes) {
  const Tensor one =
      run1("MaxPool", {tensor<int8_t>(Shape{1, 1, 5}, {-3, -7, -1, -9, -2})}, {{"kernel_shape", Ints{2}}, {"strides", Ints{2}}});
  EXPECT_EQ(values<int8_t>(*one), (std::vector<int8_t>{-3, -1}));
  std::vector<double> cube(27);
  for (size_t i = 0; i < 27; ++i) cube[i] = static_cast<double>(i);
  const Tensor three = run1("AveragePool", {tensor<double>(Shape{1, 1, 3, 3, 3}, cube)}, {{"kernel_shape", Ints{3, 3, 3}}});
  EXPECT_EQ(values<double>(*three), (std::vector<double>{13}));
  const Tensor nan = run1("MaxPool", {tensor<float>(Shape{1, 1, 3}, {1, NAN, 2})}, {{"kernel_shape", Ints{3}}});
  EXPECT_TRUE(std::isnan(values<float>(*nan)[0]));
}

TEST(Pooling, WindowsMayBeLargerThanSixtyFourBitsCount) {
  const Ints kernel(3, int64_t{1} << 31);
  const std::vector<Attribute> attributes = {
      {"kernel_shape", kernel}, {"auto_pad", std::string("SAME_UPPER")}, {"count_include_pad", int64_t{1}}};
  const Tensor mean = run1("AveragePool", {tensor<double>(Shape{1, 1, 1, 1, 2}, {4, 12})}, attributes);
  EXPECT_EQ(values<double>(*mean), (std::vector<double>(2, 0x1p-89)));
}

TEST(Pooling, RefusesWhatDoesNotFit) {
  const Tensor x = random_tensor(Shape{1, 2, 4, 4}, 1);
  auto error = [&](std::vector<Attribute> attributes) { return error_of(call_of("MaxPool", {x}, std::move(attributes))); };
  EXPECT_NE(error({{"kernel_shape", Ints{5, 5}}}).find("the window spans 5"), std::string::npos);
  EXPECT_NE(error({{"kernel_shape", Ints{2}}}).find("expected 2 numbers"), std::string::npos);
  EXPECT_NE(error({{"kernel_shape", Ints{2, 2}}, {"pads", Ints{2, 2, 2, 2}}}).find("nothing but padding"), std::string::npos);
}

}  // namespace
}  // namespace heddle::testing
