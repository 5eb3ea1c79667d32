// Reductions against plain loops: every pattern of kept and reduced axes, tiles, layouts, empty sets, dtypes, ArgMax and ArgMin.
#include <cmath>
#include <limits>
#include <random>

#include "operators/pointwise_support.h"

namespace heddle::testing {
namespace {

std::vector<float> noise(int64_t n, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<float> v(static_cast<size_t>(n));
  for (float& f : v) f = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
  return v;
}
Tensor axes_tensor(const std::vector<int64_t>& axes) {
  return tensor(Shape{static_cast<int64_t>(axes.size())}, axes);
}

// The reduction of row-major `x` over the axes in `reduced`, in double, one accumulator per output.
std::vector<double> reference(const std::string& type, const Shape& shape, const std::vector<float>& x, uint32_t reduced) {
  int64_t outputs = 1, folded = 1;
  for (int i = 0; i < shape.rank(); ++i) (reduced >> i & 1 ? folded : outputs) *= shape[i];
  std::vector<std::vector<double>> sets(static_cast<size_t>(outputs));
  for (int64_t e = 0; e < shape.element_count(); ++e) {
    int64_t rest = e, at = 0, stride = 1;
    for (int i = shape.rank() - 1; i >= 0; --i) {
      if (!(reduced >> i & 1)) at += rest % shape[i] * stride, stride *= shape[i];
      rest /= shape[i];
    }
    sets[static_cast<size_t>(at)].push_back(x[static_cast<size_t>(e)]);
  }
  std::vector<double> result;
  for (const std::vector<double>& set : sets) {
    double sum = 0, absolute = 0, square = 0, product = 1, high = -inf, low = inf, exponentials = 0;
    for (double v : set) {
      sum += v, absolute += std::fabs(v), square += v * v, product *= v, exponentials += std::exp(v);
      high = std::max(high, v), low = std::min(low, v);
    }
    if (type == "ReduceSum") result.push_back(sum);
    if (type == "ReduceMean") result.push_back(sum / static_cast<double>(folded));
    if (type == "ReduceL1") result.push_back(absolute);
    if (type == "ReduceL2") result.push_back(std::sqrt(square));
    if (type == "ReduceSumSquare") result.push_back(square);
    if (type == "ReduceProd") result.push_back(product);
    if (type == "ReduceMax") result.push_back(high);
    if (type == "ReduceMin") result.push_back(low);
    if (type == "ReduceLogSumExp") result.push_back(std::log(exponentials));
  }
  return result;
}

void expect_reduction(const std::string& type, const Shape& shape, uint32_t reduced) {
  const std::vector<float> x = noise(shape.element_count());
  std::vector<int64_t> axes;
  for (int i = 0; i < shape.rank(); ++i)
    if (reduced >> i & 1) axes.push_back(i % 2 ? i : i - shape.rank());
  const std::vector<double> expected = reference(type, shape, x, reduced);
  OperatorCall call = call_of(type, {tensor(shape, x), axes_tensor(axes)}, {{"keepdims", int64_t{0}}});
  std::vector<float> first;
  for (uint64_t manner = 0; manner < 4; ++manner) {
    call.constant_inputs = manner > 0;  // else the axes are known when it runs
    call.split_seed = manner;
    const std::vector<float> got = values<float>(*run(call)[0]);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], expected[i], 1e-5 * (1 + std::fabs(expected[i])))
          << type << " of " << shape.text() << " set " << reduced << " at " << i;
    if (manner == 1) first = got;
    if (manner > 1) {
      ASSERT_EQ(got, first) << "depends on the division into tiles";
    }
  }
}

TEST(Reduce, EveryPatternOfAxes) {
  for (uint32_t reduced = 1; reduced < 16; ++reduced) expect_reduction("ReduceSum", {3, 4, 5, 6}, reduced);
  for (const char* type :
       {"ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"})
    for (uint32_t reduced : {1u, 2u, 4u, 5u, 6u, 7u}) expect_reduction(type, {6, 7, 130}, reduced);
}

TEST(Reduce, LargeOnesInTiles) {
  expect_reduction("ReduceSum", {1000000}, 1);
  expect_reduction("ReduceMax", {1000003}, 1);
  expect_reduction("ReduceMean", {1000, 1000}, 1);
  expect_reduction("ReduceMean", {1000, 1000}, 2);
  expect_reduction("ReduceL2", {250000, 4}, 1);
  expect_reduction("ReduceSum", {2, 500, 1000}, 2);
}

TEST(Reduce, AMillionEqualTermsLoseNothing) {
  const Tensor x = tensor(Shape{1 << 20}, std::vector<float>(1 << 20, 0.1f));
  const double sum = static_cast<double>(0.1f) * (1 << 20);
  EXPECT_NEAR(values<float>(*run1("ReduceSum", {x, axes_tensor({0})}))[0], sum, 5e-7 * sum);
}

