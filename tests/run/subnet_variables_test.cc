// Variables that the branches of an If read and update: their contents afterwards, and what their readers get meanwhile.
#include <gtest/gtest.h>

#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

constexpr int64_t count = 4;

ValueId value_input(NetBuilder& b, const char* name) {
  return b.input(name, DType::f32, Shape{count});
}
ValueId accumulate(NetBuilder& b, const std::string& name, ValueId w, ValueId x) {
  return b.add1("AccumulateAdd", name, {w, x}, {}, "heddle");
}
// Returns whether any element of x is above ten.
ValueId above_ten(NetBuilder& b, ValueId x, const std::string& name = "above_ten") {
  const ValueId max = b.add1("ReduceMax", name + "_max", {x}, {{"keepdims", int64_t{0}}});
  return b.add1("Less", name, {b.constant_float(name + "_ten", 10), max});
}
// w, x -> w
std::shared_ptr<const Net> keeping() {
  NetBuilder b("keeping");
  b.output(value_input(b, "w"));
  value_input(b, "x");
  return subnet(b);
}
// w, x -> w + x, made in w's place
std::shared_ptr<const Net> adding() {
  NetBuilder b("adding");
  const ValueId w = value_input(b, "w"), x = value_input(b, "x");
  b.output(accumulate(b, "sum", w, x));
  return subnet(b);
}

// c, w, x -> the next w
ValueId choose(NetBuilder& b, const std::string& name, ValueId c, ValueId w, ValueId x, std::shared_ptr<const Net> yes,
               std::shared_ptr<const Net> no) {
  const ValueId next = b.add1("If", name, {c, w, x}, {{"then_branch", std::move(yes)}, {"else_branch", std::move(no)}});
  b.updates(next, w);
  return next;
}

// An If inside a branch; which variable it updates is inferred from the branch.
ValueId choose_again(NetBuilder& b, const std::string& name, ValueId c, ValueId w, ValueId x) {
  return b.add1("If", name, {c, w, x}, {{"then_branch", adding()}, {"else_branch", keeping()}});
}

struct Feeds {
  bool c = true;
  float x[count] = {1, 2, 3, 4};
  std::vector<TensorView> views() const { return {view(&c, DType::boolean, Shape{}), view(x, DType::f32, Shape{count})}; }
};
struct Inputs {
  explicit Inputs(NetBuilder& b) : c(b.input("c", DType::boolean, Shape{})), x(value_input(b, "x")) {}
  ValueId c, x;
};

std::vector<float> floats(const Tensor& t) {
  const auto* data = static_cast<const float*>(t.data());
  return {data, data + t.shape().element_count()};
}
std::vector<float> variable(const Session& session, const char* name) {
  const auto tensor = session.read_variable(name);
  EXPECT_TRUE(tensor.ok()) << tensor.status().text();
  return tensor.ok() ? floats(*tensor) : std::vector<float>();
}
std::vector<std::vector<float>> run(Session& session, const Feeds& feeds) {
  const auto out = session.run(feeds.views());
  EXPECT_TRUE(out.ok()) << out.status().text();
  std::vector<std::vector<float>> all;
  if (out.ok())
    for (const Tensor& t : *out) all.push_back(floats(t));
  return all;
}

using Values = std::vector<float>;

// Readers of the previous version get the previous content, in any order; readers of the next one get the branch's result.
TEST(SubnetVariables, ABranchUpdatesAndTheOtherKeeps) {
  NetBuilder b("net");
  const Inputs in(b);
  const ValueId w = b.variable("w", blob(Shape{count}, 10, 0));
  const ValueId next = choose(b, "if", in.c, w, in.x, adding(), keeping());
  b.output(b.add1("Neg", "before", {w}));
  b.output(b.add1("Neg", "after", {next}));
  const Net net = b.finish();
  for (const int threads : {1, 2})
    for (uint64_t shuffle = 0; shuffle < 20; ++shuffle) {
      Session session = open(runtime(threads), net);
      Internals::of(session).scheduler.shuffle_seed = shuffle;
      Feeds feeds;
      auto out = run(session, feeds);
      ASSERT_EQ(out[0], (Values{-10, -10, -10, -10}));
      ASSERT_EQ(out[1], (Values{-11, -12, -13, -14}));
      ASSERT_EQ(variable(session, "w"), (Values{11, 12, 13, 14}));
      feeds.c = false;
      out = run(session, feeds);
      ASSERT_EQ(out[0], (Values{-11, -12, -13, -14}));
      ASSERT_EQ(out[1], out[0]);
      feeds.c = true;
      out = run(session, feeds);
      ASSERT_EQ(variable(session, "w"), (Values{12, 14, 16, 18}));
    }
}

