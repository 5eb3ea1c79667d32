#include "transform/transform.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "infer/infer.h"
#include "infer/registry_evaluator.h"
#include "resolve/resolve.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

TypedNet typed(const Runtime& runtime, Net net) {
  const auto registry = Internals::of(runtime).registry.snapshot();
  auto resolved = resolve(std::move(net), registry);
  EXPECT_TRUE(resolved.ok()) << resolved.status().text();
  auto result = infer(std::move(*resolved), registry, {});
  EXPECT_TRUE(result.ok()) << result.status().text();
  return std::move(*result);
}

std::vector<std::string> types(const TypedNet& net) {
  std::vector<std::string> names;
  for (const Node& node : net.net.nodes) names.push_back(node.type);
  return names;
}

TEST(Transform, FoldsBatchNormalizationAndFusesEpilogues) {
  const Runtime r = runtime();
  const auto evaluator = make_registry_evaluator(Internals::of(r).registry.snapshot());
  auto net = optimize(typed(r, convolution_net()), *evaluator, {});
  ASSERT_TRUE(net.ok()) << net.status().text();
  EXPECT_EQ(types(*net), (std::vector<std::string>{"Conv", "Conv", "GlobalAveragePool", "Flatten", "Gemm", "Softmax"}));
  const Node& first = net->net.nodes[0];
  ASSERT_EQ(first.epilogue.size(), 1u);
  EXPECT_EQ(first.epilogue[0].expression, "max(acc, 0)");
  const Node& second = net->net.nodes[1];
  ASSERT_EQ(second.epilogue.size(), 2u);
  EXPECT_EQ(second.epilogue[0].operand_kind, HEDDLE_OPERAND_SAME_SHAPE);
}

