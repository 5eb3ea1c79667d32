// fold_batch_normalization: a convolution does the work of the normalization after it where that changes no number by more than rounding.
#include <cmath>

#include "stages.h"

namespace heddle {
namespace {

using namespace testing_nets;
using namespace testing_stages;

// Conv and BatchNormalization; each member changes one condition of folding.
struct Normalized {
  DType dtype = DType::f32;
  bool biased = false, read_twice = false, conv_is_output = false, weights_are_fed = false, scale_is_fed = false, statistics = false;
  bool ordered = false;
  const char *conv_device = "", *device = "";
  float variance = 1;
  std::vector<Attribute> attributes = {{"epsilon", 0.0}};
  const char* first = "Conv";

  Net net() const {
    NetBuilder b("normalized");
    const auto content = [&](std::initializer_list<int64_t> dims, float value) {
      if (dtype == DType::f64) {
        std::vector<double> wide(static_cast<size_t>(Shape(dims).element_count()), value);
        return Blob::copy_of(dtype, dims, wide.data());
      }
      return std::shared_ptr<Blob>(std::const_pointer_cast<Blob>(blob(dims, value, 0)));
    };
    const auto each = [&](const char* name, float value) { return b.constant(name, content({2}, value)); };
    const ValueId x = b.input("x", dtype, Shape{1, 2, 3, 3});
    const ValueId w = weights_are_fed ? b.input("w", dtype, Shape{2, 2, 1, 1}) : b.constant("w", content({2, 2, 1, 1}, 3));
    std::vector<ValueId> inputs = {x, w};
    if (biased) inputs.push_back(each("bias", 4));
    const ValueId conv = b.add1(first, "conv", inputs);
    const ValueId scale = scale_is_fed ? b.input("scale", dtype, Shape{2}) : each("scale", 5);
    const auto normalized = b.add("BatchNormalization", "bn", {conv, scale, each("shift", 6), each("mean", 7), each("variance", variance)},
                                  statistics ? 3 : 1, attributes);
    b.output(normalized[0]);
    if (statistics) b.output(normalized[1]);
    if (read_twice) b.output(b.add1("Neg", "other", {conv}));
    if (conv_is_output) b.output(conv);
    if (ordered) b.net().nodes[1].control = {NodeId(0)};
    b.net().nodes[0].device = conv_device;
    b.net().nodes[1].device = device;
    return b.finish();
  }
};

// Without a convolution before it, but with a pointwise operator after it.
struct BeforeRelu {
  float variance = 4;
  bool relu = true;
  Net net() const {
    NetBuilder b("activated");
    std::vector<ValueId> inputs = {b.input("x", DType::f32, Shape{2, 2, 3})};
    for (const auto& [name, value] :
         {std::pair("scale", 6.0f), std::pair("shift", 5.0f), std::pair("mean", 1.0f), std::pair("variance", variance)})
      inputs.push_back(b.constant(name, blob({2}, value, 0)));
    const ValueId normalized = b.add1("BatchNormalization", "bn", inputs, {{"epsilon", 0.0}});
    b.output(relu ? b.add1("Relu", "relu", {normalized}) : normalized);
    return b.finish();
  }
};

TEST(FoldBatchNormalization, BecomesPointwiseBeforeAPointwiseOperator) {
  const std::string folded = transformed(BeforeRelu{}.net(), {"fold_batch_normalization", "fold_constants", "fuse_pointwise"});
  EXPECT_NE(folded.find("relu: f32[2, 2, 3] = heddle::Pointwise/1(x, bn/folded/means, bn/folded/factors, bn/folded/offsets) "
                        "program=\"max(add(mul(sub(x0, x1), x2), x3), 0)\""),
            std::string::npos)
      << folded;
  EXPECT_NE(folded.find("bn/folded/factors: f32[2, 1] = [3, 3]"), std::string::npos) << folded;
  EXPECT_NE(folded.find("bn/folded/offsets: f32[2, 1] = [5, 5]"), std::string::npos) << folded;
  const Net left = BeforeRelu{4, false}.net();
  EXPECT_EQ(transformed(left, {"fold_batch_normalization"}), transformed(left, {}));
  Stages bare;  // a device without programs may have no product and no sum either
  bare.plugins = {"bare"};
  bare.device = "bare:0";
  EXPECT_EQ(transformed(BeforeRelu{}.net(), {"fold_batch_normalization"}, bare), transformed(BeforeRelu{}.net(), {}, bare));
}

TEST(FoldBatchNormalization, ScalesTheWeightsAndMakesABias) {
  EXPECT_EQ(transformed(Normalized{}.net(), {"fold_batch_normalization"}), R"net(normalized(x: f32[1, 2, 3, 3]) -> (bn)
w: f32[2, 2, 1, 1] = [3, 3, 3, 3]
scale: f32[2] = [5, 5]
shift: f32[2] = [6, 6]
mean: f32[2] = [7, 7]
variance: f32[2] = [1, 1]
conv/folded/epsilon: f32[] = [0]
conv/folded/shape: i64[4] = [-1, 1, 1, 1]
conv/folded/variance: f32[2] = Add/14(variance, conv/folded/epsilon)
conv/folded/deviation: f32[2] = Sqrt/13(conv/folded/variance)
conv/folded/factor: f32[2] = Div/14(scale, conv/folded/deviation)
conv/folded/factors: f32[2, 1, 1, 1] = Reshape/14(conv/folded/factor, conv/folded/shape)
conv/folded/weights: f32[2, 2, 1, 1] = Mul/14(w, conv/folded/factors)
conv/folded/scaled: f32[2] = Mul/14(mean, conv/folded/factor)
conv/folded/bias: f32[2] = Sub/14(shift, conv/folded/scaled)
bn: f32[1, 2, 3, 3] = Conv(x, conv/folded/weights, conv/folded/bias) # conv
)net");
}

TEST(FoldBatchNormalization, ScalesABiasThatIsThere) {
  Normalized biased;
  biased.biased = true;
  EXPECT_EQ(transformed(biased.net(), {"fold_batch_normalization"}), R"net(normalized(x: f32[1, 2, 3, 3]) -> (bn)
w: f32[2, 2, 1, 1] = [3, 3, 3, 3]
bias: f32[2] = [4, 4]
scale: f32[2] = [5, 5]
shift: f32[2] = [6, 6]
mean: f32[2] = [7, 7]
variance: f32[2] = [1, 1]
conv/folded/epsilon: f32[] = [0]
conv/folded/shape: i64[4] = [-1, 1, 1, 1]
conv/folded/variance: f32[2] = Add/14(variance, conv/folded/epsilon)
conv/folded/deviation: f32[2] = Sqrt/13(conv/folded/variance)
conv/folded/factor: f32[2] = Div/14(scale, conv/folded/deviation)
conv/folded/factors: f32[2, 1, 1, 1] = Reshape/14(conv/folded/factor, conv/folded/shape)
conv/folded/weights: f32[2, 2, 1, 1] = Mul/14(w, conv/folded/factors)
conv/folded/centred: f32[2] = Sub/14(bias, mean)
conv/folded/scaled: f32[2] = Mul/14(conv/folded/centred, conv/folded/factor)
conv/folded/bias: f32[2] = Add/14(conv/folded/scaled, shift)
bn: f32[1, 2, 3, 3] = Conv(x, conv/folded/weights, conv/folded/bias) # conv
)net");
}

TEST(FoldBatchNormalization, FoldsToConstants) {
  Normalized biased;
  biased.biased = true;
  EXPECT_EQ(transformed(biased.net(), {"fold_batch_normalization", "fold_constants"}), R"net(normalized(x: f32[1, 2, 3, 3]) -> (bn)
conv/folded/weights: f32[2, 2, 1, 1] = [15, 15, 15, 15]
conv/folded/bias: f32[2] = [-9, -9]
bn: f32[1, 2, 3, 3] = Conv(x, conv/folded/weights, conv/folded/bias) # conv
)net");
}

// Returns whether the normalization is still there.
bool kept(const Normalized& given) {
  return transformed(given.net(), {"fold_batch_normalization"}).find("BatchNormalization") != std::string::npos;
}

TEST(FoldBatchNormalization, LeavesWhatItCannotSayInWeights) {
  EXPECT_FALSE(kept({}));
  EXPECT_TRUE(kept({.read_twice = true}));
  EXPECT_TRUE(kept({.conv_is_output = true}));
  EXPECT_TRUE(kept({.weights_are_fed = true}));
  EXPECT_TRUE(kept({.scale_is_fed = true}));
  EXPECT_TRUE(kept({.ordered = true}));
  EXPECT_TRUE(kept({.dtype = DType::f64}));
  EXPECT_TRUE(kept({.first = "ConvTranspose"}));
  EXPECT_TRUE(kept({.statistics = true, .attributes = {{"training_mode", int64_t{1}}}}));
  EXPECT_TRUE(kept({.attributes = {{"training_mode", int64_t{1}}}}));
}

// The convolution would do on its device work that was placed on another one.
TEST(FoldBatchNormalization, LeavesWhatRunsOnAnotherDevice) {
  EXPECT_TRUE(kept({.device = "sim:0"}));
  EXPECT_TRUE(kept({.conv_device = "sim:0", .device = "sim:1"}));
  EXPECT_FALSE(kept({.conv_device = "sim", .device = "sim:0"}));
}

// Operators that it adds to compute the weights run where the convolution does.
TEST(FoldBatchNormalization, AddsOperatorsWhereTheConvolutionRuns) {
  const Typed made = typed(Normalized{.conv_device = "sim:0", .device = "sim:0"}.net());
  Findings findings;
  auto folded = fold_batch_normalization(place(made.net, host_target(), findings));
  ASSERT_TRUE(folded.ok()) << folded.status().text();
  ASSERT_GT(folded->net.nodes.size(), 2u);
  for (const Node& node : folded->net.nodes) EXPECT_EQ(folded->device_of(node), "sim:0") << node.name;
}

// With neither variance nor epsilon the factor is infinite: a zero weight would become a NaN where the sum gives an infinity.
TEST(FoldBatchNormalization, LeavesFactorsThatAreNotFinite) {
  EXPECT_TRUE(kept({.variance = 0}));
  EXPECT_FALSE(kept({.variance = 0, .attributes = {}}));
  EXPECT_TRUE(kept({.variance = 1e-45f, .attributes = {{"epsilon", -1e-45}}}));
}

TEST(FoldBatchNormalization, FoldedWeightsAreScaledByHand) {
  Typed made = typed(convolution_net());
  auto net = fold_batch_normalization(std::move(made.net));
  ASSERT_TRUE(net.ok());
  auto folded = fold_constants(std::move(*net), *made.evaluator, host_target());
  ASSERT_TRUE(folded.ok()) << folded.status().text();
  const Node& conv = folded->net.nodes[0];
  ASSERT_EQ(conv.inputs.size(), 3u);
  const auto weights = folded->known[conv.inputs[1].index];
  ASSERT_TRUE(weights);
  const auto original = blob(Shape{8, 8, 3, 3}, -0.2f, 0.005f);
  for (int channel = 0; channel < 8; ++channel) {
    const float factor = (0.5f + 0.1f * static_cast<float>(channel)) / std::sqrt(1.0f + 0.1f * static_cast<float>(channel) + 1e-5f);
    const float w = reinterpret_cast<const float*>(original->data)[channel * 72 + 3];
    EXPECT_NEAR(reinterpret_cast<const float*>(weights->data)[channel * 72 + 3], w * factor, 1e-6f);
  }
}

// Sums that overflow before scaling give the scaled value. This is a known difference from the separate operators.
TEST(FoldBatchNormalization, ScalesBeforeItAdds) {
  NetBuilder b("overflow");
  const float weights[] = {1, 1}, one = 1, zero = 0, variance = 1e4f;
  const auto constant = [&](const char* name, const float& value) { return b.constant(name, Blob::copy_of(DType::f32, Shape{1}, &value)); };
  const ValueId w = b.constant("w", Blob::copy_of(DType::f32, Shape{1, 2, 1, 1}, weights));
  b.output(b.add1("BatchNormalization", "bn",
                  {b.add1("Conv", "conv", {b.input("x", DType::f32, Shape{1, 2, 1, 1}), w}), constant("scale", one),
                   constant("shift", zero), constant("mean", zero), constant("variance", variance)},
                  {{"epsilon", 0.0}}));
  Session session = open(runtime(), b.finish());
  const float x[] = {3e38f, 3e38f};
  const auto results = session.run({view(x, DType::f32, Shape{1, 2, 1, 1})});
  ASSERT_TRUE(results.ok()) << results.status().text();
  EXPECT_FLOAT_EQ(static_cast<const float*>((*results)[0].data())[0], 6e36f);
}

}  // namespace
}  // namespace heddle
