// Gradients through If, Scan and Loop, compared with differences and with the same net without them.
#include "derive/control_nets.h"

namespace heddle {
namespace {

using namespace testing_derive;
using testing_nets::subnet;

void expect_near(const Values& got, const Values& expected, double tolerance = 1e-13) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), expected[i].size()) << i;
    for (size_t k = 0; k < got[i].size(); ++k)
      EXPECT_NEAR(got[i][k], expected[i][k], tolerance * std::max(1.0, std::abs(expected[i][k]))) << i << " [" << k << "]";
  }
}

TEST(IfGradient, IsThatOfTheBranchThatIsTaken) {
  for (const double s : {1.0, -1.0}) expect_gradients(branching(2), "loss", {numbers(Shape{2, 3}, 1), numbers(Shape{3}, 2), {s}});
}

// The condition is constant: the other branch need not fit.
TEST(IfGradient, OfABranchThatIsAlwaysTaken) {
  NetBuilder then_branch("then"), else_branch("else"), b("always");
  const ValueId x = taken(then_branch, "x"), other = taken(else_branch, "x");
  then_branch.output(then_branch.add1("Sin", "y", {x}));
  else_branch.output(else_branch.add1("Concat", "longer", {other, other}, {{"axis", int64_t{0}}}));
  const ValueId in = b.input("x", DType::f64, Shape{3});
  b.output(b.add1("If", "loss", {testing_nets::yes(b), in}, {{"then_branch", subnet(then_branch)}, {"else_branch", subnet(else_branch)}}));
  expect_gradients(b.finish(), "loss", {numbers(Shape{3}, 1)});
}

// Values that neither branch needs are not inputs of the gradient's If.
TEST(IfGradient, TakesWhatItReads) {
  NetBuilder branch("branch"), b("sums");
  const ValueId x = taken(branch, "x"), y = taken(branch, "y");
  branch.output(branch.add1("Add", "sum", {x, y}));
  const auto same = subnet(branch);
  const ValueId in = b.input("x", DType::f64, Shape{2}), other = b.input("y", DType::f64, Shape{2});
  b.output(b.add1("If", "loss", {testing_nets::yes(b), in, other}, {{"then_branch", same}, {"else_branch", same}}));
  const Net net = b.finish();
  const auto made = derived(net, all_inputs(net));
  ASSERT_TRUE(made.ok()) << made.status().text();
  size_t count = 0;
  for (const Node& node : made->net.nodes)
    if (node.type == "If" && node.name != "loss") {
      ++count;
      EXPECT_EQ(node.inputs.size(), 2u);
    }
  EXPECT_EQ(count, 1u);
  expect_gradients(net, "loss", {numbers(Shape{2}, 1), numbers(Shape{2}, 2)});
}

TEST(ScanGradient, IsThatOfDifferences) {
  const Recurrence plain;
  expect_gradients(plain.net(false), "loss", plain.at());
}

TEST(ScanGradient, IsThatOfTheUnrolledNet) {
  for (const int64_t axis : {int64_t{0}, int64_t{1}, int64_t{-1}})
    for (int directions = 0; directions < 8; ++directions) {
      SCOPED_TRACE("axis " + std::to_string(axis) + ", directions " + std::to_string(directions));
      const Recurrence r = {axis, 0, axis, (directions & 1) != 0, (directions & 2) != 0, (directions & 4) != 0};
      expect_near(gradients_of(r.net(false), r.shapes(), r.at()), gradients_of(r.net(true), r.shapes(), r.at()));
    }
}

TEST(ScanGradient, FitsEveryBatchAndNumberOfSteps) {
  const Recurrence r;
  const auto made = derived(r.net(false, true), all_inputs(r.net(false, true)));
  ASSERT_TRUE(made.ok()) << made.status().text();
  expect_near(gradients_of(*made, r.shapes(), r.at()), gradients_of(r.net(true), r.shapes(), r.at()));
  // Two batches, the second equal to the first: the gradients of weights double.
  const Values one = gradients_of(*made, r.shapes(1, 3), r.at(1, 3));
  Values both = r.at(1, 3);
  const std::vector<int64_t> rows = {1, 3, 3};  // the number of rows before the batch
  for (size_t i = 0; i < 3; ++i) {
    const auto step = static_cast<int64_t>(both[i].size()) / rows[i];
    std::vector<double> repeated;
    for (int64_t row = 0; row < rows[i]; ++row)
      for (int copy = 0; copy < 2; ++copy)
        repeated.insert(repeated.end(), both[i].begin() + row * step, both[i].begin() + (row + 1) * step);
    both[i] = repeated;
  }
  const Values twice = gradients_of(*made, r.shapes(2, 3), both);
  ASSERT_EQ(one.size(), 5u);
  ASSERT_EQ(twice.size(), 5u);
  for (size_t k = 0; k < one[4].size(); ++k) EXPECT_NEAR(twice[4][k], 2 * one[4][k], 1e-12);
  const Values none = gradients_of(*made, r.shapes(2, 0), r.at(2, 0));
  ASSERT_EQ(none.size(), 5u);
  EXPECT_EQ(none[4], std::vector<double>(9, 0));
  for (size_t k = 0; k < none[0].size(); ++k) EXPECT_EQ(none[0][k], 2 * r.at(2, 0)[0][k]);
}

