// The predictor is the same whether it is taken from the training net or from the original one: it no longer computes the outputs that only
// the gradients needed.
#include "derive/control_nets.h"
#include "derive/predictor/predictor.h"
#include "derive/predictor/without_training.h"
#include "net/print.h"
#include "plugin/schema.h"

namespace heddle {
namespace {

using namespace testing_derive;

// Returns the text of the predictor of the value "shown".
std::string predicted_by(const Net& net) {
  const auto made = predictor(net, {{}, {"shown"}, "predictor"});
  EXPECT_TRUE(made.ok()) << made.status().text();
  return made.ok() ? print(*made) : "";
}

void expect_same_predictor(const Net& net) {
  SCOPED_TRACE(net.name);
  const auto learns = derived(net, all_inputs(net));
  ASSERT_TRUE(learns.ok()) << learns.status().text();
  auto tests = resolve(net, testing_stages::registry());
  ASSERT_TRUE(tests.ok()) << tests.status().text();
  const std::string wanted = predicted_by(*tests);
  EXPECT_EQ(predicted_by(learns->net), wanted);

  // The same holds if no plugin declares which outputs an operator may leave out, as for nets of a file.
  Net bare = learns->net;
  for (Node& node : bare.nodes) node.schema = nullptr;
  EXPECT_EQ(predicted_by(bare), wanted) << "without schemas";

  const auto count = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
  EXPECT_LT(count(wanted), count(print(learns->net)));
}

// Computes y from x, W and R; gradients by all of them are requested.
Net recurrent(const char* type, int64_t gates, size_t outputs, size_t shown) {
  constexpr int64_t steps = 3, batch = 2, width = 4, hidden = 5;
  NetBuilder b(type);
  const ValueId x = b.input("x", DType::f64, Shape{steps, batch, width}), w = b.input("w", DType::f64, Shape{1, gates * hidden, width});
  const ValueId r = b.input("r", DType::f64, Shape{1, gates * hidden, hidden});
  const std::vector<ValueId> all = b.add(type, "cells", {x, w, r}, outputs, {{"hidden_size", hidden}});
  const ValueId y = b.add1("Identity", "shown", {all[shown]});
  b.output(sum_of(b, "loss", b.add1("Mul", "square", {y, y})));
  return b.finish();
}

TEST(PredictorOfTraining, IsThatOfTheTestNetForRecurrentCells) {
  expect_same_predictor(recurrent("LSTM", 4, 1, 0));
  expect_same_predictor(recurrent("LSTM", 4, 3, 1));
  expect_same_predictor(recurrent("GRU", 3, 2, 1));
  expect_same_predictor(recurrent("RNN", 1, 1, 0));
}

TEST(PredictorOfTraining, IsThatOfTheTestNetForScans) {
  for (const bool reads_state : {false, true}) {
    Recurrence recurrence;
    NetBuilder b(reads_state ? "state" : "slices");
    std::vector<ValueId> in;
    const std::vector<Shape> shapes = recurrence.shapes();
    for (size_t i = 0; i < shapes.size(); ++i) in.push_back(b.input("in" + std::to_string(i), DType::f64, shapes[i]));
    const std::vector<ValueId> all = recurrence.scanned(b, in);
    const ValueId y = b.add1("Identity", "shown", {all[reads_state ? 0 : 1]});
    b.output(sum_of(b, "loss", b.add1("Mul", "square", {y, y})));
    expect_same_predictor(b.finish());
  }
}

// Applies y = sin(y w) four times; twice the y at the start of each trip is a scan output that only the gradient reads.
TEST(PredictorOfTraining, IsThatOfTheTestNetForLoops) {
  NetBuilder body("body"), b("loop");
  body.input("i", DType::i64, Shape{});
  const ValueId goes_on = body.input("goes_on", DType::boolean, Shape{}), y = taken(body, "y"), w = taken(body, "w");
  body.output(body.add1("Identity", "goes", {goes_on}));
  body.output(body.add1("Sin", "next", {body.add1("Mul", "yw", {y, w})}));
  body.output(body.add1("Add", "twice", {y, y}));
  const ValueId x = b.input("x", DType::f64, Shape{2, 3}), outer_w = b.input("w", DType::f64, Shape{3});
  const std::vector<ValueId> all = b.add("Loop", "loop", {whole(b, "trips", 4), testing_nets::yes(b), x, outer_w}, 2,
                                         {{"body", testing_nets::subnet(body)}, {"captured", int64_t{1}}});
  const ValueId shown = b.add1("Identity", "shown", {all[0]});
  b.output(sum_of(b, "loss", b.add1("Mul", "square", {shown, shown})));
  expect_same_predictor(b.finish());
}

TEST(PredictorOfTraining, IsThatOfTheTestNetForBranches) {
  Net net = branching(2);
  net[net.nodes[net[*net.find_value("y")].producer.index].outputs[0]].name = "shown";
  expect_same_predictor(net);
}

// Removes the outputs of a branch other than the one shown, and everything that only they depend on, inside and outside.
TEST(PredictorOfTraining, WhatNothingReadsOfABranchIsNotComputed) {
  const auto branch = [](const std::string& name, const char* type) {
    NetBuilder inner(name);
    const ValueId x = taken(inner, "x"), w = taken(inner, "w");
    inner.output(inner.add1(type, name + ".y", {x}));
    inner.output(inner.add1("Mul", name + ".z", {inner.add1("Exp", name + ".e", {w}), x}));
    return testing_nets::subnet(inner);
  };
  NetBuilder b("branches");
  const ValueId x = b.input("x", DType::f64, Shape{2, 3}), w = b.input("w", DType::f64, Shape{2, 3});
  const std::vector<ValueId> all = b.add("If", "chosen", {testing_nets::yes(b), x, b.add1("Tan", "tan", {w})}, 2,
                                         {{"then_branch", branch("then", "Sin")}, {"else_branch", branch("else", "Cos")}});
  b.output(b.add1("Identity", "shown", {all[0]}));
  b.output(all[1]);
  auto made = predictor(b.finish(), {{}, {"shown"}, "predictor"});
  ASSERT_TRUE(made.ok()) << made.status().text();
  const std::string text = print(*made);
  for (const char* gone : {"Exp", "Mul", "Tan", "w:"}) EXPECT_EQ(text.find(gone), std::string::npos) << gone << "\n" << text;
  Session session = testing_nets::open(testing_nets::runtime(), std::move(*made));
  const std::vector<double> values = numbers(Shape{2, 3}, 1);
  const Values outputs = outputs_of(session, {Shape{2, 3}}, {values});
  ASSERT_EQ(outputs.size(), 1u);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_DOUBLE_EQ(outputs[0][i], std::sin(values[i]));
}

// Without a schema a table lists the outputs that may be left out: it has all those of the CPU plugin's operators, and no others.
TEST(PredictorOfTraining, TheTableOfOutputsThatMayBeLeftOutIsThatOfTheSchemas) {
  const auto registry = testing_stages::registry();
  int optional = 0;
  for (const std::string& domain : registry->domains())
    for (const std::string& name : registry->operator_names(domain)) {
      if (name == "If" || name == "Loop" || name == "Scan") continue;  // their outputs are those of their subnets
      if (name.ends_with("Gradient")) continue;                        // no predictor has one
      Node node, bare;
      node.domain = bare.domain = domain;
      node.type = bare.type = name;
      node.schema = registry->find_operator(domain, name);
      for (size_t k = 0; k < node.schema->op->output_count; ++k) {
        if ((node.schema->op->outputs[k]->flags & HEDDLE_PORT_VARIADIC) != 0) continue;
        EXPECT_EQ(may_leave_out(bare, k), may_leave_out(node, k)) << domain << " " << name << " output " << k;
        optional += may_leave_out(node, k) ? 1 : 0;
      }
    }
  EXPECT_GT(optional, 10);
}

}  // namespace
}  // namespace heddle
