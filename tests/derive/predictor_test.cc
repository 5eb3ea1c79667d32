// Predictors, taken from training nets.
#include "derive/predictor/predictor.h"

#include "derive/control_nets.h"
#include "derive/training_net.h"

namespace heddle {
namespace {

using namespace testing_derive;

// A net that normalises, drops and multiplies, followed by a stop and a loss.
Net learner() {
  const bool yes = true;
  NetBuilder b("learner");
  const ValueId x = b.input("x", DType::f64, Shape{4, 2}), target = b.input("target", DType::f64, Shape{4, 1});
  const ValueId scale = b.variable("scale", blob(Shape{2}, {1, 2}), true), bias = b.variable("bias", blob(Shape{2}, {0, 1}), true);
  const ValueId mean = b.variable("mean", blob(Shape{2}, {0.5, 0})), variance = b.variable("variance", blob(Shape{2}, {1, 4}));
  const std::vector<ValueId> normal =
      b.add("BatchNormalization", "normal", {x, scale, bias, mean, variance}, 3, {{"training_mode", int64_t{1}}});
  b.updates(b.add1("Assign", "next_mean", {mean, normal[1]}, {}, "heddle"), mean);
  const ValueId ratio = b.constant("ratio", blob(Shape{}, {0.5})), mode = b.constant("mode", Blob::copy_of(DType::boolean, Shape{}, &yes));
  const ValueId dropped = b.add1("Dropout", "dropped", {normal[0], ratio, mode});
  const ValueId w = b.variable("w", blob(Shape{2, 1}, {3, -1}), true);
  const ValueId y = b.add1("MatMul", "y", {dropped, w});
  const ValueId held = b.add1("StopGradient", "held", {y}, {}, "heddle");
  b.add1("Identity", "shown", {held});
  const ValueId d = b.add1("Sub", "d", {y, target});
  b.output(b.add1("ReduceSum", "loss", {b.add1("Mul", "square", {d, d})}, {{"keepdims", int64_t{0}}}));
  return b.finish();
}

Net training() {
  TrainingOptions options;
  options.losses = {"loss"};
  options.optimizer = "adam";
  auto net = trained(learner(), options);
  EXPECT_TRUE(net.ok()) << net.status().text();
  return std::move(*net);
}

TEST(Predictor, HasWhatTheOutputNeedsAndNothingThatLearns) {
  const auto made = predictor(training(), {{}, {"shown"}, "predict"});
  ASSERT_TRUE(made.ok()) << made.status().text();
  std::vector<std::string> nodes, variables;
  for (const Node& node : made->nodes) nodes.push_back(node.name);
  for (const Variable& variable : made->variables) variables.push_back(variable.name);
  EXPECT_EQ(nodes, (std::vector<std::string>{"normal", "dropped", "y", "shown"}));
  EXPECT_EQ(variables, (std::vector<std::string>{"scale", "bias", "mean", "variance", "w"}));
  ASSERT_EQ(made->inputs.size(), 1u);
  EXPECT_EQ((*made)[made->inputs[0]].name, "x");
}

TEST(Predictor, AnOutputThatOnlyTrainingTellsApartKeepsItsName) {
  const auto made = predictor(training(), {{}, {"held", "y"}, "predict"});
  ASSERT_TRUE(made.ok()) << made.status().text();
  ASSERT_EQ(made->outputs.size(), 2u);
  EXPECT_EQ((*made)[made->outputs[0]].name, "held");
  EXPECT_EQ((*made)[made->outputs[1]].name, "y");
}

// FEATURES F4: inputs are renamed, and the device is another one.
TEST(Predictor, RenamesInputsAndOutputsAndPlacesOperators) {
  PredictorOptions options;
  options.outputs = {"y"};
  options.rename = {{"x", "y"}, {"y", "x"}};
  options.device = "sim:0";
  const auto made = predictor(training(), options);
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_EQ((*made)[made->inputs[0]].name, "y");
  EXPECT_EQ((*made)[made->outputs[0]].name, "x");
  for (const Node& node : made->nodes) EXPECT_EQ(node.device, "sim:0") << node.name;
  options.rename = {{"x", "w"}};
  EXPECT_EQ(predictor(training(), options).status().code(), Code::duplicate_name);
  options.rename = {{"w", "v"}};
  EXPECT_EQ(predictor(training(), options).status().code(), Code::unknown_name);
}

// x normalised by the running statistics, and nothing dropped: (x - mean) / sqrt(variance + 1e-5) * scale + bias, times w.
TEST(Predictor, GivesWhatInferenceDoes) {
  auto made = predictor(training(), {{"x"}, {"y"}, "predict"});
  ASSERT_TRUE(made.ok()) << made.status().text();
  Session session = testing_nets::open(testing_nets::runtime(), std::move(*made));
  const Values all = outputs_of(session, {Shape{4, 2}}, {{1.5, 2, 0.5, 0, 0, 0, 0, 4}});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_NEAR(all[0][0], 3 * 1 - (2 * 1 + 1), 1e-4);
  EXPECT_NEAR(all[0][1], 0 - 1, 1e-4);
  EXPECT_NEAR(all[0][3], -3 * 0.5 - (2 * 2 + 1), 1e-4);
}

TEST(Predictor, WhatCannotBeTakenOutIsNamed) {
  const Net net = training();
  const auto says = [&](const PredictorOptions& options) {
    const auto made = predictor(net, options);
    return made.ok() ? "it was made" : made.status().text();
  };
  EXPECT_NE(says({{}, {}, "p"}).find("no output was named"), std::string::npos);
  EXPECT_NE(says({{}, {"nothing"}, "p"}).find("the net has no value \"nothing\""), std::string::npos);
  EXPECT_NE(says({{"x"}, {"loss"}, "p"}).find("\"loss\" needs input \"target\" too"), std::string::npos);
  EXPECT_NE(says({{"w"}, {"y"}, "p"}).find("\"w\" is a variable, and no input"), std::string::npos);
  EXPECT_NE(says({{}, {"next_mean"}, "p"}).find("which the net has updated"), std::string::npos);
}

// x is normalised in either branch of an If, which gives the statistics to variables outside.
Net branches_that_normalise() {
  const auto branch = [](const std::string& name) {
    NetBuilder b(name);
    std::vector<ValueId> inputs;
    for (const char* each : {"x", "scale", "bias", "mean", "variance"}) inputs.push_back(taken(b, each));
    for (const ValueId each : b.add("BatchNormalization", "normal", inputs, 3, {{"training_mode", int64_t{1}}})) b.output(each);
    return testing_nets::subnet(b);
  };
  NetBuilder b("branches");
  const ValueId x = b.input("x", DType::f64, Shape{2, 1});
  const ValueId mean = b.variable("mean", blob(Shape{1}, {1})), variance = b.variable("variance", blob(Shape{1}, {4}));
  const ValueId scale = b.constant("scale", blob(Shape{1}, {2})), bias = b.constant("bias", blob(Shape{1}, {0.5}));
  const auto y = b.add("If", "chosen", {testing_nets::yes(b), x, scale, bias, mean, variance}, 3,
                       {{"then_branch", branch("then")}, {"else_branch", branch("else")}});
  b.updates(b.add1("Assign", "next_mean", {mean, y[1]}, {}, "heddle"), mean);
  b.updates(b.add1("Assign", "next_variance", {variance, y[2]}, {}, "heddle"), variance);
  b.output(b.add1("Identity", "shown", {y[0]}));
  return b.finish();
}

TEST(Predictor, NormalisesByRunningStatisticsInsideBranchesToo) {
  auto made = predictor(branches_that_normalise(), {{}, {"shown"}, "predict"});
  ASSERT_TRUE(made.ok()) << made.status().text();
  Session session = testing_nets::open(testing_nets::runtime(), std::move(*made));
  const Values all = outputs_of(session, {Shape{2, 1}}, {{3, 5}});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_NEAR(all[0][0], 2 * (3 - 1) / 2.0 + 0.5, 1e-4);
  EXPECT_NEAR(all[0][1], 2 * (5 - 1) / 2.0 + 0.5, 1e-4);
}

// The predictor would update a value that is not a variable of it.
TEST(Predictor, WhatABranchHasUpdatedIsRefused) {
  NetBuilder then_branch("then"), else_branch("else"), b("updates");
  const ValueId w = taken(then_branch, "w"), x = taken(then_branch, "x");
  const ValueId updated = then_branch.add1("AccumulateAdd", "updated", {w, x}, {}, "heddle");
  then_branch.output(then_branch.add1("Mul", "y", {updated, x}));
  then_branch.output(updated);
  const ValueId same = taken(else_branch, "w");
  else_branch.output(else_branch.add1("Identity", "z", {taken(else_branch, "x")}));
  else_branch.output(same);
  const ValueId variable = b.variable("w", blob(Shape{2}, {1, 2})), outer_x = b.input("x", DType::f64, Shape{2});
  const auto all = b.add("If", "branches", {testing_nets::yes(b), variable, outer_x}, 2,
                         {{"then_branch", testing_nets::subnet(then_branch)}, {"else_branch", testing_nets::subnet(else_branch)}});
  b.updates(all[1], variable);
  b.output(b.add1("Identity", "shown", {all[0]}));
  const auto made = predictor(b.finish(), {{}, {"shown"}, "predictor"});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::invalid_argument);
  EXPECT_NE(made.status().text().find("\"shown\" is made of \"w\", which \"branches\" updates in subnet \"then\""), std::string::npos)
      << made.status().text();
}

// Statistics that are read inside are still the running ones.
TEST(Predictor, StatisticsThatAreWantedOfBranchesAreTheRunningOnes) {
  Net net = branches_that_normalise();
  const ValueId seen = net[*net.find_value("next_mean")].producer.valid()
                           ? net.nodes[net[*net.find_value("next_mean")].producer.index].inputs[1]
                           : ValueId();
  ASSERT_TRUE(seen.valid());
  auto made = predictor(net, {{}, {net[seen].name}, "predict"});
  ASSERT_TRUE(made.ok()) << made.status().text();
  Session session = testing_nets::open(testing_nets::runtime(), std::move(*made));
  EXPECT_EQ(outputs_of(session, {Shape{2, 1}}, {{3, 5}}), (Values{{1}}));
}

}  // namespace
}  // namespace heddle
