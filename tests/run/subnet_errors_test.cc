// Errors inside a subnet are reported like those outside: with their code, their hint, and the path to the operator.
#include <gtest/gtest.h>

#include "session/session_impl.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

// x [2, 3] -> "mul" = x * constant of `extent` columns -> y
std::shared_ptr<const Net> times_columns(const std::string& name, int64_t extent, const std::string& device = {}) {
  NetBuilder b(name);
  const ValueId x = b.input("x", DType::f32, Shape{2, 3});
  b.output(b.add1("Mul", "mul", {x, b.constant("w", blob(Shape{extent}, 1, 1))}));
  b.net().nodes[0].device = device;
  return subnet(b);
}

// c, x -> If(c): then_branch or else_branch
Net branching(std::shared_ptr<const Net> then_branch, std::shared_ptr<const Net> else_branch) {
  NetBuilder b("outer");
  const ValueId c = b.input("c", DType::boolean, Shape{}), x = b.input("x", DType::f32, Shape{2, 3});
  b.output(b.add1("If", "if", {c, x}, {{"then_branch", std::move(then_branch)}, {"else_branch", std::move(else_branch)}}));
  return b.finish();
}

std::vector<Diagnostic> found(const Runtime& runtime, Net net, const SessionOptions& options = {}) {
  const auto session = runtime.open(std::move(net), options);
  EXPECT_TRUE(session.ok()) << session.status().text();
  if (!session.ok()) return {};
  return check_net(Internals::of(*session).net, Internals::of(*session).registry, Internals::of(*session).target,
                   Internals::of(*session).pipeline)
      .all();
}

TEST(SubnetErrors, ShapesKeepCodeAndPathAndBothBranchesAreToldAtOnce) {
  const Runtime r = runtime();
  const Status status = open(r, branching(times_columns("then", 4), times_columns("else", 5))).prepare().status();
  ASSERT_EQ(status.code(), Code::shape_mismatch) << status.text();
  std::vector<Diagnostic> all = status.diagnostic().attached;
  all.insert(all.begin(), status.diagnostic());
  ASSERT_EQ(all.size(), 2u);
  for (const Diagnostic& d : all) {
    EXPECT_EQ(d.code, Code::shape_mismatch);
    EXPECT_EQ(d.net, "outer");
    EXPECT_EQ(d.node, "if/mul");
    EXPECT_EQ(d.type, "Mul");
  }
  EXPECT_NE(all[0].text().find("in subnet \"then\""), std::string::npos) << all[0].text();
  EXPECT_NE(all[1].text().find("in subnet \"else\""), std::string::npos) << all[1].text();
  EXPECT_EQ(found(r, branching(times_columns("then", 4), times_columns("else", 5))).size(), 2u);
}

TEST(SubnetErrors, PathsGoThroughEveryLevel) {
  const auto inner = [&] {
    NetBuilder b("middle");
    const ValueId c = b.constant("yes", Blob::copy_of(DType::boolean, Shape{}, "\1")), x = b.input("x", DType::f32, Shape{2, 3});
    b.output(b.add1("If", "choice", {c, x}, {{"then_branch", times_columns("inmost", 7)}, {"else_branch", times_columns("other", 3)}}));
    return subnet(b);
  }();
  const Status status = open(runtime(), branching(inner, times_columns("else", 4))).prepare().status();
  EXPECT_EQ(status.code(), Code::shape_mismatch);
  EXPECT_EQ(status.diagnostic().node, "if/choice/mul");
  EXPECT_NE(status.text().find("in subnet \"inmost\", in subnet \"middle\""), std::string::npos) << status.text();
}

TEST(SubnetErrors, LimitsKeepNameAndHint) {
  SessionOptions options;
  options.limits.tensor_bytes = 30;
  const auto large = [] {
    NetBuilder b("large");
    const ValueId x = b.input("x", DType::f32, Shape{2, 3});
    const ValueId w = b.add1("Concat", "wide", {x, x, x}, {{"axis", int64_t{0}}});
    b.output(b.add1("ReduceSum", "sum", {w}, {{"keepdims", int64_t{1}}}));
    return subnet(b);
  };
  const Status status = open(runtime(), branching(large(), large()), options).prepare().status();
  EXPECT_EQ(status.code(), Code::limit_exceeded) << status.text();
  EXPECT_EQ(status.diagnostic().node, "if/wide");
  EXPECT_EQ(status.diagnostic().option, "SessionOptions::limits.tensor_bytes") << status.text();
}

