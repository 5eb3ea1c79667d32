// Nets with their gradients: which gradients accumulate, stop, and are refused.
#include "derive/derived_run.h"

namespace heddle {
namespace {

using namespace testing_derive;

std::vector<double> gradient_of(const DerivedNet& derived, size_t output, const std::vector<Shape>& shapes, const Values& inputs) {
  Session session = testing_nets::open(testing_nets::runtime(), Net(derived.net));
  const Values all = outputs_of(session, shapes, inputs);
  return output < all.size() ? all[output] : std::vector<double>();
}

TEST(Differentiate, ChainsOfPointwiseOperatorsThatBroadcast) {
  NetBuilder b("broadcast");
  const ValueId x = b.input("x", DType::f64, Shape{2, 3, 4}), row = b.input("row", DType::f64, Shape{4});
  const ValueId column = b.input("column", DType::f64, Shape{3, 1}), scalar = b.input("scalar", DType::f64, Shape{});
  const ValueId product = b.add1("Mul", "product", {x, row});
  const ValueId sum = b.add1("Add", "sum", {product, column});
  const ValueId scaled = b.add1("Div", "scaled", {b.add1("Tanh", "tanh", {sum}), b.add1("Exp", "exp", {scalar})});
  b.output(b.add1("Mul", "loss", {scaled, scaled}));
  expect_gradients(b.finish(), "loss", {numbers(Shape{2, 3, 4}, 1), numbers(Shape{4}, 2), numbers(Shape{3, 1}, 3), {0.3}});
}

// FEATURES E1: two losses, one of them intermediate.
TEST(Differentiate, LossesThatAreComputedFromEachOtherCountBoth) {
  for (const double x : {1.0, 2.0, 3.0}) {
    NetBuilder b("two losses");
    const ValueId in = b.input("in", DType::f64, Shape{1}), two = b.constant("two", blob(Shape{1}, {2})),
                  three = b.constant("three", blob(Shape{1}, {3}));
    const ValueId m1 = b.add1("Mul", "m1", {in, two}), m2 = b.add1("Mul", "m2", {m1, three});
    b.output(m2);
    DifferentiateOptions options;
    options.losses = {"m1", "m2"};
    options.wanted = {"in"};
    options.outputs = true;
    const auto made = derived(b.finish(), options);
    ASSERT_TRUE(made.ok()) << made.status().text();
    EXPECT_EQ(gradient_of(*made, 1, {Shape{1}}, {{x}}), std::vector<double>{8});
  }
}

TEST(Differentiate, AValueThatIsReadOftenHasTheSumOfAll) {
  NetBuilder b("fan-out");
  const ValueId x = b.input("x", DType::f64, Shape{5});
  const ValueId a = b.add1("Sin", "a", {x}), c = b.add1("Mul", "c", {x, x}), d = b.add1("Mul", "d", {a, c});
  b.output(b.add1("Add", "loss", {d, x}));
  expect_gradients(b.finish(), "loss", {numbers(Shape{5}, 4)});
}

TEST(Differentiate, TheSameNetFitsEveryBatch) {
  NetBuilder b("batches");
  DeclaredType type;
  type.dtype = DType::f64;
  type.ranked = true;
  type.dims = {Dim::named("N"), Dim::of(3)};
  const ValueId x = b.input("x", type);
  const ValueId w = b.variable("w", blob(Shape{3}, {1, 2, 3}), true);
  b.output(b.add1("Mul", "loss", {x, w}));
  DifferentiateOptions options;
  options.losses = {"loss"};
  options.outputs = true;
  const auto made = derived(b.finish(), options);
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_EQ(made->gradients[0].dense, "w.gradient");
  EXPECT_EQ(gradient_of(*made, 1, {Shape{1, 3}}, {{1, 2, 3}}), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(gradient_of(*made, 1, {Shape{2, 3}}, {{1, 2, 3, 4, 5, 6}}), (std::vector<double>{5, 7, 9}));
}

// Plugins' functions that build gradients: the builder checks its arguments first.
TEST(Differentiate, NullsOfAPluginsGradientAreErrors) {
  for (const auto& [type, text] : {std::pair("GradientNulls", "emits \"Product\" with inputs, outputs or attributes that are null"),
                                   std::pair("GradientNullConstant", "adds a constant whose type is null")}) {
    NetBuilder b("nulls");
    const ValueId x = b.input("x", DType::f32, Shape{2});
    b.output(b.add1(type, "loss", {x, x}, {}, "liars"));
    DifferentiateOptions options;
    options.losses = {"loss"};
    options.wanted = {"x"};
    const auto made = derived(b.finish(), options, {"liars"});
    ASSERT_FALSE(made.ok()) << type;
    EXPECT_EQ(made.status().code(), Code::plugin_invalid) << made.status().text();
    EXPECT_NE(made.status().text().find("in the gradient of node \"loss\""), std::string::npos) << made.status().text();
    EXPECT_NE(made.status().diagnostic().message.find(text), std::string::npos) << made.status().text();
  }
}

TEST(Differentiate, NothingGoesThroughWhatStopsIt) {
  NetBuilder b("stopped");
  const ValueId x = b.input("x", DType::f64, Shape{2});
  const ValueId stopped = b.add1("StopGradient", "stopped", {b.add1("Exp", "exp", {x})}, {}, "heddle");
  b.output(b.add1("Mul", "loss", {stopped, x}));
  DifferentiateOptions options;
  options.losses = {"loss"};
  options.wanted = {"x"};
  options.outputs = true;
  const auto made = derived(b.finish(), options);
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_EQ(gradient_of(*made, 1, {Shape{2}}, {{0, 0}}), (std::vector<double>{1, 1}));
}

TEST(Differentiate, WhereEverythingIsStoppedNoLossDependsOnIt) {
  NetBuilder b("all stopped");
  const ValueId x = b.input("x", DType::f64, Shape{2});
  b.output(b.add1("StopGradient", "loss", {x}, {}, "heddle"));
  EXPECT_NE(refused(b.finish(), {{"loss"}, {"x"}, {}, {}, false}).find("no loss depends on \"x\""), std::string::npos);
}

// Such an output counts as if heddle::StopGradient followed it: d loss / dx is that of y alone, 1 / (1 + exp(-x)).
TEST(Differentiate, NothingComesFromAnOutputThatIsNotDifferentiable) {
  const auto net = [] {
    NetBuilder b("kept");
    const ValueId x = b.input("x", DType::f64, Shape{2});
    const std::vector<ValueId> made = b.add("SoftPlus", "soft", {x}, 2, {}, "guide");
    b.output(b.add1("Add", "loss", {made[0], b.add1("Exp", "exp", {made[1]})}));
    return b.finish();
  };
  DifferentiateOptions options;
  options.losses = {"loss"};
  options.wanted = {"x"};
  options.outputs = true;
  const auto made = derived(net(), options, {"guide_kept"});
  ASSERT_TRUE(made.ok()) << made.status().text();
  RuntimeOptions with_plugin;
  with_plugin.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/test/guide_kept.so"};
  with_plugin.default_plugins = false;
  with_plugin.threads = 1;
  const auto runtime = Runtime::create(with_plugin);
  ASSERT_TRUE(runtime.ok()) << runtime.status().text();
  Session session = testing_nets::open(*runtime, Net(made->net));
  EXPECT_EQ(outputs_of(session, {Shape{2}}, {{0, 0}})[1], (std::vector<double>{0.5, 0.5}));
  EXPECT_NE(refused(net(), {{"exp"}, {"x"}, {}, {}, false}, {"guide_kept"}).find("no loss depends on \"x\""), std::string::npos);
}

TEST(Differentiate, WhatIsWrongWithTheQuestionIsSaid) {
  const auto net = [] {
    NetBuilder b("question");
    const ValueId x = b.input("x", DType::f64, Shape{2}), n = b.input("n", DType::i64, Shape{2});
    b.output(b.add1("Exp", "loss", {x}));
    b.output(b.add1("Neg", "other", {n}));
    return b.finish();
  };
  const auto says = [&](const std::vector<std::string>& losses, const std::vector<std::string>& wanted) {
    return refused(net(), {losses, wanted, {}, {}, false});
  };
  EXPECT_NE(says({}, {"x"}).find("no loss was named"), std::string::npos);
  EXPECT_NE(says({"nothing"}, {"x"}).find("the net has no value \"nothing\""), std::string::npos);
  EXPECT_NE(says({"loss"}, {"x", "x"}).find("the gradient of \"x\" is wanted twice"), std::string::npos);
  EXPECT_NE(says({"loss"}, {"n"}).find("\"n\" is i64: it has no gradient"), std::string::npos);
  EXPECT_NE(says({"loss"}, {}).find("the net has no trainable variable"), std::string::npos);
}

// The variable is named by its name or by that of its value, requested or found in the net.
TEST(Differentiate, AVariableOfIntegersHasNoGradient) {
  const auto net = [] {
    NetBuilder b("counted");
    const ValueId x = b.input("x", DType::f64, Shape{2}), w = b.variable("w", blob(Shape{2}, {1, 2}), true);
    const int64_t numbers[] = {3, 4};
    const ValueId n = b.variable("n", Blob::copy_of(DType::i64, Shape{2}, numbers), true);
    b.output(b.add1("Mul", "loss", {b.add1("Mul", "product", {x, w}), b.add1("CastLike", "cast", {n, x})}));
    return b.finish();
  };
  for (const std::vector<std::string>& wanted : {std::vector<std::string>{"n"}, {}}) {
    const std::string said = refused(net(), {{"loss"}, wanted, {}, {}, false});
    EXPECT_NE(said.find("\"n\" is i64: it has no gradient"), std::string::npos) << said;
  }
  EXPECT_NE(refused(net(), {{"n"}, {"w"}, {}, {}, false}).find("\"n\" is i64"), std::string::npos);
}

TEST(Differentiate, AnOperatorWithoutAGradientIsNamed) {
  NetBuilder b("none");
  const ValueId x = b.input("x", DType::f64, Shape{2, 2});
  b.output(b.add1("Hardmax", "loss", {x}));
  const std::string said = refused(b.finish(), {{"loss"}, {"x"}, {}, {}, false});
  EXPECT_NE(said.find("operator Hardmax of node \"loss\" has no gradient"), std::string::npos) << said;
  EXPECT_NE(said.find("heddle::StopGradient"), std::string::npos) << said;
}

// FEATURES E2. The gradient of "product" by x needs the old w, and is computed only after w was overwritten.
TEST(Differentiate, AVersionThatIsOverwrittenBeforeItIsNeededIsRefused) {
  NetBuilder b("overwritten");
  const ValueId x = b.input("x", DType::f64, Shape{2}), c = b.constant("c", blob(Shape{2}, {1, 1}));
  const ValueId w = b.variable("w", blob(Shape{2}, {1, 2}));
  const ValueId product = b.add1("Mul", "product", {x, w});
  const ValueId next = b.add1("AccumulateAdd", "write", {w, c}, {}, "heddle");
  b.updates(next, w);
  b.output(b.add1("Mul", "loss", {product, next}));
  const std::string said = refused(b.finish(), {{"loss"}, {"x"}, {}, {}, false});
  EXPECT_NE(said.find("error[hazard]"), std::string::npos) << said;
  EXPECT_NE(
      said.find("the gradient of \"product\" needs version 0 of \"w\", which \"write\" (heddle::AccumulateAdd) overwrites with version 1"),
      std::string::npos)
      << said;
}

TEST(Differentiate, AnUpdateThatNothingDerivedNeedsComesLast) {
  NetBuilder b("statistics");
  const ValueId x = b.input("x", DType::f64, Shape{2});
  const ValueId w = b.variable("w", blob(Shape{2}, {1, 2}), true), seen = b.variable("seen", blob(Shape{2}, {0, 0}));
  const ValueId weighted = b.add1("Mul", "weighted", {b.add1("Mul", "product", {x, w}), seen});
  b.updates(b.add1("AccumulateAdd", "see", {seen, x}, {}, "heddle"), seen);
  b.output(b.add1("Exp", "loss", {weighted}));
  DifferentiateOptions options;
  options.losses = {"loss"};
  options.outputs = true;
  const auto made = derived(b.finish(), options);
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_EQ(made->net.nodes.back().name, "see");
  Session session = testing_nets::open(testing_nets::runtime(), Net(made->net));
  EXPECT_EQ(outputs_of(session, {Shape{2}}, {{3, 5}})[1], (std::vector<double>{0, 0}));  // seen was zero
  EXPECT_EQ(outputs_of(session, {Shape{2}}, {{0, 0}})[1], (std::vector<double>{0, 0}));  // x is zero
}

}  // namespace
}  // namespace heddle