// The branch makes the next version in other memory, and still reads this one: it is copied when the branch is done.
TEST(SubnetVariables, ABranchMayMakeTheNextVersionAnew) {
  NetBuilder anew("anew"), same("same"), b("net");
  const ValueId inner = value_input(anew, "w"), x = value_input(anew, "x");
  const ValueId product = anew.add1("Mul", "product", {inner, x});
  anew.output(product);
  anew.output(anew.add1("Sub", "difference", {inner, anew.add1("Exp", "late", {anew.add1("Neg", "waits", {product})})}));
  const ValueId kept = value_input(same, "w");
  value_input(same, "x");
  same.output(kept);
  same.output(kept);
  const Inputs in(b);
  const ValueId w = b.variable("w", blob(Shape{count}, 100, 0));
  const auto out = b.add("If", "if", {in.c, w, in.x}, 2, {{"then_branch", subnet(anew)}, {"else_branch", subnet(same)}});
  b.updates(out[0], w);
  b.output(out[1]);
  for (const int threads : {1, 2}) {
    Session session = open(runtime(threads), NetBuilder(b).finish());
    Feeds feeds;
    const auto got = run(session, feeds);
    ASSERT_EQ(variable(session, "w"), (Values{100, 200, 300, 400}));
    EXPECT_EQ(got[0], (Values{100, 100, 100, 100}));
    feeds.c = false;
    EXPECT_EQ(run(session, feeds)[0], (Values{100, 200, 300, 400}));
    EXPECT_EQ(variable(session, "w"), (Values{100, 200, 300, 400}));
  }
}

// A branch in a branch reads the variable, which the outer one updates with the result.
TEST(SubnetVariables, BranchesInBranchesReadThem) {
  NetBuilder outer("outer"), doubled("doubled"), plain("plain"), b("net");
  const ValueId read = value_input(doubled, "w");
  value_input(doubled, "x");
  doubled.output(doubled.add1("Add", "double", {read, read}));
  value_input(plain, "w");
  plain.output(value_input(plain, "x"));
  const ValueId w1 = value_input(outer, "w"), x1 = value_input(outer, "x");
  const ValueId big = above_ten(outer, x1);
  const ValueId step = outer.add1("If", "step", {big, w1, x1}, {{"then_branch", subnet(doubled)}, {"else_branch", subnet(plain)}});
  outer.output(accumulate(outer, "sum", w1, step));
  const Inputs in(b);
  const ValueId w = b.variable("w", blob(Shape{count}, 0, 0));
  b.output(choose(b, "if", in.c, w, in.x, subnet(outer), keeping()));
  Session session = open(runtime(), b.finish());
  Feeds feeds;
  run(session, feeds);
  EXPECT_EQ(variable(session, "w"), (Values{1, 2, 3, 4}));
  feeds.x[3] = 20;
  run(session, feeds);
  EXPECT_EQ(variable(session, "w"), (Values{3, 6, 9, 12}));
}

// An If whose output is that of the branch updates in its own branches.
TEST(SubnetVariables, BranchesInBranchesUpdateThem) {
  NetBuilder outer("outer"), b("net");
  const ValueId w1 = value_input(outer, "w"), x1 = value_input(outer, "x");
  const ValueId big = above_ten(outer, x1);
  const ValueId once = accumulate(outer, "once", w1, x1);
  outer.output(outer.add1("If", "twice", {big, once, x1}, {{"then_branch", adding()}, {"else_branch", keeping()}}));
  const Inputs in(b);
  const ValueId w = b.variable("w", blob(Shape{count}, 0, 0));
  b.output(choose(b, "if", in.c, w, in.x, subnet(outer), keeping()));
  for (const int threads : {1, 2}) {
    Session session = open(runtime(threads), NetBuilder(b).finish());
    Feeds feeds;
    run(session, feeds);
    EXPECT_EQ(variable(session, "w"), (Values{1, 2, 3, 4}));
    feeds.x[3] = 20;
    run(session, feeds);
    EXPECT_EQ(variable(session, "w"), (Values{3, 6, 9, 44}));
    feeds.c = false;
    run(session, feeds);
    EXPECT_EQ(variable(session, "w"), (Values{3, 6, 9, 44}));
  }
}

