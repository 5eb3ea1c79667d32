// A subnet that does not fit, beside one that does: the net is accepted as long as no run reaches it, check and plan warn of it, and a run
// that reaches it fails with the error.
#include <gtest/gtest.h>

#include "session/session_impl.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

// x [2, 3] -> x * constant of `extent` columns; fits for 3.
std::shared_ptr<const Net> by_columns(const std::string& name, int64_t extent, const std::string& type = "Mul") {
  NetBuilder b(name);
  const ValueId x = b.input("x", DType::f32, Shape{2, 3});
  b.output(b.add1(type, "columns", {x, b.constant("w", blob(Shape{extent}, 2, 1))}));
  return subnet(b);
}

Net choosing(std::shared_ptr<const Net> then_branch, std::shared_ptr<const Net> else_branch, bool known = false, bool value = true) {
  NetBuilder b("chooses");
  const char byte = value ? 1 : 0;
  const ValueId c = known ? b.constant("c", Blob::copy_of(DType::boolean, Shape{}, &byte)) : b.input("c", DType::boolean, Shape{});
  const ValueId x = b.input("x", DType::f32, Shape{2, 3});
  b.output(b.add1("If", "if", {c, x}, {{"then_branch", std::move(then_branch)}, {"else_branch", std::move(else_branch)}}));
  return b.finish();
}

std::vector<Diagnostic> checked(const Runtime& runtime, Net net) {
  const auto session = runtime.open(std::move(net), {});
  EXPECT_TRUE(session.ok()) << session.status().text();
  if (!session.ok()) return {};
  return check_net(Internals::of(*session).net, Internals::of(*session).registry, Internals::of(*session).target,
                   Internals::of(*session).pipeline)
      .all();
}

void expect_warning(const std::vector<Diagnostic>& found, const std::string& path) {
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::warning);
  EXPECT_EQ(found[0].code, Code::shape_mismatch);
  EXPECT_EQ(found[0].node, path);
  EXPECT_NE(found[0].message.find("so a run that comes to it fails"), std::string::npos) << found[0].message;
}

TEST(ImpossibleSubnets, ABranchThatDoesNotFitFailsWhenItIsTaken) {
  const auto x = blob(Shape{2, 3}, 0, 1);
  for (const bool wrong : {true, false}) {  // the branch that does not fit
    const Runtime r = runtime();
    Net net = choosing(by_columns("then", wrong ? 4 : 3), by_columns("else", wrong ? 3 : 4));
    expect_warning(checked(r, net), "if/columns");
    Session session = open(r, std::move(net));
    auto context = session.prepare();
    ASSERT_TRUE(context.ok()) << context.status().text();
    EXPECT_EQ(context->plan()->warnings.size(), 1u);
    ASSERT_TRUE(context->bind_input(1, x->data).ok());
    for (int round = 0; round < 2; ++round) {
      bool condition = wrong;
      ASSERT_TRUE(context->bind_input(0, &condition).ok());
      const Status failed = context->run();
      EXPECT_EQ(failed.code(), Code::shape_mismatch) << failed.text();
      EXPECT_EQ(failed.diagnostic().node, "if/columns") << failed.text();
      condition = !wrong;
      const Status ran = context->run();
      ASSERT_TRUE(ran.ok()) << "the context is usable: " << ran.text();
      EXPECT_EQ(static_cast<const float*>(context->output(0).data)[5], 5.0f * 4.0f);
    }
  }
}

TEST(ImpossibleSubnets, AConditionThatIsKnownLeavesTheOtherBranchAlone) {
  for (const bool taken : {true, false}) {
    const Runtime r = runtime();
    const auto right = by_columns("right", 3), wrong = by_columns("wrong", 4);
    EXPECT_TRUE(checked(r, choosing(taken ? right : wrong, taken ? wrong : right, true, taken)).empty());
    const auto found = checked(r, choosing(taken ? wrong : right, taken ? right : wrong, true, taken));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].severity, Severity::error);
  }
}

// An operator of no plugin is a mistake of the file, whatever branch it is in.
TEST(ImpossibleSubnets, AnUnknownOperatorIsNone) {
  EXPECT_FALSE(runtime().open(choosing(by_columns("then", 3), by_columns("else", 3, "Frobnicate")), {}).ok());
}

