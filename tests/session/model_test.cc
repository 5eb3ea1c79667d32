// Sessions of several nets: variables by name, plans and memory of each, and the conflicts between two nets about one variable.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "load/save.h"
#include "load/temporary_folder.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

std::vector<float> floats_of(const Tensor& tensor) {
  const auto* const data = static_cast<const float*>(tensor.data());
  return {data, data + tensor.shape().element_count()};
}

// w and b decrease by the gradient.
Net training_net() {
  NetBuilder b("train");
  const ValueId w = b.variable("w", blob(Shape{3}, 1, 0), true), bias = b.variable("b", blob(Shape{3}, 8, 0), true);
  const ValueId gradient = b.input("gradient", DType::f32, Shape{3}), rate = b.constant_float("rate", 1);
  b.output(b.add1("SgdUpdate", "next_w", {w, gradient, rate}, {}, "heddle"));
  b.output(b.add1("SgdUpdate", "next_b", {bias, gradient, rate}, {}, "heddle"));
  return b.finish();
}

// x w + b, with the variables in another order, and one of its own between them.
Net predicting_net(const std::shared_ptr<const Blob>& w = blob(Shape{3}, 1, 0)) {
  NetBuilder b("predict");
  const ValueId bias = b.variable("b", blob(Shape{3}, 8, 0)), own = b.variable("own", blob(Shape{3}, 100, 0));
  const ValueId weights = b.variable("w", w), x = b.input("x", DType::f32, Shape{3});
  const ValueId y = b.add1("Add", "y", {b.add1("Mul", "product", {x, weights}), bias});
  b.output(b.add1("Add", "sum", {y, own}));
  return b.finish();
}

std::vector<Net> both() {
  std::vector<Net> nets;
  nets.push_back(training_net());
  nets.push_back(predicting_net());
  return nets;
}

Session open_both(const Runtime& r) {
  auto session = r.open(both());
  EXPECT_TRUE(session.ok()) << session.status().text();
  return *session;
}

std::vector<float> run(Session& session, std::vector<float> input) {
  auto result = session.run({{DType::f32, Shape{3}, input.data()}});
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? floats_of((*result)[0]) : std::vector<float>();
}

TEST(Models, NetsHaveTheirVariablesInCommon) {
  for (const int threads : {1, 2}) {
    const Runtime r = runtime(threads);
    Session train = open_both(r);
    EXPECT_EQ(train.nets(), (std::vector<std::string>{"train", "predict"}));
    EXPECT_EQ(train.name(), "train");
    EXPECT_EQ(train.variables(), (std::vector<std::string>{"w", "b", "own"}));
    EXPECT_EQ(train.variable_bytes(), 3 * 3 * 4);
    auto predict = train.net("predict");
    ASSERT_TRUE(predict.ok()) << predict.status().text();
    EXPECT_EQ(predict->name(), "predict");
    EXPECT_EQ(predict->inputs()[0].name, "x");
    EXPECT_EQ(run(*predict, {1, 2, 3}), (std::vector<float>{109, 110, 111}));
    EXPECT_EQ(run(train, {1, 0, 2}), (std::vector<float>{0, 1, -1}));
    EXPECT_EQ(run(*predict, {1, 2, 3}), (std::vector<float>{107, 110, 103}));
    EXPECT_EQ(floats_of(*predict->read_variable("w")), (std::vector<float>{0, 1, -1}));
    EXPECT_EQ(floats_of(*train.read_variable("b")), (std::vector<float>{7, 8, 6}));
  }
}

TEST(Models, AHandleKeepsTheSessionAlive) {
  std::optional<Session> predict;
  {
    Session train = open_both(runtime());
    predict = *train.net("predict");
    EXPECT_EQ(run(train, {1, 1, 1}), (std::vector<float>{0, 0, 0}));
  }
  EXPECT_EQ(run(*predict, {1, 1, 1}), (std::vector<float>{107, 107, 107}));
  EXPECT_TRUE(predict->net("train").ok());
}

TEST(Models, PlansAreOfEachNetAndTrimIsOfAll) {
  Session train = open_both(runtime());
  Session predict = *train.net("predict");
  EXPECT_EQ((*train.plan())->net, "train");
  EXPECT_EQ((*predict.plan())->net, "predict");
  train.trim(0);
  EXPECT_EQ(run(predict, {0, 0, 0}), (std::vector<float>{108, 108, 108}));
}