// The output of an If is updated again.
TEST(SubnetVariables, UpdatesInABranchFollowOneAnother) {
  NetBuilder outer("outer"), b("net");
  const ValueId w1 = value_input(outer, "w"), x1 = value_input(outer, "x");
  const ValueId first = choose_again(outer, "first", above_ten(outer, x1), w1, x1);
  const ValueId second = accumulate(outer, "second", first, x1);
  outer.output(accumulate(outer, "third", choose_again(outer, "between", above_ten(outer, second, "again"), second, x1), x1));
  const Inputs in(b);
  const ValueId w = b.variable("w", blob(Shape{count}, 0, 0));
  const ValueId next = choose(b, "if", in.c, w, in.x, subnet(outer), keeping());
  b.output(b.add1("Neg", "before", {w}));
  b.output(next);
  for (const int threads : {1, 2}) {
    Session session = open(runtime(threads), NetBuilder(b).finish());
    Feeds feeds;
    EXPECT_EQ(run(session, feeds)[1], (Values{2, 4, 6, 8}));
    feeds.x[3] = 20;
    EXPECT_EQ(run(session, feeds)[0], (Values{-2, -4, -6, -8}));
    EXPECT_EQ(variable(session, "w"), (Values{6, 12, 18, 88}));
  }
}

// An If's output that no operator updates is a value of its own: of another shape, also an output of the branch, and read beside the
// version.
TEST(SubnetVariables, WhatNoOperatorUpdatesIsNoVersion) {
  NetBuilder outer("outer"), same("same"), both("both"), half("half"), b("net");
  const ValueId doubled = value_input(both, "w");
  both.output(both.add1("Concat", "both", {doubled, doubled}, {{"axis", int64_t{0}}}));
  const ValueId long_one = half.input("both", DType::f32, Shape{2 * count});
  half.output(half.add("Split", "half", {long_one, half.constant_ints("sizes", {count, count})}, 2)[1]);
  const auto long_branch = subnet(both), short_branch = subnet(half);
  const ValueId w1 = value_input(outer, "w"), x1 = value_input(outer, "x");
  const ValueId big = above_ten(outer, x1);
  const ValueId longer = outer.add1("If", "longer", {big, w1}, {{"then_branch", long_branch}, {"else_branch", long_branch}});
  const ValueId kept = outer.add1("If", "kept", {big, longer}, {{"then_branch", short_branch}, {"else_branch", short_branch}});
  outer.output(outer.add1("Add", "sum", {kept, x1}));
  outer.output(longer);
  const ValueId kept_again = value_input(same, "w");
  value_input(same, "x");
  same.output(kept_again);
  same.output(same.add1("Concat", "both", {kept_again, kept_again}, {{"axis", int64_t{0}}}));
  const Inputs in(b);
  const ValueId w = b.variable("w", blob(Shape{count}, 1, 0));
  const auto out = b.add("If", "if", {in.c, w, in.x}, 2, {{"then_branch", subnet(outer)}, {"else_branch", subnet(same)}});
  b.updates(out[0], w);
  b.output(out[1]);
  Session session = open(runtime(2), b.finish());
  EXPECT_EQ(run(session, Feeds())[0], Values(2 * count, 1));
  EXPECT_EQ(variable(session, "w"), (Values{2, 3, 4, 5}));
}

