// fold_constants: which values become constants, and which must not.
#include "stages.h"

namespace heddle {
namespace {

using namespace testing_nets;
using namespace testing_stages;

TEST(Fold, OperatorsOfConstantsBecomeConstants) {
  NetBuilder b("chain");
  const ValueId a = b.constant("a", blob(Shape{2}, 1, 1));
  const ValueId sum = b.add1("Add", "sum", {a, a});
  b.output(b.add1("Mul", "y", {b.input("x", DType::f32, Shape{2}), b.add1("Neg", "minus", {sum})}));
  EXPECT_EQ(transformed(b.finish(), {"fold_constants"}), R"net(chain(x: f32[2]) -> (y)
minus: f32[2] = [-2, -4]
y: f32[2] = Mul(x, minus)
)net");
}

TEST(Fold, AnOutputBecomesAConstant) {
  NetBuilder b("output");
  b.output(b.add1("Neg", "y", {b.constant("a", blob(Shape{2}, 1, 1))}));
  EXPECT_EQ(transformed(b.finish(), {"fold_constants"}), R"net(output() -> (y)
y: f32[2] = [-1, -2]
)net");
}

TEST(Fold, OutputsThatNobodyWantsAreLeftOut) {
  NetBuilder b("parts");
  const auto parts = b.add("Split", "parts", {b.constant("a", blob(Shape{4}, 1, 1))}, 2, {{"num_outputs", int64_t{2}}});
  b.net()[parts[0]].producer = {};
  b.net().nodes[0].outputs[0] = {};
  b.output(parts[1]);
  EXPECT_EQ(transformed(b.finish(), {"fold_constants"}), R"net(parts() -> (parts:1)
parts:1: f32[2] = [3, 4]
)net");
}

// The extents of x are known, its content is not.
TEST(Fold, ContentThatInferenceFollowedBecomesAConstant) {
  NetBuilder b("shapes");
  const ValueId x = b.input("x", DType::f32, Shape{2, 3});
  const ValueId extents = b.add1("Shape", "extents", {x});
  b.output(b.add1("Reshape", "y", {x, b.add1("Gather", "last", {extents, b.constant_ints("at", {1, 0})})}));
  EXPECT_EQ(transformed(b.finish(), {"fold_constants"}), R"net(shapes(x: f32[2, 3]) -> (y)
last: i64[2] = [3, 2]
y: f32[3, 2] = Reshape(x, last)
)net");
}

TEST(Fold, WhatReadsAVariableStays) {
  NetBuilder b("variable");
  b.output(b.add1("Neg", "y", {b.variable("w", blob(Shape{2}, 1, 1))}));
  EXPECT_EQ(transformed(b.finish(), {"fold_constants"}), R"net(variable() -> (y)
variable w: f32[2] = [1, 2]
y: f32[2] = Neg(w@0)
)net");
}

TEST(Fold, RandomOperatorsStay) {
  NetBuilder b("random");
  b.output(b.add1("RandomUniform", "y", {}, {{"shape", std::vector<int64_t>{2}}}));
  EXPECT_EQ(transformed(b.finish(), {"fold_constants"}), R"net(random() -> (y)
y: f32[2] = RandomUniform() shape=[2]
)net");
}

TEST(Fold, OperatorsWithSubnetsStay) {
  NetBuilder body("body"), b("branches");
  body.output(body.add1("Neg", "t", {body.input("x", DType::f32, Shape{2})}));
  const auto same = subnet(body);
  b.output(b.add1("If", "y", {yes(b), b.constant("a", blob(Shape{2}, 1, 1))}, {{"then_branch", same}, {"else_branch", same}}));
  EXPECT_EQ(transformed(b.finish(), {"fold_constants"}), R"net(branches() -> (y)
yes: bool[] = [1]
a: f32[2] = [1, 2]
y: f32[2] = If(yes, a) then_branch={
  body(x: f32[2]) -> (t)
  t = Neg(x)
} else_branch={
  body(x: f32[2]) -> (t)
  t = Neg(x)
}
)net");
}

// Up to 64 KiB are folded from any number of bytes; more only if the operands have a quarter of the bytes or more.
TEST(Fold, ASmallOperatorIsNotTradedForABigConstant) {
  for (const int64_t extent : {16'384, 16'385}) {
    NetBuilder b("big");
    b.output(b.add1("Expand", "y", {b.constant("a", blob(Shape{1}, 1, 0)), b.constant_ints("shape", {extent})}));
    const std::string text = transformed(b.finish(), {"fold_constants"});
    EXPECT_EQ(text.find("Expand") == std::string::npos, extent == 16'384) << text;
  }
}

TEST(Fold, ABigConstantOfABigOneIsFolded) {
  NetBuilder b("big");
  b.output(b.add1("Neg", "y", {b.constant("a", blob(Shape{20'000}, 1, 0))}));
  EXPECT_EQ(transformed(b.finish(), {"fold_constants"}), R"net(big() -> (y)
y: f32[20000] = [-1, -1, -1, -1, ...]
)net");
}

TEST(Fold, TheLimitOfFoldedBytesIsKept) {
  Stages limited;
  limited.limits.folded_bytes = 7;
  NetBuilder b("limited");
  b.output(b.add1("Neg", "y", {b.constant("a", blob(Shape{2}, 1, 0))}));
  EXPECT_EQ(transformed(b.finish(), {"fold_constants"}, limited), R"net(limited() -> (y)
a: f32[2] = [1, 1]
y: f32[2] = Neg(a)
)net");
}

TEST(Fold, OperatorsWithAnEffectStay) {
  NetBuilder b("effect");
  b.output(b.add1("Fault", "y", {b.constant("a", blob(Shape{2}, 1, 0))}, {}, "bare"));
  Stages bare;
  bare.plugins = {"bare"};
  EXPECT_EQ(transformed(b.finish(), {"fold_constants"}, bare), R"net(effect() -> (y)
a: f32[2] = [1, 1]
y: f32[2] = bare::Fault(a)
)net");
}

// "rules::Swish" has an expression and no kernel.
TEST(Fold, AnOperatorThatHasOnlyAnExpressionIsFolded) {
  NetBuilder b("expression");
  b.output(b.add1("Swish", "y", {b.constant("a", blob(Shape{2}, 0, 0))}, {}, "rules"));
  Stages rules;
  rules.plugins = {"rules_sound"};
  EXPECT_EQ(transformed(b.finish(), {"fold_constants"}, rules), R"net(expression() -> (y)
y: f32[2] = [0, 0]
)net");
}

// 2e9 operations are left to the run, which has threads and can be cancelled.
TEST(Fold, WhatTakesASecondIsLeftToTheRun) {
  NetBuilder b("work");
  const ValueId a = b.constant("a", blob(Shape{1000, 1000}, 1, 0));
  b.output(b.add1("MatMul", "y", {a, a}));
  EXPECT_EQ(transformed(b.finish(), {"fold_constants"}), R"net(work() -> (y)
a: f32[1000, 1000] = [1, 1, 1, 1, ...]
y: f32[1000, 1000] = MatMul(a, a)
)net");
}

TEST(Fold, AnOperatorThatFailsIsNamed) {
  NetBuilder b("fails");
  b.output(b.add1("Gather", "y", {b.constant("a", blob(Shape{2}, 1, 0)), b.constant_ints("at", {5})}));
  EXPECT_EQ(transformed(b.finish(), {"fold_constants"}),
            R"net(error[kernel-failed] "y" (Gather): index 5 is outside [-2, 1]: axis 0 has 2 elements, while folding constants
)net");
}

TEST(Fold, AnOperatorOnADeviceIsFoldedToo) {
  NetBuilder b("device");
  b.output(b.add1("Neg", "y", {b.constant("a", blob(Shape{2}, 1, 0))}));
  b.net().nodes[0].device = "bare:0";
  Stages bare;
  bare.plugins = {"bare"};
  EXPECT_EQ(transformed(b.finish(), {"fold_constants"}, bare), R"net(device() -> (y)
y: f32[2] = [-1, -1]
)net");
}

// Two of three elements are distinct: an extent that was inferred at the bound, three, becomes two once that is folded.
TEST(Fold, WhatFollowsAFoldedExtentIsInferredAgain) {
  NetBuilder b("found");
  const float content[] = {1, 0, 1};
  const ValueId found = b.add1("Unique", "found", {b.constant("a", Blob::copy_of(DType::f32, Shape{3}, content))});
  const ValueId y = b.add1("Max", "y", {found, b.input("s", DType::f32, Shape{})});
  b.output(b.add1("Neg", "z", {y}));
  EXPECT_EQ(transformed(b.net(), {}), R"net(found(s: f32[]) -> (z)
a: f32[3] = [1, 0, 1]
found: f32[<=3] = Unique(a)
y: f32[3] late = Max(found, s)
z: f32[3] late = Neg(y)
)net");
  EXPECT_EQ(transformed(b.finish(), {"fold_constants"}), R"net(found(s: f32[]) -> (z)
found: f32[2] = [0, 1]
y: f32[2] = Max(found, s)
z: f32[2] = Neg(y)
)net");
}

TEST(Fold, WhatIsKnownOnlyWhileRunningStays) {
  NetBuilder b("late");
  b.output(b.add1("Neg", "y", {b.add1("Unique", "found", {b.input("x", DType::f32, Shape{3})})}));
  EXPECT_EQ(transformed(b.finish(), {"fold_constants"}), R"net(late(x: f32[3]) -> (y)
found: f32[<=3] = Unique(x)
y: f32[3] late = Neg(found)
)net");
}

TEST(Fold, RunsGiveWhatTheFoldedExtentSays) {
  for (const bool late_operand : {false, true}) {
    NetBuilder b("found");
    const float content[] = {1, 0, 1}, half = 0.5f;
    const ValueId found = b.add1("Unique", "found", {b.constant("x", Blob::copy_of(DType::f32, Shape{3}, content))});
    const ValueId s = b.input("s", DType::f32, Shape{});
    const ValueId y = b.add1("Max", "max", {found, late_operand ? b.add1("Unique", "other", {s}) : s});
    b.output(b.add1("Neg", "neg", {y}));
    Session session = open(runtime(), b.finish());
    const auto results = session.run({view(&half, DType::f32, Shape{})});
    ASSERT_TRUE(results.ok()) << results.status().text();
    ASSERT_EQ((*results)[0].shape(), (Shape{2}));
    EXPECT_EQ(static_cast<const float*>((*results)[0].data())[0], -0.5f);
    EXPECT_EQ(static_cast<const float*>((*results)[0].data())[1], -1.0f);
  }
}

}  // namespace
}  // namespace heddle