TEST(Models, ContextsOfItsNetsMayWorkInOneMemory) {
  std::vector<Net> nets;
  nets.push_back(convolution_net(4));
  nets.push_back(convolution_net(1));
  nets[1].name = "small";
  auto large = runtime().open(std::move(nets));
  ASSERT_TRUE(large.ok()) << large.status().text();
  const SharedMemory memory;
  const auto first = large->prepare_on(memory);
  ASSERT_TRUE(first.ok()) << first.status().text();
  const int64_t before = memory.bytes();
  const auto second = large->net("small")->prepare_on(memory);
  ASSERT_TRUE(second.ok()) << second.status().text();
  EXPECT_GT(second->planned_bytes(), 0);
  EXPECT_EQ(memory.bytes(), before) << "the smaller one costs nothing";
}

// Each evaluation sees both variables after the same step: their difference stays 7.
TEST(Models, EvaluationsSeeOneSetOfVariables) {
  Session train = open_both(runtime());
  std::atomic<bool> done{false};
  std::atomic<int> evaluations{0}, torn{0};
  std::vector<std::thread> evaluators;
  for (int i = 0; i < 2; ++i)
    evaluators.emplace_back([&] {
      Session predict = *train.net("predict");
      // -w + b + own
      do {
        if (run(predict, {-1, -1, -1}) != std::vector<float>{107, 107, 107}) ++torn;
        ++evaluations;
      } while (!done.load());
    });
  for (int step = 0; step < 200; ++step) run(train, {1, 2, 3});
  done.store(true);
  for (std::thread& evaluator : evaluators) evaluator.join();
  EXPECT_EQ(torn.load(), 0);
  EXPECT_GT(evaluations.load(), 0);
  EXPECT_EQ(floats_of(*train.read_variable("w")), (std::vector<float>{-199, -399, -599}));
}

TEST(Models, NetsOfFiles) {
  const testing::TemporaryFolder folder;
  ASSERT_TRUE(save_net(training_net(), folder / "train.heddle").ok());
  ASSERT_TRUE(save_net(predicting_net(), folder / "predict.json").ok());
  auto session = runtime().open(std::vector<std::string>{(folder / "train.heddle").native(), (folder / "predict.json").native()});
  ASSERT_TRUE(session.ok()) << session.status().text();
  EXPECT_EQ(session->files().size(), 2u);
  run(*session, {1, 1, 1});
  Session predict = *session->net("predict");
  EXPECT_EQ(run(predict, {1, 1, 1}), (std::vector<float>{107, 107, 107}));
}

Code refused(std::vector<Net> nets, const std::string& says) {
  const auto session = runtime().open(std::move(nets));
  EXPECT_FALSE(session.ok());
  if (session.ok()) return Code::ok;
  EXPECT_NE(session.status().text().find(says), std::string::npos) << session.status().text();
  return session.status().code();
}

std::vector<Net> with_w(const std::shared_ptr<const Blob>& w) {
  std::vector<Net> nets;
  nets.push_back(training_net());
  nets.push_back(predicting_net(w));
  return nets;
}

TEST(Models, WhatTwoNetsMayNotSay) {
  EXPECT_EQ(refused(with_w(blob(Shape{1}, 1, 0)), R"(variable "w" is f32[1] in net "predict", and another in net "train")"),
            Code::shape_mismatch);
  const std::vector<double> doubles = {1, 1, 1};
  NetBuilder b("other");
  b.output(b.add1("Neg", "y", {b.variable("w", Blob::copy_of(DType::f64, Shape{3}, doubles.data()))}));
  std::vector<Net> nets;
  nets.push_back(training_net());
  nets.push_back(b.finish());
  EXPECT_EQ(refused(std::move(nets), R"(variable "w" is f64[3] in net "other", and another in net "train")"), Code::dtype_mismatch);
  EXPECT_EQ(refused(with_w(blob(Shape{3}, 2, 0)), R"(variable "w" begins with other numbers in net "predict" than in net "train")"),
            Code::weights_mismatch);
  nets = both();
  nets[1].name = "train";
  EXPECT_EQ(refused(std::move(nets), R"(two nets are called "train")"), Code::duplicate_name);
  nets = both();
  nets[1].name.clear();
  EXPECT_EQ(refused(std::move(nets), "net 1 of 2 has no name"), Code::duplicate_name);
  EXPECT_EQ(refused({}, "there is no net"), Code::invalid_argument);
  const Session session = open_both(runtime());
  const auto missing = session.net("predct");
  EXPECT_EQ(missing.status().code(), Code::unknown_name);
  EXPECT_NE(missing.status().text().find(R"(did you mean "predict")"), std::string::npos) << missing.status().text();
}