TEST(ScanGradient, HasTheSameBitsForEveryNumberOfThreads) {
  const Recurrence r;
  const auto made = derived(r.net(false, true), all_inputs(r.net(false, true)));
  ASSERT_TRUE(made.ok()) << made.status().text();
  const Values one = gradients_of(*made, r.shapes(37, 9), r.at(37, 9));
  for (const int threads : {2, 3, 8}) EXPECT_EQ(gradients_of(*made, r.shapes(37, 9), r.at(37, 9), threads), one) << threads;
}

// A state that is overwritten, one that only counts, and an output that is a state before the step.
TEST(ScanGradient, OfStatesThatAreNotAllNeeded) {
  NetBuilder body("body"), b("states");
  const ValueId before = taken(body, "before"), count = taken(body, "count"), sum = taken(body, "sum"), x = taken(body, "x");
  body.output(body.add1("Sin", "written", {x}));
  body.output(body.add1("Add", "counted", {count, whole(body, "one", 1)}));
  body.output(body.add1("Add", "summed", {sum, body.add1("Mul", "product", {x, before})}));
  body.output(before);
  const ValueId start = b.input("start", DType::f64, Shape{2}), zero = b.input("zero", DType::f64, Shape{2});
  const ValueId steps = b.input("x", DType::f64, Shape{3, 2});
  const auto made =
      b.add("Scan", "scan", {start, whole(b, "none", 0), zero, steps}, 4, {{"body", subnet(body)}, {"num_scan_inputs", int64_t{1}}});
  b.output(b.add1("Add", "loss",
                  {sum_of(b, "of sum", b.add1("Exp", "exp", {made[2]})), sum_of(b, "of before", b.add1("Cos", "cos", {made[3]}))}));
  expect_gradients(b.finish(), "loss", {numbers(Shape{2}, 1), numbers(Shape{2}, 2), numbers(Shape{3, 2}, 3)});
}

// The run finds the number of steps: the rows of x whose key is positive.
TEST(ScanGradient, OverAsManyStepsAsTheRunFinds) {
  NetBuilder body("body"), b("found");
  const ValueId state = taken(body, "state"), step = taken(body, "x"), inner = taken(body, "w");
  const ValueId next = body.add1("Tanh", "next", {body.add1("Add", "sum", {state, body.add1("Mul", "product", {step, inner})})});
  body.output(next);
  body.output(body.add1("Mul", "output", {next, state}));
  const ValueId start = b.input("state", DType::f64, Shape{2}), x = b.input("x", DType::f64, Shape{5, 2});
  const ValueId key = b.input("key", DType::f64, Shape{5}), w = b.input("w", DType::f64, Shape{2});
  const ValueId found = b.add1("NonZero", "found", {b.add1("Greater", "positive", {key, number(b, "zero", 0)})});
  const ValueId at = b.add1("Squeeze", "at", {found, b.constant_ints("axis", {0})});
  const auto made = b.add("Scan", "scan", {start, b.add1("Gather", "steps", {x, at}), w}, 2,
                          {{"body", subnet(body)}, {"num_scan_inputs", int64_t{1}}, {"captured", int64_t{1}}});
  b.output(b.add1("Add", "loss", {sum_of(b, "of outputs", b.add1("Exp", "exp", {made[1]})), sum_of(b, "of state", made[0])}));
  const Net net = b.finish();
  for (const std::vector<double>& keys : {std::vector<double>{1, -1, 1, 1, -1}, {-1, -1, -1, -1, -1}, {1, 1, 1, 1, 1}})
    expect_gradients(net, "loss", {numbers(Shape{2}, 1), numbers(Shape{5, 2}, 2), keys, numbers(Shape{2}, 3)});
}