// A nested loop makes too many trips: the inner loop's limit is the run's error.
TEST(SubnetErrors, RunsKeepThemToo) {
  const auto loop_of = [](NetBuilder& b, int64_t turns, std::shared_ptr<const Net> body) {
    const ValueId count = b.constant("turns", Blob::copy_of(DType::i64, Shape{}, &turns));
    const ValueId begin = b.constant("begin", Blob::copy_of(DType::boolean, Shape{}, "\1"));
    return b.add1("Loop", "loop", {count, begin, b.input("x", DType::f32, Shape{2})}, {{"body", std::move(body)}});
  };
  const auto ports = [](NetBuilder& b) {
    b.input("turn", DType::i64, Shape{});
    b.output(b.input("go_on", DType::boolean, Shape{}));
  };
  NetBuilder inmost("inmost"), body("body"), outer("outer");
  ports(inmost);
  inmost.output(inmost.add1("Neg", "turned", {inmost.input("x", DType::f32, Shape{2})}));
  ports(body);
  body.output(loop_of(body, 1000, subnet(inmost)));
  outer.output(loop_of(outer, 2, subnet(body)));
  SessionOptions options;
  options.limits.loop_trips = 100;
  const float x[2] = {1, 2};
  const auto outputs = open(runtime(), outer.finish(), options).run({{DType::f32, Shape{2}, const_cast<float*>(x)}});
  EXPECT_EQ(outputs.status().code(), Code::limit_exceeded) << outputs.status().text();
  EXPECT_EQ(outputs.status().diagnostic().node, "loop/loop");
  EXPECT_EQ(outputs.status().diagnostic().net, "outer");
  EXPECT_EQ(outputs.status().diagnostic().option, "SessionOptions::limits.loop_trips") << outputs.status().text();
}

TEST(SubnetErrors, VerifyLooksIntoThem) {
  const Runtime r = runtime();
  // An operator whose output is not read gives a warning with its path.
  NetBuilder b("then");
  const ValueId x = b.input("x", DType::f32, Shape{2, 3});
  b.add1("Exp", "idle", {x});
  b.output(b.add1("Neg", "turned", {x}));
  const auto warned = found(r, branching(subnet(b), times_columns("else", 3)));
  ASSERT_EQ(warned.size(), 1u);
  EXPECT_EQ(warned[0].severity, Severity::warning);
  EXPECT_EQ(warned[0].code, Code::unused_operator);
  EXPECT_EQ(warned[0].node, "if/idle");
  // Devices are not allowed there.
  const auto placed = found(r, branching(times_columns("then", 3, "gpu:0"), times_columns("else", 3)));
  ASSERT_EQ(placed.size(), 1u);
  EXPECT_EQ(placed[0].code, Code::unsupported);
  EXPECT_EQ(placed[0].node, "if/mul");
  EXPECT_EQ(open(r, branching(times_columns("then", 3, "gpu:0"), times_columns("else", 3))).prepare().status().code(), Code::unsupported);
  // A net without mistakes has no findings.
  EXPECT_TRUE(found(r, branching(times_columns("then", 3), times_columns("else", 3))).empty());
}

// Wrong shapes give no findings about the operators that follow.
TEST(SubnetErrors, NothingIsSaidOfWhatIsBehindAMistake) {
  NetBuilder b("chain");
  ValueId x = b.input("x", DType::f32, Shape{2, 3});
  x = b.add1("Mul", "wrong", {x, b.constant("w", blob(Shape{4}, 1, 1))});
  b.net().values[x.index].type = DeclaredType::of(DType::f32, Shape{2, 3});
  x = b.add1("Relu", "behind", {x});
  b.net().values[x.index].type = DeclaredType::of(DType::f32, Shape{2, 3});
  b.output(x);
  const auto all = found(runtime(), b.finish());
  ASSERT_EQ(all.size(), 1u) << all[1].text();
  EXPECT_EQ(all[0].node, "wrong");
}

}  // namespace
}  // namespace heddle