TEST(ImpossibleSubnets, NestedBranchesAreToldWithTheirPath) {
  NetBuilder middle("middle");
  const ValueId c = middle.input("c", DType::boolean, Shape{}), x = middle.input("x", DType::f32, Shape{2, 3});
  middle.output(middle.add1("If", "inner", {c, x}, {{"then_branch", by_columns("inmost", 7)}, {"else_branch", by_columns("fits", 3)}}));
  const auto nested = subnet(middle);
  NetBuilder left("left");
  left.input("c", DType::boolean, Shape{});
  left.output(left.add1("Neg", "neg", {left.input("x", DType::f32, Shape{2, 3})}));
  NetBuilder b("outer");
  const ValueId outer = b.input("c", DType::boolean, Shape{}), value = b.input("x", DType::f32, Shape{2, 3});
  b.output(b.add1("If", "if", {outer, outer, value}, {{"then_branch", nested}, {"else_branch", subnet(left)}}));
  expect_warning(checked(runtime(), b.finish()), "if/inner/columns");
}

// The body adds `extent` columns to a value of three.
Net looping(int64_t extent, bool known_trips = true, int64_t trips = 0, bool known_condition = true, bool condition = true,
            bool collects = false) {
  NetBuilder body("body"), b("loops");
  body.input("turn", DType::i64, Shape{});
  const ValueId go_on = body.input("go_on", DType::boolean, Shape{}), x = body.input("x", DType::f32, Shape{2, 3});
  body.output(body.add1("Identity", "still", {go_on}));
  const ValueId sum = body.add1("Add", "columns", {x, body.constant("w", blob(Shape{extent}, 1, 0))});
  body.output(sum);
  if (collects) body.output(body.add1("Identity", "each", {sum}));
  const char byte = condition ? 1 : 0;
  const ValueId m = known_trips ? b.constant("m", Blob::copy_of(DType::i64, Shape{}, &trips)) : b.input("m", DType::i64, Shape{});
  const ValueId go =
      known_condition ? b.constant("go", Blob::copy_of(DType::boolean, Shape{}, &byte)) : b.input("go", DType::boolean, Shape{});
  for (const ValueId out :
       b.add("Loop", "loop", {m, go, b.input("x", DType::f32, Shape{2, 3})}, collects ? 2 : 1, {{"body", subnet(body)}}))
    b.output(out);
  return b.finish();
}

TEST(ImpossibleSubnets, ALoopOfNoTripsNeedsNoBody) {
  const auto x = blob(Shape{2, 3}, 0, 1);
  for (const bool by_condition : {false, true}) {
    const Runtime r = runtime();
    Net net = looping(4, true, by_condition ? 5 : 0, true, !by_condition);
    expect_warning(checked(r, net), "loop/columns");
    Session session = open(r, std::move(net));
    auto context = session.prepare();
    ASSERT_TRUE(context.ok()) << context.status().text();
    ASSERT_TRUE(context->bind_input(0, x->data).ok());
    const Status ran = context->run();
    ASSERT_TRUE(ran.ok()) << ran.text();
    EXPECT_EQ(static_cast<const float*>(context->output(0).data)[4], 4.0f);
  }
}

TEST(ImpossibleSubnets, ABodyThatDoesNotFitFailsWhenTheLoopGoesRound) {
  const auto x = blob(Shape{2, 3}, 0, 1);
  const Runtime r = runtime();
  Session session = open(r, looping(4, true, 5, false));
  auto context = session.prepare();
  ASSERT_TRUE(context.ok()) << context.status().text();
  ASSERT_TRUE(context->bind_input(1, x->data).ok());
  for (const bool goes : {true, false, true}) {
    ASSERT_TRUE(context->bind_input(0, &goes).ok());
    const Status ran = context->run();
    EXPECT_EQ(ran.code(), goes ? Code::shape_mismatch : Code::ok) << ran.text();
  }
}

TEST(ImpossibleSubnets, ALoopThatGoesRoundForSureIsWrong) {
  const Runtime r = runtime();
  const auto found = checked(r, looping(4, true, 2));
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].severity, Severity::error);
  // The type of the values that a body collects follows from the body only.
  const auto collected = checked(r, looping(4, true, 0, true, true, true));
  ASSERT_FALSE(collected.empty());
  EXPECT_EQ(collected[0].severity, Severity::error);
}

}  // namespace
}  // namespace heddle