TEST(Transform, FoldedWeightsAreScaledByHand) {
  const Runtime r = runtime();
  const auto evaluator = make_registry_evaluator(Internals::of(r).registry.snapshot());
  auto net = fold_batch_normalization(typed(r, convolution_net()));
  ASSERT_TRUE(net.ok());
  auto folded = fold_constants(std::move(*net), *evaluator, {});
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

// Two of three elements are distinct: what was inferred at the bound, three, is two once that is folded.
TEST(Transform, WhatFollowsAFoldedExtentIsInferredAgain) {
  for (const bool late_operand : {false, true}) {
    NetBuilder b("found");
    const float content[] = {1, 0, 1};
    const ValueId found = b.add1("Unique", "found", {b.constant("x", Blob::copy_of(DType::f32, Shape{3}, content))});
    const ValueId s = b.input("s", DType::f32, Shape{});
    const ValueId y = b.add1("Max", "max", {found, late_operand ? b.add1("Unique", "other", {s}) : s});
    b.output(b.add1("Neg", "neg", {y}));
    const Runtime r = runtime();
    Session session = open(r, b.finish());
    const float half = 0.5f;
    TensorView input;
    input.dtype = DType::f32;
    input.data = const_cast<float*>(&half);
    const auto results = session.run({input});
    ASSERT_TRUE(results.ok()) << results.status().text();
    ASSERT_EQ((*results)[0].shape(), (Shape{2}));
    EXPECT_EQ(static_cast<const float*>((*results)[0].data())[0], -0.5f);
    EXPECT_EQ(static_cast<const float*>((*results)[0].data())[1], -1.0f);
  }
}

// With neither variance nor epsilon the factor is infinite: what has no weight would become a NaN where the sum gives an infinity.
TEST(Transform, BatchNormalizationThatIsNotFiniteIsNotFolded) {
  const Runtime r = runtime();
  for (const bool finite : {true, false}) {
    NetBuilder b("normalization");
    const ValueId x = b.input("x", DType::f32, Shape{1, 1, 4, 4});
    const float one = 1, zero = 0, variance = finite ? 1.0f : 0.0f;
    const auto constant = [&](const char* name, float value) { return b.constant(name, Blob::copy_of(DType::f32, Shape{1}, &value)); };
    const ValueId w = b.constant("w", Blob::copy_of(DType::f32, Shape{1, 1, 1, 1}, &one));
    b.output(b.add1("BatchNormalization", "bn",
                    {b.add1("Conv", "conv", {x, w}), constant("scale", one), constant("shift", one), constant("mean", zero),
                     constant("variance", variance)},
                    {{"epsilon", 0.0}}));
    auto net = fold_batch_normalization(typed(r, b.finish()));
    ASSERT_TRUE(net.ok()) << net.status().text();
    const auto kept = types(*net);
    EXPECT_EQ(std::count(kept.begin(), kept.end(), "BatchNormalization"), finite ? 0 : 1);
  }
}

// Sums that overflow by themselves are what they are scaled to. A known difference to the operators apart.
TEST(Transform, FoldedBatchNormalizationScalesBeforeItAdds) {
  NetBuilder b("overflow");
  const float weights[] = {1, 1}, one = 1, zero = 0, variance = 1e4f;
  const auto constant = [&](const char* name, const float& value) { return b.constant(name, Blob::copy_of(DType::f32, Shape{1}, &value)); };
  const ValueId w = b.constant("w", Blob::copy_of(DType::f32, Shape{1, 2, 1, 1}, weights));
  b.output(b.add1("BatchNormalization", "bn",
                  {b.add1("Conv", "conv", {b.input("x", DType::f32, Shape{1, 2, 1, 1}), w}), constant("scale", one),
                   constant("shift", zero), constant("mean", zero), constant("variance", variance)},
                  {{"epsilon", 0.0}}));
  const Runtime r = runtime();
  auto session = open_loaded(r, b.finish(), {});
  ASSERT_TRUE(session.ok()) << session.status().text();
  const float x[] = {3e38f, 3e38f};
  const auto results = session->run({TensorView{DType::f32, Shape{1, 2, 1, 1}, const_cast<float*>(x)}});
  ASSERT_TRUE(results.ok()) << results.status().text();
  EXPECT_FLOAT_EQ(static_cast<const float*>((*results)[0].data())[0], 6e36f);
}

TEST(Transform, ChainsOfPointwiseOperatorsBecomeOne) {
  NetBuilder b("chain");
  const ValueId x = b.input("x", DType::f32, Shape{4, 8});
  const ValueId y = b.input("y", DType::f32, Shape{8});
  ValueId z = b.add1("Add", "add", {x, y});
  z = b.add1("Sigmoid", "sigmoid", {z});
  z = b.add1("Mul", "mul", {z, x});
  z = b.add1("Mul", "scale", {z, b.constant_float("two", 2)});
  b.output(z);
  const Runtime r = runtime();
  const auto evaluator = make_registry_evaluator(Internals::of(r).registry.snapshot());
  auto net = optimize(typed(r, b.finish()), *evaluator, {});
  ASSERT_TRUE(net.ok()) << net.status().text();
  ASSERT_EQ(types(*net), (std::vector<std::string>{"Pointwise"}));
  EXPECT_EQ(std::get<std::string>(*net->net.nodes[0].find("program")), "mul(mul(sigmoid(add(x0, x1)), x0), 2)");
}

TEST(Transform, PruneDropsWhatNobodyReads) {
  NetBuilder b("dead");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  b.add1("Exp", "unused", {b.add1("Neg", "unused_too", {x})});
  b.output(b.add1("Identity", "copy", {b.add1("Abs", "abs", {x})}));
  const Runtime r = runtime();
  auto net = prune(typed(r, b.finish()));
  ASSERT_TRUE(net.ok());
  EXPECT_EQ(types(*net), (std::vector<std::string>{"Abs"}));
  EXPECT_EQ(net->net[net->net.outputs[0]].name, "copy");
}

TEST(Transform, AScalarLiteralThatGivesTheResultItsRankIsNotInlinedAway) {
  NetBuilder b("rank");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  const float one = 1;
  const ValueId wide = b.constant("wide", Blob::copy_of(DType::f32, Shape{1, 1, 1}, &one));
  b.output(b.add1("Exp", "exp", {b.add1("Add", "add", {x, wide})}));
  const Runtime r = runtime();
  const Session session = open(r, b.finish());
  Session s = session;
  const std::vector<float> values = {0, 1, 2, 3};
  auto result = s.run({{DType::f32, Shape{4}, const_cast<float*>(values.data())}});
  ASSERT_TRUE(result.ok()) << result.status().text();
  EXPECT_EQ((*result)[0].shape(), (Shape{1, 1, 4}));
}

}  // namespace
}  // namespace heddle