TEST(Models, OptionsAreForTheNetsThatHaveThem) {
  const auto symbolic = [](const char* name, const char* symbol) {
    NetBuilder b(name);
    DeclaredType type = DeclaredType::of(DType::f32, Shape{2});
    type.dims[0] = Dim::named(symbol);
    b.output(b.add1("Neg", "y", {b.input("x", type)}));
    return b.finish();
  };
  const auto open = [&](const SessionOptions& options) {
    std::vector<Net> nets;
    nets.push_back(symbolic("one", "N"));
    nets.push_back(symbolic("two", "M"));
    return runtime().open(std::move(nets), options);
  };
  SessionOptions options;
  options.symbols = {{"N", 4}, {"M", 6}};
  auto session = open(options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  EXPECT_EQ(session->prepare()->input(0).shape, (Shape{4}));
  EXPECT_EQ(session->net("two")->prepare()->input(0).shape, (Shape{6}));
  options.symbols.push_back({"K", 1});
  session = open(options);
  EXPECT_FALSE(session.ok() && session->prepare().ok()) << "nobody has it";
}

// ---------------------------------------------------------------- variables without content

Net without_content(const std::string& name = "train") {
  NetBuilder b(name);
  const ValueId w = b.variable("w", DType::f32, Shape{3}, "normal(0, 1)", true);
  const ValueId gradient = b.input("gradient", DType::f32, Shape{3}), rate = b.constant_float("rate", 1);
  b.output(b.add1("SgdUpdate", "next_w", {w, gradient, rate}, {}, "heddle"));
  b.updates(b.net().outputs[0], w);
  return b.finish();
}

std::vector<float> w_of(const Session& session) {
  const auto w = session.read_variable("w");
  EXPECT_TRUE(w.ok()) << w.status().text();
  return w.ok() ? floats_of(*w) : std::vector<float>();
}

TEST(Models, AVariableWithoutContentIsFilledByItsRuleAndTheSeed) {
  SessionOptions options;
  options.seed = 7;
  const Session one = open(runtime(), without_content(), options), same = open(runtime(3), without_content(), options);
  options.seed = 8;
  const Session other = open(runtime(), without_content(), options);
  EXPECT_EQ(w_of(one), w_of(same));
  EXPECT_NE(w_of(one), w_of(other));
}

TEST(Models, FillingAgainDoesNotOverwriteWhatWasTrainedUnlessTold) {
  SessionOptions options;
  options.seed = 7;
  Session session = open(runtime(), without_content(), options);
  const std::vector<float> first = w_of(session);
  ASSERT_TRUE(session.initialize(8).ok());  // nothing was trained yet
  EXPECT_NE(w_of(session), first);
  run(session, {1, 2, 3});
  const std::vector<float> trained = w_of(session);
  const Status refused = session.initialize(7);
  EXPECT_EQ(refused.code(), Code::hazard);
  EXPECT_NE(refused.text().find("variable \"w\" was written since it was initialised"), std::string::npos) << refused.text();
  EXPECT_EQ(w_of(session), trained);
  ASSERT_TRUE(session.initialize(7, true).ok());
  EXPECT_EQ(w_of(session), first);
}

// A file of a few bytes may declare any number of them: their total is checked against the limit of plans.
TEST(Models, VariablesWithoutContentAreLimitedTogether) {
  const auto net = [] {
    NetBuilder b("many");
    for (const char* name : {"a", "b", "c"})
      b.output(b.add1("Neg", std::string("minus_") + name, {b.variable(name, DType::f32, Shape{100}, "constant(1)")}));
    return b.finish();
  };
  SessionOptions options;
  options.limits.plan_bytes = 1199;
  const Status refused = runtime().open(net(), options).status();
  EXPECT_EQ(refused.code(), Code::limit_exceeded);
  EXPECT_NE(refused.text().find("variable \"c\" without content takes 400 B"), std::string::npos) << refused.text();
  options.limits.plan_bytes = 1200;
  EXPECT_TRUE(runtime().open(net(), options).ok());
}

TEST(Models, ContentGoesBeforeARuleAndTwoRulesAreRefused) {
  NetBuilder with("with content"), other("other rule");
  with.output(with.add1("Neg", "minus", {with.variable("w", blob(Shape{3}, 5, 1))}));
  other.output(other.add1("Neg", "minus", {other.variable("w", DType::f32, Shape{3}, "constant(2)")}));
  std::vector<Net> nets;
  nets.push_back(without_content());
  nets.push_back(with.finish());
  const auto both = runtime().open(std::move(nets));
  ASSERT_TRUE(both.ok()) << both.status().text();
  EXPECT_EQ(w_of(*both), (std::vector<float>{5, 6, 7}));
  nets.clear();
  nets.push_back(without_content());
  nets.push_back(other.finish());
  EXPECT_EQ(runtime().open(std::move(nets)).status().code(), Code::weights_mismatch);
}

}  // namespace
}  // namespace heddle
