// Tests which gradients through If, Scan and Loop are refused, training of nets through them, and their predictors.
#include "derive/control_nets.h"
#include "derive/predictor/predictor.h"
#include "derive/training_net.h"

namespace heddle {
namespace {

using namespace testing_derive;
using testing_nets::subnet;

void expect_refusal(const Net& net, const std::vector<std::string>& parts) {
  const std::string said = refused(net, all_inputs(net));
  EXPECT_NE(said.find("error[unsupported]"), std::string::npos) << said;
  for (const std::string& part : parts) EXPECT_NE(said.find(part), std::string::npos) << said;
}

// An If with the same branch twice, on the inputs x and w.
Net twice(NetBuilder& branch, const std::string& operator_name = "loss") {
  NetBuilder b("outer");
  const ValueId x = b.input("x", DType::f64, Shape{2}), w = b.input("w", DType::f64, Shape{2});
  const auto same = subnet(branch);
  b.output(b.add1("If", operator_name, {testing_nets::yes(b), x, w}, {{"then_branch", same}, {"else_branch", same}}));
  return b.finish();
}

ValueId random_numbers(NetBuilder& b) {
  constexpr int64_t f64 = 11;  // ONNX's number
  return b.add1("RandomUniform", "noise", {}, {{"shape", std::vector<int64_t>{2}}, {"dtype", f64}});
}

TEST(IfRefusals, RandomNumbersThatTheGradientNeeds) {
  NetBuilder branch("branch");
  const ValueId x = taken(branch, "x"), w = taken(branch, "w");
  const ValueId product = branch.add1("Mul", "product", {x, w});
  branch.output(branch.add1("Dropout", "dropped", {product, number(branch, "half", 0.5), testing_nets::yes(branch)}));
  expect_refusal(twice(branch), {"in its then_branch the gradient would compute \"dropped\" again: Dropout, which draws random numbers",
                                 "put it in front of the If", "in the gradient of node \"loss\""});
}

// The random numbers are in a net inside the branch.
TEST(IfRefusals, RandomNumbersDeeperInside) {
  NetBuilder inner("inner"), branch("branch");
  const ValueId ix = taken(inner, "x"), iw = taken(inner, "w");
  const ValueId noise = random_numbers(inner);
  inner.output(inner.add1("Mul", "noisy", {inner.add1("Mul", "product", {ix, noise}), iw}));
  const ValueId x = taken(branch, "x"), w = taken(branch, "w");
  const auto same = subnet(inner);
  const ValueId chosen = branch.add1("If", "chosen", {testing_nets::yes(branch), x, w}, {{"then_branch", same}, {"else_branch", same}});
  branch.output(branch.add1("Mul", "product", {branch.add1("StopGradient", "stopped", {chosen}, {}, "heddle"), w}));
  expect_refusal(twice(branch), {"If with \"noise\" (RandomUniform, which draws random numbers)"});
}

// Random numbers that no gradient needs are not computed again.
TEST(IfRefusals, RandomNumbersThatNoGradientNeedsAreNone) {
  NetBuilder branch("branch");
  const ValueId x = taken(branch, "x"), w = taken(branch, "w");
  branch.output(branch.add1("Add", "sum", {branch.add1("Mul", "product", {x, w}), random_numbers(branch)}));
  const Net net = twice(branch);
  const auto made = derived(net, all_inputs(net));
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_EQ(gradients_of(*made, {Shape{2}, Shape{2}}, {{1, 2}, {3, 4}}), (Values{{3, 4}, {1, 2}}));
}

TEST(SubnetRefusals, AnOperatorWithoutAGradientIsNamed) {
  NetBuilder branch("branch");
  const ValueId x = taken(branch, "x");
  taken(branch, "w");
  branch.output(branch.add1("Hardmax", "hard", {x}));
  expect_refusal(twice(branch),
                 {"operator Hardmax of node \"hard\" has no gradient", "in its then_branch", "in the gradient of node \"loss\""});
}

// An If that updates the variable w, by a branch that gives y and the next version of w.
Net updating(bool y_is_of_the_new_version, bool y_is_of_w) {
  NetBuilder branch("branch"), b("outer");
  const ValueId x = taken(branch, "x"), w = taken(branch, "w");
  const ValueId next = branch.add1("AccumulateAdd", "accumulate", {w, x}, {}, "heddle");
  const ValueId stopped = branch.add1("StopGradient", "stopped", {next}, {}, "heddle");
  branch.output(branch.add1("Mul", "product", {x, y_is_of_the_new_version ? stopped : y_is_of_w ? w : x}));
  branch.output(next);
  const auto same = subnet(branch);
  const ValueId in = b.input("x", DType::f64, Shape{2}), variable = b.variable("w", blob(Shape{2}, {3, 5}));
  const auto made = b.add("If", "chosen", {testing_nets::yes(b), in, variable}, 2, {{"then_branch", same}, {"else_branch", same}});
  b.updates(made[1], variable);
  b.output(b.add1("Identity", "loss", {made[0]}));
  return b.finish();
}

TEST(IfRefusals, UpdatesThatTheGradientNeeds) {
  expect_refusal(updating(true, false), {"would compute \"accumulate\" again: heddle::AccumulateAdd, which updates a variable"});
  const Net old = updating(false, true);
  const std::string said = refused(old, all_inputs(old));
  for (const char* part : {"error[hazard]", "the gradient of \"chosen\" needs version 0 of \"w\"", "\"chosen\" (If) overwrites"})
    EXPECT_NE(said.find(part), std::string::npos) << said;
}

// The variable is updated once.
TEST(IfGradient, LeavesUpdatesThatItDoesNotNeedAlone) {
  const Net net = updating(false, false);
  auto made = derived(net, all_inputs(net));
  ASSERT_TRUE(made.ok()) << made.status().text();
  Session session = testing_nets::open(testing_nets::runtime(), std::move(made->net));
  EXPECT_EQ(outputs_of(session, {Shape{2}}, {{1, 2}})[1], (std::vector<double>{2, 4}));
  const auto left = session.read_variable("w");
  ASSERT_TRUE(left.ok()) << left.status().text();
  EXPECT_EQ(static_cast<const double*>(left->data())[0], 4);
}

TEST(IfRefusals, BranchesOfDifferentShapes) {
  expect_refusal(branching(4), {"its branches give output \"y\" different shapes", "in the gradient of node \"y\""});
}

// A net that learns with such an If in it opens like any other.
TEST(IfTraining, BesideUpdatesOfABranch) {
  Net net = updating(false, false);
  NetBuilder b("outer");
  b.net() = std::move(net);
  const ValueId v = b.variable("v", blob(Shape{2}, {1, 1}), true);
  b.add1("Mul", "scaled", {*b.net().find_value("loss"), v});
  TrainingOptions options;
  options.losses = {"scaled"};
  options.optimizer = "sgd";
  options.learning_rate = *LearningRate::parse(0.5, "constant");
  const auto registry = testing_stages::registry();
  const auto evaluator = make_registry_evaluator(registry);
  const auto resolved = resolve(b.finish(), registry);
  ASSERT_TRUE(resolved.ok()) << resolved.status().text();
  auto trains = training_net(*resolved, registry, *evaluator, options);
  ASSERT_TRUE(trains.ok()) << trains.status().text();
  Session session = testing_nets::open(testing_nets::runtime(), std::move(*trains));
  const double x[] = {1, 2};
  const auto ran = session.run({testing_nets::view(x, DType::f64, Shape{2})});
  ASSERT_TRUE(ran.ok()) << ran.status().text();
  const auto v_left = session.read_variable("v"), w_left = session.read_variable("w");
  ASSERT_TRUE(v_left.ok() && w_left.ok());
  EXPECT_EQ(static_cast<const double*>(v_left->data())[1], 1 - 0.5 * 4);
  EXPECT_EQ(static_cast<const double*>(w_left->data())[1], 7);
}

TEST(LoopRefusals, ACarriedValueThatGrows) {
  NetBuilder body("body"), b("outer");
  taken(body, "i");
  const ValueId goes_on = taken(body, "goes_on"), x = taken(body, "x");
  body.output(goes_on);
  body.output(body.add1("Concat", "longer", {x, x}, {{"axis", int64_t{0}}}));
  b.output(b.add1("Loop", "loss", {whole(b, "m", 3), ValueId(), b.input("x", DType::f64, Shape{2})}, {{"body", subnet(body)}}));
  expect_refusal(b.finish(), {"carried value \"x\" changes its extents from iteration to iteration", "in the gradient of node \"loss\""});
}

// Rows are taken in one place, and the whole table is used in a body.
TEST(SubnetRefusals, ATableThatRowsAreTakenFromOutsideToo) {
  NetBuilder branch("branch"), b("outer");
  const ValueId t = taken(branch, "table");
  branch.output(branch.add1("Gather", "inside", {t, whole(branch, "one", 1)}));
  const auto same = subnet(branch);
  const ValueId table = b.variable("table", blob(Shape{3, 2}, numbers(Shape{3, 2}, 1)), true);
  const ValueId inside = b.add1("If", "chosen", {testing_nets::yes(b), table}, {{"then_branch", same}, {"else_branch", same}});
  const ValueId outside = b.add1("Gather", "outside", {table, b.constant_ints("rows", {2})});
  b.output(b.add1("Mul", "loss", {inside, outside}));
  const Net net = b.finish();
  DifferentiateOptions options;
  options.losses = {"loss"};
  const std::string said = refused(net, options);
  for (const char* part : {"\"outside\" (Gather)", "\"chosen\" (If)", "ask for a dense gradient of \"table\""})
    EXPECT_NE(said.find(part), std::string::npos) << said;
  options.dense = {"table"};
  EXPECT_TRUE(derived(net, options).ok());
}

// Weights that a Loop with 3 trips captures learn: the loss becomes smaller. With `computed`, the number of trips is computed in the run.
Net learning(bool computed) {
  NetBuilder body("body"), b("learning");
  taken(body, "i");
  const ValueId goes_on = taken(body, "goes_on"), state = taken(body, "state"), inner = taken(body, "w");
  body.output(goes_on);
  body.output(body.add1("Tanh", "next", {body.add1("MatMul", "product", {state, inner})}));
  const ValueId x = b.input("x", DType::f64, Shape{4, 3});
  const ValueId w = b.variable("w", blob(Shape{3, 3}, numbers(Shape{3, 3}, 3)), true);
  ValueId m = whole(b, "m", 3);
  if (computed) m = b.add1("CastLike", "trips", {b.input("count", DType::f64, Shape{}), m});
  const ValueId last = b.add1("Loop", "loop", {m, ValueId(), x, w}, {{"body", subnet(body)}, {"captured", int64_t{1}}});
  const ValueId difference = b.add1("Sub", "difference", {last, number(b, "half", 0.5)});
  b.output(sum_of(b, "loss", b.add1("Mul", "squares", {difference, difference})));
  return b.finish();
}

TEST(LoopTraining, WeightsThatALoopTakesLearn) {
  for (const bool computed : {false, true})
    for (const char* optimizer : {"sgd", "adam"}) {
      SCOPED_TRACE(std::string(optimizer) + (computed ? ", computed" : ""));
      TrainingOptions options;
      options.losses = {"loss"};
      options.optimizer = optimizer;
      options.learning_rate = *LearningRate::parse(0.05, "constant");
      const auto registry = testing_stages::registry();
      const auto evaluator = make_registry_evaluator(registry);
      const auto resolved = resolve(learning(computed), registry);
      ASSERT_TRUE(resolved.ok()) << resolved.status().text();
      auto net = training_net(*resolved, registry, *evaluator, options);
      ASSERT_TRUE(net.ok()) << net.status().text();
      // The predictor stacks nothing.
      const auto predicts = predictor(*net, {{}, {"loop"}, "predictor"});
      ASSERT_TRUE(predicts.ok()) << predicts.status().text();
      ASSERT_FALSE(predicts->nodes.empty());
      EXPECT_EQ(predicts->nodes.back().type, "Loop");
      EXPECT_EQ(std::count_if(predicts->nodes.back().outputs.begin(), predicts->nodes.back().outputs.end(),
                              [](ValueId output) { return output.valid(); }),
                1);
      Session session = testing_nets::open(testing_nets::runtime(), std::move(*net));
      const std::vector<double> x = numbers(Shape{4, 3}, 5), count = {3};
      std::vector<TensorView> views = {testing_nets::view(x.data(), DType::f64, Shape{4, 3})};
      if (computed) views.push_back(testing_nets::view(count.data(), DType::f64, Shape{}));
      std::vector<double> losses;
      for (int step = 0; step < 50; ++step) {
        const auto ran = session.run(views);
        ASSERT_TRUE(ran.ok()) << ran.status().text();
        losses.push_back(*static_cast<const double*>((*ran)[0].data()));
      }
      EXPECT_LT(losses.back(), losses.front() / 2);
    }
}

// The sum of the results of three trips, whose number the body decides: w is a variable of two numbers all the same.
TEST(LoopTraining, SumsOfWhatIsStackedUntilABodyStops) {
  const auto summed = [](bool unrolled) {
    NetBuilder b("summed");
    const ValueId w = b.variable("w", blob(Shape{2}, {0.5, -1.5}), true);
    const ValueId x = b.input("x", DType::f64, Shape{2});
    if (unrolled) {
      ValueId state = x;
      std::vector<ValueId> sums;
      for (int t = 0; t < 3; ++t) {
        state = b.add1("Mul", "state" + std::to_string(t), {state, w});
        sums.push_back(sum_of(b, "sum" + std::to_string(t), state));
      }
      b.output(b.add1("Sum", "loss", sums));
      return b.finish();
    }
    NetBuilder body("body");
    const ValueId i = taken(body, "i");
    taken(body, "goes_on");
    const ValueId state = taken(body, "state"), inner = taken(body, "w");
    body.output(body.add1("Less", "more", {i, whole(body, "last", 2)}));
    const ValueId next = body.add1("Mul", "next", {state, inner});
    body.output(next);
    body.output(next);
    const auto given =
        b.add("Loop", "loop", {whole(b, "m", 7), testing_nets::yes(b), x, w}, 2, {{"body", subnet(body)}, {"captured", int64_t{1}}});
    b.output(sum_of(b, "loss", given[1]));
    return b.finish();
  };
  TrainingOptions options;
  options.losses = {"loss"};
  options.learning_rate = *LearningRate::parse(0.125, "constant");
  const std::vector<double> x = {2, 3};
  std::vector<std::vector<double>> learned;
  for (const bool unrolled : {false, true}) {
    auto trains = testing_derive::trained(summed(unrolled), options);
    ASSERT_TRUE(trains.ok()) << trains.status().text();
    Session session = testing_nets::open(testing_nets::runtime(), std::move(*trains));
    for (int step = 0; step < 2; ++step) {
      const auto ran = session.run({testing_nets::view(x.data(), DType::f64, Shape{2})});
      ASSERT_TRUE(ran.ok()) << ran.status().text();
    }
    const auto w = session.read_variable("w");
    ASSERT_TRUE(w.ok()) << w.status().text();
    const auto* const data = static_cast<const double*>(w->data());
    learned.emplace_back(data, data + 2);
  }
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(learned[0][i], learned[1][i], 1e-12);
}

}  // namespace
}  // namespace heddle
