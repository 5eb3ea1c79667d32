// prune: what leaves a net, and what only looks as if it could.
#include "stages.h"

namespace heddle {
namespace {

using namespace testing_nets;
using namespace testing_stages;

TEST(Prune, DropsWhatNobodyReadsAndIdentities) {
  NetBuilder b("dead");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  b.input("unread", DType::f32, Shape{1});
  b.constant("unread constant", blob(Shape{2}, 0, 1));
  b.add1("Exp", "unused", {b.add1("Neg", "unused too", {x})});
  b.output(b.add1("Identity", "copy", {b.add1("Abs", "abs", {x})}));
  EXPECT_EQ(transformed(b.finish(), {"prune"}), R"net(dead(x: f32[4], unread: f32[1]) -> (copy)
copy: f32[4] = Abs(x) # abs
)net");
}

TEST(Prune, AnIdentityBetweenOperatorsGoes) {
  NetBuilder b("between");
  const ValueId copy = b.add1("Identity", "copy", {b.input("x", DType::f32, Shape{4})});
  b.output(b.add1("Add", "y", {copy, copy}));
  EXPECT_EQ(transformed(b.finish(), {"prune"}), R"net(between(x: f32[4]) -> (y)
y: f32[4] = Add(x, x)
)net");
}

TEST(Prune, KeepsTheCopyOfAnInputThatIsAnOutput) {
  NetBuilder b("passes");
  b.output(b.add1("Identity", "copy", {b.input("x", DType::f32, Shape{4})}));
  EXPECT_EQ(transformed(b.finish(), {"prune"}), R"net(passes(x: f32[4]) -> (copy)
copy: f32[4] = Identity(x)
)net");
}

TEST(Prune, KeepsTheCopyOfAnOutputThatIsAnOutput) {
  NetBuilder b("twice");
  const ValueId y = b.add1("Neg", "y", {b.input("x", DType::f32, Shape{4})});
  b.output(y);
  b.output(b.add1("Identity", "copy", {y}));
  EXPECT_EQ(transformed(b.finish(), {"prune"}), R"net(twice(x: f32[4]) -> (y, copy)
y: f32[4] = Neg(x)
copy: f32[4] = Identity(y)
)net");
}

TEST(Prune, KeepsTheCopyOfAVariableThatIsAnOutput) {
  NetBuilder b("reads");
  b.output(b.add1("Identity", "copy", {b.variable("w", blob(Shape{2}, 1, 0))}));
  EXPECT_EQ(transformed(b.finish(), {"prune"}), R"net(reads() -> (copy)
variable w: f32[2] = [1, 1]
copy: f32[2] = Identity(w@0)
)net");
}

TEST(Prune, KeepsUpdatesThatNobodyReads) {
  NetBuilder b("updates");
  const ValueId w = b.variable("w", blob(Shape{2}, 1, 0));
  b.add1("AccumulateAdd", "next", {w, b.add1("Identity", "same", {b.add1("Neg", "n", {b.input("x", DType::f32, Shape{2})})})}, {},
         "heddle");
  EXPECT_EQ(transformed(b.finish(), {"prune"}), R"net(updates(x: f32[2]) -> ()
variable w: f32[2] = [1, 1] -> w@1
n: f32[2] = Neg(x)
w@1: f32[2] = heddle::AccumulateAdd(w@0, n) # next
)net");
}

TEST(Prune, KeepsWhatHasAnEffect) {
  NetBuilder b("effect");
  b.add1("Fault", "fault", {b.input("x", DType::f32, Shape{2})}, {}, "bare");
  Stages bare;
  bare.plugins = {"bare"};
  EXPECT_EQ(transformed(b.finish(), {"prune"}, bare), R"net(effect(x: f32[2]) -> ()
fault: f32[2] = bare::Fault(x)
)net");
}

TEST(Prune, KeepsAnOperatorOfWhichOneOutputIsRead) {
  NetBuilder b("parts");
  const auto parts = b.add("Split", "parts", {b.input("x", DType::f32, Shape{4})}, 2, {{"num_outputs", int64_t{2}}});
  b.output(b.add1("Neg", "y", {parts[1]}));
  EXPECT_EQ(transformed(b.finish(), {"prune"}), R"net(parts(x: f32[4]) -> (y)
parts:0: f32[2], parts:1: f32[2] = Split(x) num_outputs=2 # parts
y: f32[2] = Neg(parts:1)
)net");
}

// Who waited for what is gone waits for what that waited for.
TEST(Prune, OrderThroughWhatIsGoneStays) {
  NetBuilder b("order");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  b.output(b.add1("Neg", "first", {x}));
  b.output(b.add1("Abs", "read", {x}));
  b.add1("Exp", "gone", {b.net().outputs[1]});
  b.output(b.add1("Sqrt", "last", {x}));
  b.net().nodes[2].control = {NodeId(0)};
  b.net().nodes[3].control = {NodeId(2)};
  EXPECT_EQ(transformed(b.finish(), {"prune"}), R"net(order(x: f32[4]) -> (first, read, last)
first: f32[4] = Neg(x)
read: f32[4] = Abs(x)
last: f32[4] = Sqrt(x) after(first, read)
)net");
}

TEST(Prune, AnIdentityInASubnetIsTheSubnetsAffair) {
  NetBuilder then_net("then"), else_net("else"), b("branches");
  then_net.output(then_net.add1("Identity", "t", {then_net.add1("Neg", "n", {then_net.input("x", DType::f32, Shape{2})})}));
  else_net.output(else_net.add1("Abs", "e", {else_net.input("x", DType::f32, Shape{2})}));
  b.output(b.add1("If", "y", {b.input("c", DType::boolean, Shape{}), b.input("x", DType::f32, Shape{2})},
                  {{"then_branch", subnet(then_net)}, {"else_branch", subnet(else_net)}}));
  EXPECT_EQ(transformed(b.finish(), {"prune"}), R"net(branches(c: bool[], x: f32[2]) -> (y)
y: f32[2] = If(c, x) then_branch={
  then(x: f32[2]) -> (t)
  n = Neg(x)
  t = Identity(n)
} else_branch={
  else(x: f32[2]) -> (e)
  e = Abs(x)
}
)net");
}

}  // namespace
}  // namespace heddle