TEST(Reduce, EmptyAxesMeanAllOrNone) {
  const Tensor x = tensor<float>(Shape{2, 2}, {1, 2, 3, 4});
  const Tensor all = run1("ReduceSum", {x});
  EXPECT_EQ(all->shape, (Shape{1, 1}));
  EXPECT_EQ(values<float>(*all), (std::vector<float>{10}));
  EXPECT_EQ(values<float>(*run1("ReduceSum", {x, axes_tensor({})}, {{"noop_with_empty_axes", int64_t{1}}})),
            (std::vector<float>{1, 2, 3, 4}));
}

TEST(Reduce, NothingGivesTheNeutralElement) {
  const Tensor x = tensor<float>(Shape{2, 0, 3}, {});
  const auto reduce = [&](const char* type) { return values<float>(*run1(type, {x, axes_tensor({1})}, {{"keepdims", int64_t{0}}})); };
  EXPECT_EQ(reduce("ReduceSum"), std::vector<float>(6, 0));
  EXPECT_EQ(reduce("ReduceProd"), std::vector<float>(6, 1));
  EXPECT_EQ(reduce("ReduceMax"), std::vector<float>(6, -inf));
  EXPECT_EQ(reduce("ReduceMin"), std::vector<float>(6, inf));
  EXPECT_TRUE(std::isnan(reduce("ReduceMean")[0]));
  EXPECT_EQ(values<int8_t>(*run1("ReduceMax", {tensor<int8_t>(Shape{0}, {}), axes_tensor({0})})), (std::vector<int8_t>{-128}));
  EXPECT_EQ(run1("ReduceSum", {tensor<float>(Shape{0, 3}, {}), axes_tensor({1})})->shape, (Shape{0, 1}));
}

TEST(Reduce, OtherDtypes) {
  EXPECT_EQ(values<int32_t>(*run1("ReduceSum", {tensor<int32_t>(Shape{3}, {2147483647, 1, 5})})), (std::vector<int32_t>{-2147483643}));
  EXPECT_EQ(values<int32_t>(*run1("ReduceMean", {tensor<int32_t>(Shape{3}, {-1, -2, -4})})), (std::vector<int32_t>{-2}));
  EXPECT_EQ(values<uint64_t>(*run1("ReduceMax", {tensor<uint64_t>(Shape{2}, {~0ull, 1})})), (std::vector<uint64_t>{~0ull}));
  EXPECT_EQ(values<int64_t>(*run1("ReduceProd", {tensor<int64_t>(Shape{3}, {1 << 20, 1 << 20, 3})})), (std::vector<int64_t>{3ll << 40}));
  EXPECT_EQ(values<uint8_t>(*run1("ReduceMin", {booleans(Shape{2, 2}, {1, 0, 1, 1}), axes_tensor({1})})), (std::vector<uint8_t>{0, 1}));
  EXPECT_EQ(values<double>(*run1("ReduceSum", {tensor<double>(Shape{2}, {1, 1e-15})})), (std::vector<double>{1 + 1e-15}));
  EXPECT_EQ(values<uint16_t>(*run1("ReduceSum", {halves(DType::f16, Shape{4096}, std::vector<uint16_t>(4096, 0x3c00))})),
            (std::vector<uint16_t>{0x6c00}));  // 4096 ones: f16 accumulation would stop at 2048
}

