// Behaviour of Heddle that differs from other implementations: one test for each rule of classes.toml.
#include <cmath>
#include <cstdint>
#include <limits>

#include "operators/pointwise_support.h"

namespace heddle::testing {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
using Ints = std::vector<int64_t>;

Tensor floats(const Shape& shape, const std::vector<float>& v) {
  return tensor<float>(shape, v);
}
Tensor ints(const Ints& v) {
  return tensor<int64_t>(Shape{static_cast<int64_t>(v.size())}, v);
}
std::vector<float> run_floats(const std::string& type, std::vector<Tensor> inputs, std::vector<Attribute> attributes = {}) {
  return values<float>(*run1(type, std::move(inputs), std::move(attributes)));
}
bool all_nan(const std::vector<float>& v) {
  for (const float f : v)
    if (!std::isnan(f)) return false;
  return !v.empty();
}

// ---------------------------------------------------------------- limitations

TEST(DifferentialRules, DtypesWithoutKernelAreRefusedByName) {
  EXPECT_NE(error_of(call_of("Shrink", {tensor<int32_t>({2}, {1, 2})})).find("dtype-mismatch"), std::string::npos);
  EXPECT_NE(error_of(call_of("ReduceLogSumExp", {tensor<int64_t>({2}, {1, 2})})).find("must be one of f16, bf16, f32, f64"),
            std::string::npos);
  EXPECT_NE(error_of(call_of("Erf", {tensor<int8_t>({2}, {1, 2})})).find("insert a Cast"), std::string::npos);
}

TEST(DifferentialRules, LateExtentsAreInferredAtTheirBound) {
  const Tensor found = run1("Compress", {floats({3}, {1, 2, 3}), booleans({3}, {0, 1, 0})});
  EXPECT_EQ(found->shape, (Shape{1}));  // the true extent; a plan has 3, its bound
}

// ---------------------------------------------------------------- integers

TEST(DifferentialRules, IntegerReductionsWrap) {
  const Tensor big = tensor<int32_t>({2}, {INT32_MAX, 1});
  EXPECT_EQ(values<int32_t>(*run1("ReduceSum", {big})), std::vector<int32_t>{INT32_MIN});
  EXPECT_EQ(values<int32_t>(*run1("ReduceProd", {tensor<int32_t>({2}, {65536, 65537})})), std::vector<int32_t>{65536});
  EXPECT_EQ(run1("ReduceSumSquare", {tensor<uint32_t>({1}, {3})})->dtype, DType::u32);
  const int64_t odd = (int64_t{1} << 53) + 1;  // a double does not hold it
  EXPECT_EQ(values<int64_t>(*run1("ReduceSum", {tensor<int64_t>({2}, {odd, 2})})), Ints{odd + 2});
}

TEST(DifferentialRules, IntegerNormsAreComputedInDouble) {
  EXPECT_EQ(values<uint32_t>(*run1("ReduceL2", {tensor<uint32_t>({2}, {3'000'000'000u, 400'000'000u})})),
            std::vector<uint32_t>{3026549190u});
  EXPECT_EQ(values<uint32_t>(*run1("ReduceL2", {tensor<uint32_t>({2}, {4'000'000'000u, 1'000'000'000u})})),
            std::vector<uint32_t>{4123105625u});
  EXPECT_EQ(values<int64_t>(*run1("ReduceL2", {ints({int64_t{3} << 40, int64_t{4} << 40})})), Ints{int64_t{5} << 40});
  // A root that exceeds the range of the type saturates.
  EXPECT_EQ(values<int32_t>(*run1("ReduceL2", {tensor<int32_t>({2}, {INT32_MIN, INT32_MIN})})), std::vector<int32_t>{INT32_MAX});
}

TEST(DifferentialRules, IntegerMeansAreSumsOf64Bits) {
  EXPECT_EQ(values<uint32_t>(*run1("ReduceMean", {tensor<uint32_t>({2}, {UINT32_MAX, UINT32_MAX - 3})})),
            std::vector<uint32_t>{UINT32_MAX - 2});
  EXPECT_EQ(values<int32_t>(*run1("ReduceMean", {tensor<int32_t>({2}, {-7, 4})})), std::vector<int32_t>{-1});
  const int64_t odd = (int64_t{1} << 53) + 1;  // a double does not hold it
  EXPECT_EQ(values<int64_t>(*run1("ReduceMean", {ints({odd, odd})})), Ints{odd});
}

TEST(DifferentialRules, IntegerLogarithms) {
  EXPECT_EQ(values<int32_t>(*run1("ReduceLogSum", {tensor<int32_t>({2}, {3, 5})})), std::vector<int32_t>{2});
  EXPECT_EQ(values<int32_t>(*run1("ReduceLogSum", {tensor<int32_t>({2}, {0, 0})})), std::vector<int32_t>{0});
}

TEST(DifferentialRules, IntegerProductsWrap) {
  EXPECT_EQ(values<int32_t>(*run1("Gemm", {tensor<int32_t>({1, 1}, {65536}), tensor<int32_t>({1, 1}, {65537})})),
            std::vector<int32_t>{65536});
}

TEST(DifferentialRules, IntegerPowers) {
  const Tensor base = tensor<int32_t>({4}, {0, 2, 2, -1});
  EXPECT_EQ(values<int32_t>(*run1("Pow", {base, tensor<int32_t>({4}, {-1, -1, 3, -3})})), (std::vector<int32_t>{0, 0, 8, -1}));
}

TEST(DifferentialRules, IntegersThatResizeMovesAreWhatTheyWere) {
  const int64_t odd = (int64_t{1} << 53) + 1;
  EXPECT_EQ(values<int64_t>(*run1("Resize", {ints({odd, -odd}), nullptr, floats({1}, {2})})), (Ints{odd, odd, -odd, -odd}));
}

TEST(DifferentialRules, IntegerResizeKeepsConstants) {
  for (const char* mode : {"linear", "cubic"})
    for (const int64_t size : {int64_t{4}, int64_t{7}, int64_t{9}}) {
      const Tensor sevens = tensor<int32_t>({4}, {7, 7, 7, 7});
      const Tensor y = run1("Resize", {sevens, nullptr, nullptr, ints({size})}, {{"mode", std::string(mode)}});
      EXPECT_EQ(values<int32_t>(*y), std::vector<int32_t>(static_cast<size_t>(size), 7)) << mode << " " << size;
    }
}

TEST(DifferentialRules, ExponentsAreConvertedToTheTypeOfTheBase) {
  const Tensor odd = tensor<int32_t>({}, {(1 << 24) + 1});  // f32 does not hold it
  EXPECT_EQ(run_floats("Pow", {floats({1}, {-1}), odd}), std::vector<float>{1});
  EXPECT_EQ(values<double>(*run1("Pow", {tensor<double>({1}, {-1}), odd})), std::vector<double>{-1});
}

// ---------------------------------------------------------------- nothing

TEST(DifferentialRules, ReductionsOverNothing) {
  const Tensor none = floats({2, 0}, {});
  EXPECT_EQ(run_floats("ReduceSum", {none, ints({1})}), (std::vector<float>{0, 0}));
  EXPECT_EQ(run_floats("ReduceProd", {none, ints({1})}), (std::vector<float>{1, 1}));
  EXPECT_EQ(run_floats("ReduceMax", {none, ints({1})}), (std::vector<float>{-inf, -inf}));
  EXPECT_EQ(run_floats("ReduceMin", {none, ints({1})}), (std::vector<float>{inf, inf}));
  EXPECT_TRUE(all_nan(run_floats("ReduceMean", {none, ints({1})})));
  EXPECT_EQ(run1("ReduceSum", {floats({2, 0, 3}, {}), ints({0, 1})})->shape, (Shape{1, 1, 3}));
  EXPECT_EQ(run1("ArgMax", {floats({2, 0, 3}, {})}, {{"axis", int64_t{0}}})->shape, (Shape{1, 0, 3}));
}

TEST(DifferentialRules, GlobalPoolsOverNothingAreRefused) {
  EXPECT_NE(error_of(call_of("GlobalAveragePool", {floats({1, 1, 0}, {})})).find("shape-mismatch"), std::string::npos);
}

TEST(DifferentialRules, ProductsOverNothing) {
  EXPECT_EQ(run_floats("MatMul", {floats({2, 0}, {}), floats({0}, {})}), (std::vector<float>{0, 0}));
  EXPECT_EQ(run_floats("Gemm", {floats({1, 0}, {}), floats({0, 1}, {}), floats({1}, {3})}, {{"beta", 2.0}}), std::vector<float>{6});
}

TEST(DifferentialRules, LayerNormalizationOverNothing) {
  const auto outputs = run(call_of("LayerNormalization", {floats({0, 3}, {}), floats({0, 3}, {})}, {{"axis", int64_t{0}}}, 3));
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_TRUE(all_nan(values<float>(*outputs[1]))) << values<float>(*outputs[1])[0];
}

// ---------------------------------------------------------------- NaN, infinity, signs

TEST(DifferentialRules, NanWinsExtremes) {
  for (const std::vector<float>& x : {std::vector<float>{nan, 1, 2}, {1, nan, 2}, {1, 2, nan}}) {
    for (const char* type : {"ReduceMax", "ReduceMin"}) EXPECT_TRUE(all_nan(run_floats(type, {floats({3}, x)}))) << type;
    EXPECT_TRUE(all_nan(run_floats("GlobalMaxPool", {floats({1, 1, 3}, x)})));
    EXPECT_TRUE(all_nan(run_floats("MaxPool", {floats({1, 1, 3}, x)}, {{"kernel_shape", Ints{3}}})));
  }
  for (const char* reduction : {"max", "min"}) {
    const std::vector<Attribute> how = {{"reduction", std::string(reduction)}};
    EXPECT_TRUE(all_nan(run_floats("ScatterElements", {floats({1}, {1}), ints({0}), floats({1}, {nan})}, how))) << reduction;
    EXPECT_TRUE(all_nan(run_floats("ScatterElements", {floats({1}, {nan}), ints({0}), floats({1}, {1})}, how))) << reduction;
  }
}

TEST(DifferentialRules, NanBoundsOfClip) {
  EXPECT_TRUE(all_nan(run_floats("Clip", {floats({2}, {1, 2}), floats({}, {nan})})));
  EXPECT_TRUE(all_nan(run_floats("Clip", {floats({2}, {1, 2}), nullptr, floats({}, {nan})})));
}

TEST(DifferentialRules, OddRowsOfSoftmax) {
  EXPECT_TRUE(all_nan(run_floats("LogSoftmax", {floats({1, 3}, {1, nan, 2})})));
  EXPECT_TRUE(std::isnan(run_floats("LogSoftmax", {floats({1, 2}, {1, inf})})[1]));
  EXPECT_TRUE(all_nan(run_floats("ReduceLogSumExp", {floats({3}, {1, nan, inf})})));
}

// The loss uses LogSoftmax, whose row is NaN where a score is infinite.
TEST(DifferentialRules, LossOfInfiniteScores) {
  for (const float odd : {inf, nan}) {
    const auto outputs = run(call_of("SoftmaxCrossEntropyLoss", {floats({1, 2}, {1.5f, odd}), ints({0})}, {}, 2));
    ASSERT_EQ(outputs.size(), 2u);
    EXPECT_TRUE(all_nan(values<float>(*outputs[0])));
    EXPECT_TRUE(all_nan(values<float>(*outputs[1])));
  }
}

TEST(DifferentialRules, ReductionsAreFoldedInDouble) {
  EXPECT_EQ(run_floats("ReduceSum", {floats({3}, {3e38f, 3e38f, -3e38f})}), std::vector<float>{3e38f});
  EXPECT_FLOAT_EQ(run_floats("ReduceLogSum", {floats({3}, {1e8f, 0.25f, -1e8f})})[0], std::log(0.25f));
  EXPECT_FLOAT_EQ(run_floats("ReduceLogSumExp", {floats({20'000}, std::vector<float>(20'000, 1.7f))})[0],
                  static_cast<float>(1.7f + std::log(20'000.0)));
  // In f32 the product of the first two is 0, and 0 times infinity NaN.
  EXPECT_EQ(run_floats("ReduceProd", {floats({3}, {1e-30f, 1e-30f, inf})}), std::vector<float>{inf});
}

TEST(DifferentialRules, NormsOfTinyNumbers) {
  // Their squares are 0 in f32.
  EXPECT_EQ(run_floats("LpNormalization", {floats({1, 2}, {0, 1e-38f})}), (std::vector<float>{0, 1}));
  EXPECT_EQ(run_floats("LpNormalization", {floats({1, 1}, {1e-45f})}), std::vector<float>{1});
}

TEST(DifferentialRules, SoftplusOfLargeNumbers) {
  EXPECT_EQ(run_floats("Softplus", {floats({3}, {100, 1e30f, inf})}), (std::vector<float>{100, 1e30f, inf}));
  EXPECT_EQ(values<double>(*run1("Softplus", {tensor<double>({2}, {1000, -37})})), (std::vector<double>{1000, std::exp(-37.0)}));
}

TEST(DifferentialRules, PoolsPropagateNan) {
  EXPECT_TRUE(all_nan(run_floats("LpPool", {floats({1, 1, 2}, {1, nan})}, {{"kernel_shape", Ints{2}}})));
  EXPECT_TRUE(all_nan(run_floats("AveragePool", {floats({1, 1, 2}, {nan, 1})}, {{"kernel_shape", Ints{2}}})));
}

TEST(DifferentialRules, NanGoesThroughRecurrentLayers) {
  const auto layer = [](const char* type, int64_t gates) {
    const auto n = static_cast<size_t>(gates);
    return run_floats(
        type,
        {floats({1, 1, 1}, {nan}), floats({1, gates, 1}, std::vector<float>(n, 0.5f)), floats({1, gates, 1}, std::vector<float>(n, 0.5f))},
        {{"hidden_size", int64_t{1}}});
  };
  EXPECT_TRUE(all_nan(layer("RNN", 1)));
  EXPECT_TRUE(all_nan(layer("GRU", 3)));
  EXPECT_TRUE(all_nan(layer("LSTM", 4)));
}

TEST(DifferentialRules, InfiniteScaleOfInstanceNormalization) {
  EXPECT_EQ(run_floats("InstanceNormalization", {floats({1, 1, 2}, {1, 2}), floats({1}, {-inf}), floats({1}, {0.5f})}),
            (std::vector<float>{inf, -inf}));
}

// By the formula, alone and with the operator that it is fused into.
TEST(DifferentialRules, BatchNormalizationSubtractsTheMeanFirst) {
  const auto normalized = [](const std::vector<float>& x, float scale, float mean, float variance) {
    const auto count = static_cast<int64_t>(x.size());
    const std::vector<Tensor> inputs = {floats({1, 1, count}, x), floats({1}, {scale}), floats({1}, {0.5f}), floats({1}, {mean}),
                                        floats({1}, {variance})};
    return run_floats("BatchNormalization", inputs);
  };
  EXPECT_EQ(normalized({1000, 1000}, 1, 1000, 1e-6f), (std::vector<float>{0.5f, 0.5f}));
  EXPECT_EQ(normalized({2, 0}, inf, 1, 1), (std::vector<float>{inf, -inf}));
  EXPECT_FLOAT_EQ(normalized({5e37f}, 10, 3e37f, 1)[0], static_cast<float>(10 / std::sqrt(1 + 1e-5) * (5e37f - 3e37f)));
}

TEST(DifferentialRules, RowsOfOneElement) {
  EXPECT_EQ(run_floats("InstanceNormalization", {floats({2, 1, 1}, {0.13862617f, -1}), floats({1}, {-1.79f}), floats({1}, {-0.5f})}),
            (std::vector<float>{-0.5f, -0.5f}));
}

TEST(DifferentialRules, ConstantRowsOfMeanVarianceNormalization) {
  EXPECT_EQ(run_floats("MeanVarianceNormalization", {floats({1, 1, 1, 3}, {2, 2, 2})}), (std::vector<float>{0, 0, 0}));
}

TEST(DifferentialRules, NearlyEqualNumbersAreNormalizedInDouble) {
  const std::vector<float> x = {0.1f, std::nextafter(0.1f, 1.0f)};
  const double deviation = (static_cast<double>(x[1]) - x[0]) / 2;
  const auto y = run_floats("MeanVarianceNormalization", {floats({2, 1, 1, 1}, x)}, {{"axes", Ints{0}}});
  EXPECT_FLOAT_EQ(y[1], static_cast<float>(deviation / (deviation + 1e-9)));
  EXPECT_EQ(y[0], -y[1]);
  const std::vector<float> pair = {0.11117505f, 0.10794707f};
  const double half = (static_cast<double>(pair[0]) - pair[1]) / 2;
  const auto g =
      run_floats("GroupNormalization", {floats({1, 1, 2}, pair), floats({1}, {1}), floats({1}, {0})}, {{"num_groups", int64_t{1}}});
  EXPECT_FLOAT_EQ(g[0], static_cast<float>(half / std::sqrt(half * half + 1e-5)));
}

TEST(DifferentialRules, GeluOfInfinity) {
  EXPECT_EQ(run_floats("Gelu", {floats({1}, {inf})}), std::vector<float>{inf});
}

TEST(DifferentialRules, WhereKeepsTheSignOfZero) {
  EXPECT_TRUE(std::signbit(run_floats("Where", {booleans({1}, {1}), floats({1}, {-0.0f}), floats({1}, {0})})[0]));
}

// ---------------------------------------------------------------- precision

TEST(DifferentialRules, DoubleStaysDouble) {
  EXPECT_EQ(values<double>(*run1("Shrink", {tensor<double>({1}, {1.1})}, {{"bias", 0.5}, {"lambd", 0.5}}))[0], 1.1 - 0.5);
  EXPECT_NEAR(values<double>(*run1("Erf", {tensor<double>({1}, {0.3})}))[0], std::erf(0.3), 1e-15);
  const std::vector<Attribute> cubic = {{"mode", std::string("cubic")}, {"coordinate_transformation_mode", std::string("align_corners")}};
  EXPECT_NEAR(values<double>(*run1("Resize", {tensor<double>({3}, {0, 0, 1}), nullptr, nullptr, ints({4})}, cubic))[1], -1.0 / 9, 1e-15);
  const std::vector<Tensor> sampled = {tensor<double>({1, 1, 1, 2}, {0, 1}), tensor<double>({1, 1, 1, 2}, {0.1, 0})};
  EXPECT_NEAR(values<double>(*run1("GridSample", sampled))[0], 0.6, 1e-15);
  EXPECT_NEAR(values<double>(*run1("Gelu", {tensor<double>({1}, {0.3})}))[0], 0.15 * (1 + std::erf(0.3 / std::sqrt(2.0))), 1e-15);
}

TEST(DifferentialRules, DefaultAttributesAreDecimal) {
  EXPECT_EQ(values<double>(*run1("LeakyRelu", {tensor<double>({1}, {-1})}))[0], -0.01);
}

// ---------------------------------------------------------------- windows

TEST(DifferentialRules, SamePaddingOfDilatedWindows) {
  const Tensor x = floats({1, 1, 5}, {1, 2, 3, 4, 5});
  const std::vector<Attribute> same = {{"kernel_shape", Ints{3}}, {"dilations", Ints{2}}, {"auto_pad", std::string("SAME_UPPER")}};
  EXPECT_EQ(run_floats("MaxPool", {x}, same), (std::vector<float>{3, 4, 5, 4, 5}));
  EXPECT_EQ(run1("AveragePool", {x}, same)->shape, (Shape{1, 1, 5}));
  EXPECT_EQ(run1("LpPool", {x}, same)->shape, (Shape{1, 1, 5}));
}

TEST(DifferentialRules, ValidPaddingOfDilatedWindows) {
  const Tensor x = floats({1, 1, 13}, std::vector<float>(13, 1));
  const std::vector<Attribute> valid = {
      {"kernel_shape", Ints{3}}, {"strides", Ints{3}}, {"dilations", Ints{2}}, {"auto_pad", std::string("VALID")}};
  EXPECT_EQ(run1("AveragePool", {x}, valid)->shape, (Shape{1, 1, 3}));
}

TEST(DifferentialRules, SamePaddingOfTransposedConvolutions) {
  const Tensor y = run1("ConvTranspose", {floats({1, 1, 2}, {1, 2}), floats({1, 1, 1}, {1})},
                        {{"strides", Ints{3}}, {"auto_pad", std::string("SAME_UPPER")}});
  EXPECT_EQ(y->shape, (Shape{1, 1, 6}));
}

TEST(DifferentialRules, BiasOfGroupedTransposedConvolutions) {
  EXPECT_EQ(run_floats("ConvTranspose", {floats({1, 2, 1}, {2, 3}), floats({2, 1, 1}, {5, 7}), floats({2}, {100, 1000})},
                       {{"group", int64_t{2}}}),
            (std::vector<float>{110, 1021}));
}

TEST(DifferentialRules, PaddingIsNotMultiplied) {
  const auto y = run_floats("Conv", {floats({1, 1, 2}, {1, 2}), floats({1, 1, 3}, {inf, 1, 1})}, {{"pads", Ints{1, 1}}});
  EXPECT_EQ(y, (std::vector<float>{3, inf}));
}

TEST(DifferentialRules, EvenSizeOfLrn) {
  const auto y = run_floats("LRN", {floats({1, 2, 1}, {1, 2})}, {{"size", int64_t{2}}, {"alpha", 2.0}, {"beta", 1.0}, {"bias", 1.0}});
  EXPECT_FLOAT_EQ(y[0], 1.0f / (1 + (1 + 4)));
  EXPECT_FLOAT_EQ(y[1], 2.0f / (1 + 4));
}

TEST(DifferentialRules, LrnAddsEachWindowByItself) {
  // A window that slides would subtract 3e8 from a sum that has lost the small squares.
  const auto y =
      run_floats("LRN", {floats({1, 3, 1}, {17'000, 1e-3f, 1e-3f})}, {{"size", int64_t{1}}, {"alpha", 1.0}, {"beta", 0.5}, {"bias", 2.0}});
  EXPECT_FLOAT_EQ(y[1], static_cast<float>(1e-3f / std::sqrt(2 + 1e-6)));
  EXPECT_EQ(y[1], y[2]);
}

TEST(DifferentialRules, GlobalMaxPoolKeepsRank) {
  EXPECT_EQ(run1("GlobalMaxPool", {floats({1, 2, 3}, {1, 2, 3, 4, 5, 6})})->shape, (Shape{1, 2, 1}));
}

TEST(DifferentialRules, ResizeCoordinates) {
  const Tensor x = floats({2}, {0, 1});
  const std::vector<Attribute> linear = {{"mode", std::string("linear")}, {"coordinate_transformation_mode", std::string("asymmetric")}};
  // The extent stays 2, the coordinates are divided by the scale that was given.
  EXPECT_FLOAT_EQ(run_floats("Resize", {x, nullptr, floats({1}, {1.25f})}, linear)[1], 0.8f);
  // A tap of weight 0 is not read.
  EXPECT_EQ(run_floats("Resize", {floats({2}, {3, nan}), nullptr, floats({1}, {1})}, linear)[0], 3.0f);
}

TEST(DifferentialRules, OneElementIsTheFirstInPytorchHalfPixel) {
  // 3 / 2 is 1: the coordinate is 0 then, not 0.5.
  EXPECT_EQ(run_floats("Resize", {floats({3}, {8, 0, 4}), nullptr, floats({1}, {0.5f})},
                       {{"mode", std::string("linear")}, {"coordinate_transformation_mode", std::string("pytorch_half_pixel")}}),
            std::vector<float>{8});
}

TEST(DifferentialRules, NearestCoordinatesAreF32) {
  // 1.5 / 0.6 - 0.5 is 2 in f32.
  const auto y =
      run_floats("Resize", {floats({8}, {0, 1, 2, 3, 4, 5, 6, 7}), nullptr, floats({1}, {0.6f})},
                 {{"nearest_mode", std::string("floor")}, {"coordinate_transformation_mode", std::string("pytorch_half_pixel")}});
  EXPECT_EQ(y, (std::vector<float>{0, 2, 3, 5}));
  // 3 * 4 / 6.5 is less than 2, where the length is not rounded down; 1 * 4 / (0.6 * 5 - 1) is 2 in f32.
  const Tensor five = floats({5}, {0, 1, 2, 3, 4});
  const std::vector<Attribute> aligned = {{"nearest_mode", std::string("floor")},
                                          {"coordinate_transformation_mode", std::string("align_corners")}};
  EXPECT_EQ(run_floats("Resize", {five, nullptr, floats({1}, {1.5f})}, aligned), (std::vector<float>{0, 0, 1, 1, 2, 3, 3}));
  EXPECT_EQ(run_floats("Resize", {five, nullptr, floats({1}, {0.6f})}, aligned), (std::vector<float>{0, 2, 4}));
}

// ---------------------------------------------------------------- the rest

TEST(DifferentialRules, UnsortedUniqueKeepsTheOtherExtents) {
  const auto outputs =
      run(call_of("Unique", {tensor<int32_t>({2, 3}, {4, 1, 4, 5, 2, 5})}, {{"axis", int64_t{1}}, {"sorted", int64_t{0}}}, 1));
  EXPECT_EQ(outputs[0]->shape, (Shape{2, 2}));
  EXPECT_EQ(values<int32_t>(*outputs[0]), (std::vector<int32_t>{4, 1, 5, 2}));
}

TEST(DifferentialRules, OneHotPutsValuesUnchanged) {
  EXPECT_EQ(run_floats("OneHot", {ints({1}), ints({2}), floats({2}, {0.1f, inf})}), (std::vector<float>{0.1f, inf}));
}

TEST(DifferentialRules, SlicesToTheEndsOfIntegers) {
  const Tensor x = floats({3}, {1, 2, 3});
  const auto sliced = [&](int64_t start, int64_t end, int64_t step) {
    return run_floats("Slice", {x, ints({start}), ints({end}), ints({0}), ints({step})});
  };
  EXPECT_EQ(sliced(0, INT64_MAX, 1), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(sliced(INT64_MAX, INT64_MIN, -1), (std::vector<float>{3, 2, 1}));
  EXPECT_EQ(sliced(1, 2, INT64_MIN), std::vector<float>{});
  EXPECT_EQ(sliced(0, INT64_MIN, 1), std::vector<float>{});
  EXPECT_EQ(sliced(0, INT64_MAX, INT32_MAX), std::vector<float>{1});
}

}  // namespace
}  // namespace heddle::testing
