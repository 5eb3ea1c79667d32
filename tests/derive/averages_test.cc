// Averages of trained variables: their values, their initial values, and predictors that use them.
#include "net/averages.h"

#include "derive/derived_run.h"
#include "derive/predictor/predictor.h"

namespace heddle {
namespace {

using namespace testing_derive;

TrainingOptions averaging(double decay, const char* optimizer = "momentum") {
  TrainingOptions options;
  options.losses = {"loss"};
  options.optimizer = optimizer;
  options.learning_rate = *LearningRate::parse(0.1, "constant");
  options.average = decay;
  return options;
}

// The sum of squares of x w + b; further variables are one that the loss does not read and one that is not trainable.
Net squares(DType dtype, bool by_rule = false) {
  NetBuilder b("squares");
  const auto numbers_of = [&](const Shape& shape, std::vector<double> values) -> std::shared_ptr<const Blob> {
    if (dtype == DType::f64) return blob(shape, values);
    const std::vector<float> narrow(values.begin(), values.end());
    return Blob::copy_of(DType::f32, shape, narrow.data());
  };
  const ValueId x = b.input("x", dtype, Shape{3, 2});
  const ValueId w = by_rule ? b.variable("w", dtype, Shape{2, 2}, "normal(0, 1)", true)
                            : b.variable("w", numbers_of(Shape{2, 2}, {1, -0.5, 0.25, 2}), true);
  const ValueId bias = b.variable("bias", numbers_of(Shape{2}, {0.125, 3}), true);
  b.variable("unused", numbers_of(Shape{1}, {7}), true);
  const ValueId fixed = b.variable("fixed", numbers_of(Shape{2}, {1, 1}));
  const ValueId y = b.add1("Mul", "y", {b.add1("Add", "sum", {b.add1("MatMul", "product", {x, w}), bias}), fixed});
  b.output(b.add1("ReduceSum", "loss", {b.add1("Mul", "square", {y, y})}, {{"keepdims", int64_t{0}}}));
  return b.finish();
}

std::vector<double> content(const Session& session, const std::string& variable) {
  const auto read = session.read_variable(variable);
  EXPECT_TRUE(read.ok()) << read.status().text();
  std::vector<double> values;
  for (int64_t i = 0; read.ok() && i < read->shape().element_count(); ++i)
    values.push_back(read->dtype() == DType::f64 ? static_cast<const double*>(read->data())[i]
                                                 : static_cast<double>(static_cast<const float*>(read->data())[i]));
  return values;
}

const std::vector<double> samples = {1, 2, -1, 0.5, 0.25, -2};

void step(Session& session, DType dtype) {
  const std::vector<float> narrow(samples.begin(), samples.end());
  const void* const data = dtype == DType::f64 ? static_cast<const void*>(samples.data()) : narrow.data();
  const auto ran = session.run({testing_nets::view(data, dtype, Shape{3, 2})});
  ASSERT_TRUE(ran.ok()) << ran.status().text();
}

// Compares the averages with the same recurrence, step by step in f64, over the weights that each step left.
TEST(Averages, AreThoseOfWhatEachStepLeft) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const char* optimizer : {"sgd", "momentum", "adam"}) {
      auto net = trained(squares(dtype), averaging(0.9, optimizer));
      ASSERT_TRUE(net.ok()) << net.status().text();
      Session session = testing_nets::open(testing_nets::runtime(), std::move(*net));
      std::vector<double> expected = content(session, "w");
      EXPECT_EQ(content(session, "w.average"), expected);
      for (int i = 0; i < 8; ++i) {
        step(session, dtype);
        const std::vector<double> w = content(session, "w"), average = content(session, "w.average");
        for (size_t k = 0; k < w.size(); ++k) {
          expected[k] = 0.9 * expected[k] + (1 - 0.9) * w[k];
          EXPECT_NEAR(average[k], expected[k], (dtype == DType::f64 ? 1e-15 : 5e-7) * std::max(1.0, std::abs(expected[k])))
              << optimizer << ", step " << i;
          EXPECT_NE(average[k], w[k]) << optimizer << ", step " << i;
        }
      }
    }
}

TEST(Averages, BeginWhereARuleLetsTheWeightsBegin) {
  auto net = trained(squares(DType::f64, true), averaging(0.75));
  ASSERT_TRUE(net.ok()) << net.status().text();
  SessionOptions options;
  options.seed = 5;
  Session session = testing_nets::open(testing_nets::runtime(), std::move(*net), options);
  const std::vector<double> before = content(session, "w");
  EXPECT_EQ(content(session, "w.average"), before);
  step(session, DType::f64);
  const std::vector<double> after = content(session, "w"), average = content(session, "w.average");
  for (size_t k = 0; k < before.size(); ++k) EXPECT_DOUBLE_EQ(average[k], 0.75 * before[k] + 0.25 * after[k]);
}

TEST(Averages, AreKeptOfWhatIsUpdatedAlone) {
  const auto net = trained(squares(DType::f64), averaging(0.9, "sgd"));
  ASSERT_TRUE(net.ok()) << net.status().text();
  std::vector<std::string> names;
  for (const Variable& variable : net->variables) names.push_back(variable.name);
  EXPECT_EQ(names, (std::vector<std::string>{"w", "bias", "unused", "fixed", "step", "w.average", "bias.average"}));
  const auto without = trained(squares(DType::f64), averaging(0, "sgd"));
  ASSERT_TRUE(without.ok()) << without.status().text();
  EXPECT_EQ(without->variables.size(), 5u);
  EXPECT_TRUE(without->metadata.empty());
}