// The If is a late step: the number of elements of one of its captures is known only during the run.
TEST(SubnetVariables, ALateIfUpdatesThem) {
  NetBuilder summing("summing"), same("same"), b("net");
  for (NetBuilder* each : {&summing, &same}) {
    const ValueId w = value_input(*each, "w");
    const ValueId found = each->input("found", DeclaredType());
    const ValueId floats = each->add1("Cast", "floats", {found}, {{"to", int64_t{1}}});
    const ValueId sum = each->add1("ReduceSum", "total", {floats}, {{"keepdims", int64_t{0}}});
    each->output(each == &summing ? accumulate(*each, "sum", w, each->add1("Expand", "wide", {sum, each->constant_ints("extent", {count})}))
                                  : w);
  }
  const Inputs in(b);
  const ValueId w = b.variable("w", blob(Shape{count}, 0, 0));
  const ValueId found = b.add1("NonZero", "found", {in.x});
  const ValueId next = b.add1("If", "if", {in.c, w, found}, {{"then_branch", subnet(summing)}, {"else_branch", subnet(same)}});
  b.updates(next, w);
  b.output(next);
  for (const int threads : {1, 2}) {
    Session session = open(runtime(threads), NetBuilder(b).finish());
    Feeds feeds;
    EXPECT_EQ(run(session, feeds)[0], (Values{6, 6, 6, 6}));
    feeds.x[3] = 0;
    EXPECT_EQ(run(session, feeds)[0], (Values{9, 9, 9, 9}));
    feeds.c = false;
    EXPECT_EQ(run(session, feeds)[0], (Values{9, 9, 9, 9}));
    EXPECT_EQ(variable(session, "w"), (Values{9, 9, 9, 9}));
  }
}

// Each update would overwrite the operand of the other.
TEST(SubnetVariables, VariablesAreNotExchanged) {
  NetBuilder swap("swap"), same("same"), b("net");
  for (NetBuilder* each : {&swap, &same}) {
    const ValueId first = value_input(*each, "a"), second = value_input(*each, "b");
    each->output(each == &swap ? second : first);
    each->output(each == &swap ? first : second);
  }
  const ValueId c = b.input("c", DType::boolean, Shape{});
  const ValueId first = b.variable("a", blob(Shape{count}, 1, 0)), second = b.variable("b", blob(Shape{count}, 2, 0));
  const auto out = b.add("If", "if", {c, first, second}, 2, {{"then_branch", subnet(swap)}, {"else_branch", subnet(same)}});
  b.updates(out[0], first);
  b.updates(out[1], second);
  b.output(out[0]);
  Session session = open(runtime(), b.finish());
  bool taken = false;
  EXPECT_TRUE(session.run({view(&taken, DType::boolean, Shape{})}).ok());
  taken = true;
  const auto swapped = session.run({view(&taken, DType::boolean, Shape{})});
  EXPECT_EQ(swapped.status().code(), Code::kernel_failed);
  EXPECT_NE(swapped.status().text().find("is another variable that is updated too: copy that first"), std::string::npos)
      << swapped.status().text();
}

TEST(SubnetVariables, ANextVersionHasTheTypeOfTheLast) {
  NetBuilder twice("twice"), b("net");
  const ValueId inner = value_input(twice, "w"), x = value_input(twice, "x");
  twice.output(twice.add1("Concat", "both", {inner, x}, {{"axis", int64_t{0}}}));
  const auto longer = subnet(twice);
  const Inputs in(b);
  const ValueId w = b.variable("w", blob(Shape{count}, 1, 0));
  b.output(choose(b, "if", in.c, w, in.x, longer, longer));
  auto session = runtime().open(b.finish(), SessionOptions());
  ASSERT_TRUE(session.ok()) << session.status().text();
  const auto context = session->prepare();
  EXPECT_EQ(context.status().code(), Code::shape_mismatch) << context.status().text();
}

// How much a branch does before it fails is unknown: the variables that it updates must be written again.
TEST(SubnetVariables, AFailedBranchLeavesItsVariablesMarked) {
  NetBuilder failing("failing"), b("net");
  const ValueId inner = value_input(failing, "w"), x = value_input(failing, "x");
  const ValueId index = failing.add1("Cast", "index", {x}, {{"to", int64_t{7}}});
  failing.output(accumulate(failing, "sum", inner, failing.add1("Gather", "gather", {x, index})));
  const Inputs in(b);
  const ValueId w = b.variable("w", blob(Shape{count}, 1, 0));
  b.output(choose(b, "if", in.c, w, in.x, subnet(failing), keeping()));
  Session session = open(runtime(), b.finish());
  Feeds feeds;  // index 4 is out of range
  EXPECT_EQ(session.run(feeds.views()).status().code(), Code::kernel_failed);
  EXPECT_EQ(session.run(feeds.views()).status().code(), Code::hazard);
  const Values whole(count, 7);
  ASSERT_TRUE(session.write_variable("w", view(whole.data(), DType::f32, Shape{count})).ok());
  feeds.c = false;
  EXPECT_EQ(run(session, feeds)[0], whole);
}

}  // namespace
}  // namespace heddle