// Rows of a table from outside are added up in a gradient of its shape.
TEST(ScanGradient, OfATableThatRowsAreTakenFrom) {
  NetBuilder body("body"), b("table");
  const ValueId sum = taken(body, "sum"), at = taken(body, "at"), table = taken(body, "table");
  const ValueId rows = body.add1("Gather", "rows", {table, at});
  body.output(body.add1("Add", "next", {sum, body.add1("Mul", "squares", {rows, rows})}));
  const ValueId start = b.input("start", DType::f64, Shape{2, 2}), content = b.input("table", DType::f64, Shape{4, 2});
  const int64_t indices[] = {0, 3, 3, 3, -1, 1};
  const ValueId of = b.constant("indices", Blob::copy_of(DType::i64, Shape{3, 2}, indices));
  const ValueId last =
      b.add1("Scan", "scan", {start, of, content}, {{"body", subnet(body)}, {"num_scan_inputs", int64_t{1}}, {"captured", int64_t{1}}});
  b.output(b.add1("Sin", "loss", {last}));
  expect_gradients(b.finish(), "loss", {numbers(Shape{2, 2}, 1), numbers(Shape{4, 2}, 2)});
}

// Each iteration drops other elements, and its gradient drops the same: y is w times the elements of x that were kept, whichever they were.
TEST(ScanGradient, OfRandomNumbersIsOfThoseThatWereDrawn) {
  NetBuilder body("body"), b("dropout");
  const ValueId x = taken(body, "x"), w = taken(body, "w");
  const ValueId half = number(body, "half", 0.5);
  const ValueId dropped = body.add1("Dropout", "dropped", {body.add1("Mul", "product", {x, w}), half, testing_nets::yes(body)});
  body.output(body.add1("Mul", "y", {dropped, w}));
  const ValueId steps = b.input("x", DType::f64, Shape{5, 20}), weight = b.input("w", DType::f64, Shape{});
  b.output(b.add1("Scan", "loss", {steps, weight}, {{"body", subnet(body)}, {"num_scan_inputs", int64_t{1}}, {"captured", int64_t{1}}}));
  const Net net = b.finish();
  const auto made = derived(net, all_inputs(net));
  ASSERT_TRUE(made.ok()) << made.status().text();
  Session session = testing_nets::open(testing_nets::runtime(), Net(made->net));
  const Values all = outputs_of(session, {Shape{5, 20}, Shape{}}, {std::vector<double>(100, 1.0), {3.0}});
  ASSERT_EQ(all.size(), 3u);
  double sum = 0;
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_TRUE(all[0][i] == 0 || all[0][i] == 18) << all[0][i];
    EXPECT_EQ(all[1][i], all[0][i]);
    sum += all[0][i];
  }
  EXPECT_NE(std::vector<double>(all[0].begin(), all[0].begin() + 20), std::vector<double>(all[0].begin() + 20, all[0].begin() + 40));
  EXPECT_DOUBLE_EQ(all[2][0], 2 * sum / 3);
}

// state = tanh(state w), and state x state as scan output, for `most` trips or, with `stops`, that many.
struct Turns {
  int64_t most = -1;      // constant M; -1: none
  bool computed = false;  // M is computed in the run
  int64_t stops = -1;     // the body stops after them
  // Makes a value of the scan output, or of one trip's output.
  std::function<ValueId(NetBuilder&, const std::string& prefix, ValueId, ValueId w)> read =
      [](NetBuilder& b, const std::string& prefix, ValueId stack, ValueId) { return b.add1("Exp", prefix + "exp", {stack}); };
  int64_t trips() const { return most < 0 ? stops : stops < 0 ? most : std::min(most, stops); }

  static std::vector<ValueId> turn(NetBuilder& b, const std::string& prefix, ValueId state, ValueId w) {
    const ValueId next = b.add1("Tanh", prefix + "next", {b.add1("MatMul", prefix + "product", {state, w})});
    return {next, b.add1("Mul", prefix + "output", {next, state})};
  }
  Net net(bool unrolled) const {
    NetBuilder b(unrolled ? "unrolled" : "loop");
    const ValueId start = b.input("state", DType::f64, Shape{2, 3}), w = b.input("w", DType::f64, Shape{3, 3});
    ValueId state = start;
    std::vector<ValueId> losses;
    if (unrolled) {
      for (int64_t t = 0; t < trips(); ++t) {
        const auto made = turn(b, "turn" + std::to_string(t) + ".", state, w);
        state = made[0];
        losses.push_back(sum_of(b, "of" + std::to_string(t), read(b, "read" + std::to_string(t) + ".", made[1], w)));
      }
    } else {
      NetBuilder body("body");
      const ValueId i = taken(body, "i"), goes_on = taken(body, "goes_on"), inner = taken(body, "state"), inner_w = taken(body, "w");
      const auto made = turn(body, "", inner, inner_w);
      body.output(stops < 0 ? goes_on : body.add1("Less", "more", {i, whole(body, "last", stops - 1)}));
      body.output(made[0]);
      body.output(made[1]);
      ValueId m = most < 0 ? ValueId() : whole(b, "m", most);
      if (computed) m = b.add1("CastLike", "trips", {b.input("count", DType::f64, Shape{}), m});
      const auto given = b.add("Loop", "loop", {m, stops < 0 ? ValueId() : testing_nets::yes(b), start, w}, 2,
                               {{"body", subnet(body)}, {"captured", int64_t{1}}});
      state = given[0];
      losses.push_back(sum_of(b, "of stack", read(b, "", given[1], w)));
    }
    losses.push_back(sum_of(b, "of state", b.add1("Mul", "squares", {state, state})));
    losses.push_back(sum_of(b, "of w", b.add1("Mul", "squares of w", {w, w})));
    b.output(b.add1("Sum", "loss", losses));
    return b.finish();
  }
};