// Updates by rows change only some rows of a table; its average covers all of it.
TEST(Averages, OfATableAreOfAllItsRows) {
  NetBuilder b("table");
  const std::vector<int64_t> rows = {2, 0};
  const ValueId table = b.variable("table", blob(Shape{3, 2}, {1, 2, 3, 4, 5, 6}), true);
  const ValueId taken = b.add1("Gather", "taken", {table, b.constant("rows", Blob::copy_of(DType::i64, Shape{2}, rows.data()))});
  b.output(b.add1("ReduceSum", "loss", {taken}, {{"keepdims", int64_t{0}}}));
  auto net = trained(b.finish(), averaging(0.5, "sgd"));
  ASSERT_TRUE(net.ok()) << net.status().text();
  Session session = testing_nets::open(testing_nets::runtime(), std::move(*net));
  for (int i = 0; i < 2; ++i) {
    const auto ran = session.run({});
    ASSERT_TRUE(ran.ok()) << ran.status().text();
  }
  // A row that is used goes down by 0.1 each time: x, x - 0.1, x - 0.2.
  const std::vector<double> average = content(session, "table.average"), expected = {0.875, 1.875, 3, 4, 4.875, 5.875};
  for (size_t k = 0; k < expected.size(); ++k) EXPECT_NEAR(average[k], expected[k], 1e-8) << k;
}

TEST(Averages, ANameThatIsTakenIsLeftAsItIs) {
  NetBuilder b("taken");
  const ValueId x = b.input("x", DType::f64, Shape{2}), w = b.variable("w", blob(Shape{2}, {1, 1}), true);
  const ValueId own = b.variable("w.average", blob(Shape{2}, {4, 5}));
  const ValueId y = b.add1("Mul", "y", {b.add1("Mul", "scaled", {x, own}), w});
  b.output(b.add1("ReduceSum", "loss", {y}, {{"keepdims", int64_t{0}}}));
  auto net = trained(b.finish(), averaging(0.5));
  ASSERT_TRUE(net.ok()) << net.status().text();
  auto made = predictor(*net, {{"x"}, {"y"}, "predict"});
  ASSERT_TRUE(made.ok()) << made.status().text();
  for (Variable& variable : net->variables) variable.initial.blob = blob(Shape{2}, {9, 9});
  const auto taken = take_averages(*made, {&*net, 1});
  ASSERT_TRUE(taken.ok()) << taken.status().text();
  EXPECT_EQ(*taken, 1);
  for (const Variable& variable : made->variables) {
    const double first = *reinterpret_cast<const double*>(variable.initial.blob->data);
    EXPECT_EQ(first, variable.name == "w" ? 9 : 4) << variable.name;
  }
}

TEST(Averages, TakeThePlaceOfTheWeightsInWhatPredicts) {
  auto net = trained(squares(DType::f64), averaging(0.9));
  ASSERT_TRUE(net.ok()) << net.status().text();
  for (Variable& variable : net->variables)
    if (variable.name == "w.average") variable.initial.blob = blob(Shape{2, 2}, {1, 0, 0, 1});
  auto made = predictor(*net, {{"x"}, {"sum"}, "predict"});
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_TRUE(made->metadata.empty());
  const auto taken = take_averages(*made, {&*net, 1});
  ASSERT_TRUE(taken.ok()) << taken.status().text();
  EXPECT_EQ(*taken, 2);
  Session session = testing_nets::open(testing_nets::runtime(), std::move(*made));
  EXPECT_EQ(outputs_of(session, {Shape{3, 2}}, {samples})[0], (std::vector<double>{1.125, 5, -0.875, 3.5, 0.375, 1}));
}

TEST(Averages, WhatCannotBeIsNamed) {
  for (const double decay : {1.0, -0.5, 2.0, std::nan("")}) {
    const auto net = trained(squares(DType::f64), averaging(decay));
    EXPECT_EQ(net.status().code(), Code::invalid_argument) << decay;
  }
  NetBuilder b("half");
  const uint16_t one[2] = {0x3c00, 0x3c00};
  const ValueId w = b.variable("w", Blob::copy_of(DType::f16, Shape{2}, one), true);
  b.output(b.add1("ReduceSum", "loss", {w}, {{"keepdims", int64_t{0}}}));
  const auto half = trained(b.finish(), averaging(0.9, "sgd"));
  EXPECT_EQ(half.status().code(), Code::unsupported);
  EXPECT_NE(half.status().text().find("\"w\" is f16: an average of it would not move"), std::string::npos) << half.status().text();

  auto net = trained(squares(DType::f64), averaging(0.9));
  auto made = predictor(*net, {{"x"}, {"sum"}, "predict"});
  ASSERT_TRUE(made.ok()) << made.status().text();
  Net spoiled = *net;
  for (auto& [key, value] : spoiled.metadata) value = "nothing";
  EXPECT_EQ(take_averages(*made, {&spoiled, 1}).status().code(), Code::unknown_name);
  for (auto& [key, value] : spoiled.metadata) value = "step";
  EXPECT_EQ(take_averages(*made, {&spoiled, 1}).status().code(), Code::shape_mismatch);
  spoiled.metadata.clear();
  const auto none = take_averages(*made, {&spoiled, 1});
  EXPECT_NE(none.status().text().find("net \"predict\" has no variable of which an average is kept"), std::string::npos);
}

}  // namespace
}  // namespace heddle