TEST(Reduce, SixteenBitFloatsAreFoldedAsF32) {
  constexpr int64_t f32 = 1, f16 = 10, bf16 = 16;  // ONNX's numbers
  const auto cast = [](const Tensor& x, int64_t to) { return run1("Cast", {x}, {{"to", to}}); };
  for (const int64_t dtype : {f16, bf16})
    for (const char* type :
         {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"})
      for (const int64_t axis : {0, 1, 2}) {
        const Tensor narrow = cast(tensor(Shape{5, 37, 83}, noise(5 * 37 * 83)), dtype);
        const Tensor folded = run1(type, {narrow, axes_tensor({axis})});
        const Tensor expected = cast(run1(type, {cast(narrow, f32), axes_tensor({axis})}), dtype);
        EXPECT_EQ(values<uint16_t>(*folded), values<uint16_t>(*expected)) << type << " over axis " << axis << " of dtype " << dtype;
      }
}

TEST(Reduce, AMeanOfLargeIntegersKeepsEveryBit) {
  const int64_t large = (int64_t{1} << 60) + 1;
  EXPECT_EQ(values<int64_t>(*run1("ReduceMean", {tensor<int64_t>(Shape{2}, {large, large})})), std::vector<int64_t>{large});
  EXPECT_EQ(values<int64_t>(*run1("ReduceMean", {tensor<int64_t>(Shape{2}, {-7, -8})})), std::vector<int64_t>{-7});
  const uint64_t unsigned_large = (uint64_t{1} << 62) + 3;
  EXPECT_EQ(values<uint64_t>(*run1("ReduceMean", {tensor<uint64_t>(Shape{3}, {unsigned_large, unsigned_large, unsigned_large})})),
            std::vector<uint64_t>{unsigned_large});
}

TEST(Reduce, NanAndLogSumExpOfInfinities) {
  EXPECT_TRUE(std::isnan(values<float>(*run1("ReduceMax", {tensor<float>(Shape{3}, {1, nan, 2})}))[0]));
  EXPECT_EQ(values<float>(*run1("ReduceLogSumExp", {tensor<float>(Shape{2}, {-inf, -inf})}))[0], -inf);
  EXPECT_EQ(values<float>(*run1("ReduceLogSumExp", {tensor<float>(Shape{2}, {inf, 0})}))[0], inf);
  EXPECT_NEAR(values<float>(*run1("ReduceLogSumExp", {tensor<float>(Shape{2}, {1000, 1000})}))[0], 1000 + std::log(2.0), 1e-4);
}

TEST(Reduce, ReadsChannelsLast) {
  heddle_layout last = {};
  last.rank = 4;
  const uint8_t order[] = {0, 2, 3, 1};
  std::copy(order, order + 4, last.order);
  const Shape shape{2, 3, 4, 5};
  std::vector<float> logical = noise(120), stored(120);
  size_t i = 0;
  for (size_t n = 0; n < 2; ++n)
    for (size_t c = 0; c < 3; ++c)
      for (size_t s = 0; s < 20; ++s, ++i) stored[(n * 20 + s) * 3 + c] = logical[i];
  for (uint32_t reduced = 1; reduced < 16; ++reduced) {
    std::vector<int64_t> axes;
    for (int k = 0; k < 4; ++k)
      if (reduced >> k & 1) axes.push_back(k);
    OperatorCall call = call_of("ReduceSum", {tensor(shape, stored), axes_tensor(axes)});
    call.constant_inputs = true;
    call.input_layouts = {last};
    const std::vector<float> got = values<float>(*run(call)[0]);
    const std::vector<double> expected = reference("ReduceSum", shape, logical, reduced);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t k = 0; k < got.size(); ++k) ASSERT_NEAR(got[k], expected[k], 1e-5) << reduced << " at " << k;
  }
}

TEST(Reduce, WrongAxesAreNamed) {
  const Tensor x = tensor<float>(Shape{2, 2}, {1, 2, 3, 4});
  EXPECT_NE(error_of(call_of("ReduceSum", {x, axes_tensor({2})})).find("axes is 2"), std::string::npos);
  EXPECT_NE(error_of(call_of("ReduceSum", {x, axes_tensor({1, -1})})).find("twice"), std::string::npos);
  EXPECT_NE(error_of(call_of("ArgMax", {tensor<float>(Shape{2, 0}, {})}, {{"axis", int64_t{1}}})).find("no elements"), std::string::npos);
}

TEST(ArgExtremum, TiesNanAndAxes) {
  const Tensor x = tensor<float>(Shape{2, 3}, {1, 5, 5, 7, 2, 7});
  const auto arg = [&](const char* type, int64_t axis, int64_t last) {
    return values<int64_t>(*run1(type, {x}, {{"axis", axis}, {"keepdims", int64_t{0}}, {"select_last_index", last}}));
  };
  EXPECT_EQ(arg("ArgMax", 1, 0), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(arg("ArgMax", -1, 1), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(arg("ArgMin", 0, 0), (std::vector<int64_t>{0, 1, 0}));
  EXPECT_EQ(values<int64_t>(*run1("ArgMax", {tensor<float>(Shape{4}, {1, nan, 9, nan})})), (std::vector<int64_t>{1}));
  EXPECT_EQ(values<int64_t>(*run1("ArgMax", {halves(DType::f16, Shape{3}, {0x3c00, 0x4000, 0xc400})})), (std::vector<int64_t>{1}));
}

// f64 goes element by element.
TEST(ArgExtremum, VectorsChooseWhatOneElementAfterTheOtherDoes) {
  std::mt19937 random(3);
  for (const int64_t count : {1, 15, 16, 17, 47, 300})
    for (const char* type : {"ArgMax", "ArgMin"})
      for (const int64_t axis : {0, 1})
        for (const int64_t last : {0, 1}) {
          const Shape shape = axis == 0 ? Shape{count, 21} : Shape{21, count};
          std::vector<float> x(static_cast<size_t>(21 * count));
          for (float& v : x) v = random() % 97 == 0 ? nan : static_cast<float>(random() % 4);
          const std::vector<double> wide(x.begin(), x.end());
          const auto arg = [&](const Tensor& of) {
            return values<int64_t>(*run1(type, {of}, {{"axis", axis}, {"select_last_index", last}}));
          };
          EXPECT_EQ(arg(tensor(shape, x)), arg(tensor(shape, wide))) << type << " of " << count << " along " << axis << ", last " << last;
        }
}

}  // namespace
}  // namespace heddle::testing