const std::vector<Shape> turn_shapes = {Shape{2, 3}, Shape{3, 3}};
Values turn_at() {
  return {numbers(Shape{2, 3}, 1), numbers(Shape{3, 3}, 2)};
}

TEST(LoopGradient, IsThatOfDifferencesAndOfTheUnrolledNet) {
  for (const Turns& turns : {Turns{3}, Turns{1}, Turns{0}, Turns{5, false, 3}, Turns{2, false, 4}, Turns{-1, false, 3}}) {
    SCOPED_TRACE("most " + std::to_string(turns.most) + ", stops " + std::to_string(turns.stops));
    expect_gradients(turns.net(false), "loss", turn_at());
    expect_near(gradients_of(turns.net(false), turn_shapes, turn_at()), gradients_of(turns.net(true), turn_shapes, turn_at()));
  }
}

// Only the run knows the number of trips: the stacked values grow with it.
TEST(LoopGradient, WithoutABound) {
  const Net net = Turns{9, true}.net(false);
  const auto made = derived(net, all_inputs(net));
  ASSERT_TRUE(made.ok()) << made.status().text();
  for (const int64_t trips : {3, 0, 1, 5}) {
    SCOPED_TRACE(trips);
    expect_near(gradients_of(*made, {Shape{2, 3}, Shape{3, 3}, Shape{}}, {turn_at()[0], turn_at()[1], {static_cast<double>(trips)}}),
                gradients_of(Turns{trips}.net(true), turn_shapes, turn_at()));
  }
}

// Pointwise operators on a stacked value: with itself, with one number, and with a tensor that is broadcast to it.
TEST(LoopGradient, OfPointwiseOperatorsAfterOneWithoutABound) {
  using Read = decltype(Turns::read);
  const auto one = [](const char* type) -> Read {
    return [type](NetBuilder& b, const std::string& prefix, ValueId stack, ValueId) { return b.add1(type, prefix + type, {stack}); };
  };
  const auto two = [](const char* type, bool first) -> Read {
    return [type, first](NetBuilder& b, const std::string& prefix, ValueId stack, ValueId) {
      const ValueId half = b.constant(prefix + "half", blob(first ? Shape{} : Shape{1, 1}, {0.5}));
      return b.add1(type, prefix + type, first ? std::vector<ValueId>{stack, half} : std::vector<ValueId>{half, stack});
    };
  };
  const Read square = [](NetBuilder& b, const std::string& prefix, ValueId stack, ValueId) {
    return b.add1("Mul", prefix + "square", {stack, stack});
  };
  const Read chain = [](NetBuilder& b, const std::string& prefix, ValueId stack, ValueId) {
    const ValueId soft = b.add1("Softplus", prefix + "soft", {b.add1("Sigmoid", prefix + "sigmoid", {stack})});
    return b.add1("Mul", prefix + "product", {soft, b.add1("Sin", prefix + "sin", {stack})});
  };
  const Read row = [](NetBuilder& b, const std::string& prefix, ValueId stack, ValueId w) {
    const ValueId sum = b.add1("ReduceSum", prefix + "row", {w, b.constant_ints(prefix + "axis", {0})}, {{"keepdims", int64_t{0}}});
    return b.add1("Mul", prefix + "by row", {stack, sum});
  };
  const Read number_of_w = [](NetBuilder& b, const std::string& prefix, ValueId stack, ValueId w) {
    return b.add1("Div", prefix + "by number", {stack, b.add1("Exp", prefix + "of sum", {sum_of(b, prefix + "sum of w", w)})});
  };
  for (const Read& read : {one("Sigmoid"), one("Softplus"), one("Elu"), two("Mul", true), two("Sub", false), two("Clip", true), square,
                           chain, row, number_of_w}) {
    Turns turns{9, true};
    turns.read = read;
    const Net net = turns.net(false);
    const auto made = derived(net, all_inputs(net));
    ASSERT_TRUE(made.ok()) << made.status().text();
    for (const int64_t trips : {3, 0, 1}) {
      SCOPED_TRACE(trips);
      Turns unrolled{trips};
      unrolled.read = read;
      expect_near(gradients_of(*made, {Shape{2, 3}, Shape{3, 3}, Shape{}}, {turn_at()[0], turn_at()[1], {static_cast<double>(trips)}}),
                  gradients_of(unrolled.net(true), turn_shapes, turn_at()));
    }
  }
}

// The body reads the number of the iteration and passes the condition on unchanged.
TEST(LoopGradient, OfTheNumberOfTheIteration) {
  NetBuilder body("body"), b("numbered");
  const ValueId i = taken(body, "i"), goes_on = taken(body, "goes_on"), x = taken(body, "x");
  body.output(goes_on);
  body.output(
      body.add1("Mul", "product", {x, body.add1("Add", "more", {body.add1("CastLike", "number", {i, x}), number(body, "two", 2)})}));
  const ValueId start = b.input("x", DType::f64, Shape{2});
  b.output(b.add1("Loop", "loss", {whole(b, "m", 3), ValueId(), start}, {{"body", subnet(body)}}));
  expect_near(gradients_of(b.finish(), {Shape{2}}, {numbers(Shape{2}, 1)}), {{24, 24}});
}

// A Scan whose body has an If with a captured weight, and a Loop of two trips.
Net nested() {
  NetBuilder then_branch("then"), else_branch("else"), turn("turn"), body("body"), b("nested");
  const ValueId ts = taken(then_branch, "s"), tw = taken(then_branch, "w"), es = taken(else_branch, "s"), ew = taken(else_branch, "w");
  then_branch.output(then_branch.add1("Sin", "y", {then_branch.add1("Mul", "product", {ts, tw})}));
  else_branch.output(else_branch.add1("Sub", "y", {es, else_branch.add1("Exp", "exp", {ew})}));
  taken(turn, "i");
  const ValueId goes_on = taken(turn, "goes_on"), value = taken(turn, "value"), factor = taken(turn, "factor");
  turn.output(goes_on);
  turn.output(turn.add1("Tanh", "tanh", {turn.add1("Mul", "product", {value, factor})}));
  const ValueId state = taken(body, "state"), x = taken(body, "x"), w = taken(body, "w");
  const ValueId sum = body.add1("Add", "sum", {state, x});
  const ValueId positive = body.add1("Greater", "positive", {sum_of(body, "total", x), number(body, "zero", 0)});
  const ValueId chosen =
      body.add1("If", "chosen", {positive, sum, w}, {{"then_branch", subnet(then_branch)}, {"else_branch", subnet(else_branch)}});
  const ValueId turned =
      body.add1("Loop", "turned", {whole(body, "m", 2), ValueId(), chosen, w}, {{"body", subnet(turn)}, {"captured", int64_t{1}}});
  body.output(turned);
  body.output(body.add1("Mul", "output", {chosen, turned}));
  const ValueId start = b.input("state", DType::f64, Shape{2}), steps = b.input("x", DType::f64, Shape{4, 2}),
                weight = b.input("w", DType::f64, Shape{2});
  const auto made =
      b.add("Scan", "scan", {start, steps, weight}, 2, {{"body", subnet(body)}, {"num_scan_inputs", int64_t{1}}, {"captured", int64_t{1}}});
  b.output(b.add1("Add", "loss", {sum_of(b, "of state", made[0]), sum_of(b, "of outputs", b.add1("Mul", "squares", {made[1], made[1]}))}));
  return b.finish();
}

TEST(NestedGradient, IsThatOfDifferences) {
  const Values at = {numbers(Shape{2}, 1), {0.5, 0.4, -0.7, -0.2, 0.9, -0.3, -0.5, 0.1}, {0.7, 1.3}};
  expect_gradients(nested(), "loss", at);
  const Net net = nested();
  const auto made = derived(net, all_inputs(net));
  ASSERT_TRUE(made.ok()) << made.status().text();
  const std::vector<Shape> shapes = {Shape{2}, Shape{4, 2}, Shape{2}};
  const Values one = gradients_of(*made, shapes, at);
  for (const int threads : {2, 3, 8}) EXPECT_EQ(gradients_of(*made, shapes, at, threads), one) << threads;
}

}  // namespace
}  // namespace heddle
