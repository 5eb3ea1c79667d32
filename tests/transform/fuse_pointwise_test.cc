// fuse_pointwise: chains of pointwise operators become one, and operators without a kernel of their own become a program.
#include <cstring>
#include <limits>

#include "stages.h"

namespace heddle {
namespace {

using namespace testing_nets;
using namespace testing_stages;

// A net of chains, and the result of the transform.
struct Chain : NetBuilder {
  explicit Chain(const char* name, DType dtype = DType::f32) : NetBuilder(name) { x = input("x", dtype, Shape{4, 2}); }
  std::string fused(const Stages& stages = {}) { return transformed(net(), {"fuse_pointwise"}, stages); }
  // Returns whether each operator stayed by itself, as a program or as it was.
  bool unchained(const Stages& stages = {}) { return fused(stages) == transformed(net(), {"lower_pointwise"}, stages); }
  ValueId x;
};

TEST(FusePointwise, AChainBecomesOneOperator) {
  Chain b("chain");
  ValueId z = b.add1("Add", "add", {b.x, b.input("row", DType::f32, Shape{2})});
  z = b.add1("Sigmoid", "sigmoid", {z});
  z = b.add1("Mul", "mul", {z, b.x});
  b.output(b.add1("Mul", "scale", {z, b.constant_float("two", 2)}));
  EXPECT_EQ(b.fused(), R"net(chain(x: f32[4, 2], row: f32[2]) -> (scale)
scale: f32[4, 2] = heddle::Pointwise/1(x, row) program="mul(mul(sigmoid(add(x0, x1)), x0), 2)"
)net");
}

// A program's compiler knows that its exponent is a number, and has products and roots for some; the kernel of Pow reads it each time.
TEST(FusePointwise, APowerOfANumberBecomesAProgramAlone) {
  Chain b("power");
  const ValueId exponent = b.input("exponent", DType::f32, Shape{2});
  b.output(b.add1("Pow", "cube", {b.x, b.constant_float("three", 3)}));
  b.output(b.add1("Pow", "any", {b.x, exponent}));
  EXPECT_EQ(b.fused(), R"net(power(x: f32[4, 2], exponent: f32[2]) -> (cube, any)
cube: f32[4, 2] = heddle::Pointwise/1(x) program="pow(x0, 3)"
any: f32[4, 2] = Pow(x, exponent)
)net");
}

// They are computed in f32, and rounded where they are stored.
TEST(FusePointwise, AChainOfNarrowFloatsToo) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    Chain b("narrow", dtype);
    std::byte* data = nullptr;
    const auto half = Blob::allocate(dtype, Shape{}, &data);
    const auto bits = static_cast<uint16_t>(dtype == DType::f16 ? 0x3800 : 0x3f00);
    std::memcpy(data, &bits, sizeof(bits));
    b.output(b.add1("Mul", "scale", {b.add1("Exp", "exp", {b.x}), b.constant("half", half)}));
    const std::string type = std::string(to_string(dtype)) + "[4, 2]";
    EXPECT_EQ(b.fused(),
              "narrow(x: " + type + ") -> (scale)\nscale: " + type + " = heddle::Pointwise/1(x) program=\"mul(exp(x0), 0.5)\"\n");
  }
}

TEST(FusePointwise, TwoChainsMeet) {
  Chain b("meet");
  b.output(b.add1("Sub", "y", {b.add1("Neg", "left", {b.x}), b.add1("Exp", "right", {b.x})}));
  EXPECT_EQ(b.fused(), R"net(meet(x: f32[4, 2]) -> (y)
y: f32[4, 2] = heddle::Pointwise/1(x) program="sub(neg(x0), exp(x0))"
)net");
}

// Otherwise all terms would be kept until the last of them is computed.
TEST(FusePointwise, ASumIsNotJoinedAcrossTheComputationOfItsTerms) {
  const auto sum_of = [](bool terms_first) {
    Chain b("sum");
    std::vector<ValueId> terms;
    const auto term = [&](size_t k) {
      while (terms.size() <= k)
        terms.push_back(b.add1("Softmax", "t" + std::to_string(terms.size()), {b.x}, {{"axis", static_cast<int64_t>(terms.size() % 2)}}));
      return terms[k];
    };
    if (terms_first) term(2);
    const ValueId first = b.add1("Add", "s1", {term(0), term(1)});
    b.output(b.add1("Add", "s2", {first, term(2)}));
    return b.unchained();
  };
  EXPECT_TRUE(sum_of(false));
  EXPECT_FALSE(sum_of(true));
}

TEST(FusePointwise, StopsAtWhatIsReadTwice) {
  Chain b("twice");
  const ValueId e = b.add1("Exp", "e", {b.add1("Neg", "n", {b.x})});
  b.output(b.add1("Abs", "y", {e}));
  b.output(b.add1("Sqrt", "z", {e}));
  EXPECT_EQ(b.fused(), R"net(twice(x: f32[4, 2]) -> (y, z)
e: f32[4, 2] = heddle::Pointwise/1(x) program="exp(neg(x0))"
y: f32[4, 2] = heddle::Pointwise/1(e) program="abs(x0)"
z: f32[4, 2] = heddle::Pointwise/1(e) program="sqrt(x0)"
)net");
}

TEST(FusePointwise, NotWhereOneReaderReadsTwice) {
  Chain b("square");
  const ValueId n = b.add1("Neg", "n", {b.x});
  b.output(b.add1("Mul", "y", {n, n}));
  EXPECT_TRUE(b.unchained()) << b.fused();
}

TEST(FusePointwise, NotWhatLeavesTheNet) {
  Chain b("output");
  const ValueId n = b.add1("Neg", "n", {b.x});
  b.output(n);
  b.output(b.add1("Exp", "y", {n}));
  EXPECT_TRUE(b.unchained()) << b.fused();
}

TEST(FusePointwise, NotOtherDtypes) {
  for (const DType dtype : {DType::f64, DType::i32}) {
    Chain b("dtypes", dtype);
    b.output(b.add1("Abs", "y", {b.add1("Neg", "n", {b.x})}));
    EXPECT_TRUE(b.unchained()) << b.fused();
  }
}

TEST(FusePointwise, NotWhereTheDtypeChanges) {
  Chain b("changes");
  const ValueId n = b.add1("Neg", "n", {b.x});
  b.output(b.add1("Less", "y", {n, b.x}));
  EXPECT_TRUE(b.unchained()) << b.fused();
}

// The inner operator would be computed once for each element of the outer one.
TEST(FusePointwise, NotWhatIsBroadcastLater) {
  Chain b("broadcast");
  const ValueId row = b.add1("Exp", "row", {b.input("r", DType::f32, Shape{2})});
  b.output(b.add1("Add", "y", {row, b.x}));
  EXPECT_TRUE(b.unchained()) << b.fused();
}

// The kind of device does not matter: verify reports whether it exists.
TEST(FusePointwise, NotOperatorsOfTwoDevices) {
  Chain b("devices");
  b.output(b.add1("Relu", "y", {b.add1("Relu", "n", {b.x})}));
  b.net().nodes[0].device = "bare:0";
  Stages bare;
  bare.plugins = {"bare"};
  EXPECT_TRUE(b.unchained(bare)) << b.fused(bare);
}

TEST(FusePointwise, NotOnDevicesWithoutPrograms) {
  Stages bare;
  bare.plugins = {"bare"};
  bare.device = "bare:0";
  Chain b("device");
  b.output(b.add1("Relu", "y", {b.add1("Relu", "n", {b.x})}));
  EXPECT_TRUE(b.unchained(bare)) << b.fused(bare);
}

TEST(FusePointwise, NotWhatWaitsForOthers) {
  Chain b("order");
  b.output(b.add1("Exp", "y", {b.add1("Neg", "n", {b.x})}));
  b.output(b.add1("Abs", "z", {b.x}));
  b.net().nodes[2].control = {NodeId(0)};
  EXPECT_TRUE(b.unchained()) << b.fused();
}

// After the update they would read the new content.
TEST(FusePointwise, NotWhatReadsAVariableThatIsUpdated) {
  for (const bool updated : {false, true}) {
    Chain b("update");
    const ValueId w = b.variable("w", blob(Shape{4, 2}, 1, 1));
    const ValueId n = b.add1("Neg", "n", {w});
    if (updated) b.add1("AccumulateAdd", "next", {w, b.x}, {}, "heddle");
    b.output(b.add1("Exp", "y", {n}));
    EXPECT_EQ(b.unchained(), updated) << b.fused();
  }
}

// The reader stays where it is, before the update, and absorbs nothing.
TEST(FusePointwise, WhatReadsAnUpdatedVariableAbsorbsNothing) {
  Chain b("pinned");
  const ValueId w = b.variable("w", blob(Shape{4, 2}, 1, 1));
  b.output(b.add1("Add", "y", {b.add1("Neg", "n", {b.x}), w}));
  b.add1("AccumulateAdd", "next", {w, b.x}, {}, "heddle");
  EXPECT_TRUE(b.unchained()) << b.fused();
}

TEST(FusePointwise, AnUpdateStaysAnOperator) {
  Chain b("update");
  const ValueId w = b.variable("w", blob(Shape{4, 2}, 1, 1));
  b.add1("AccumulateAdd", "next", {w, b.add1("Exp", "e", {b.add1("Neg", "n", {b.x})})}, {}, "heddle");
  EXPECT_EQ(b.fused(), R"net(update(x: f32[4, 2]) -> ()
variable w: f32[4, 2] = [1, 2, 3, 4, 5, 6, 7, 8] -> w@1
e: f32[4, 2] = heddle::Pointwise/1(x) program="exp(neg(x0))"
w@1: f32[4, 2] = heddle::AccumulateAdd(w@0, e) # next
)net");
}

TEST(FusePointwise, NotExtentsThatOnlyTheRunKnows) {
  Chain b("late");
  b.output(b.add1("Exp", "y", {b.add1("Neg", "n", {b.add1("Unique", "found", {b.x})})}));
  EXPECT_TRUE(b.unchained()) << b.fused();
}

// There is one more than eight inputs: the last operator becomes a program by itself.
TEST(FusePointwise, AtMostEightInputs) {
  Chain b("inputs");
  ValueId sum = b.x;
  for (int i = 0; i < 8; ++i)
    sum = b.add1("Add", "s" + std::to_string(i), {sum, b.input("i" + std::to_string(i), DType::f32, Shape{4, 2})});
  b.output(sum);
  EXPECT_EQ(
      b.fused(),
      R"net(inputs(x: f32[4, 2], i0: f32[4, 2], i1: f32[4, 2], i2: f32[4, 2], i3: f32[4, 2], i4: f32[4, 2], i5: f32[4, 2], i6: f32[4, 2], i7: f32[4, 2]) -> (s7)
s6: f32[4, 2] = heddle::Pointwise/1(x, i0, i1, i2, i3, i4, i5, i6) program="add(add(add(add(add(add(add(x0, x1), x2), x3), x4), x5), x6), x7)"
s7: f32[4, 2] = heddle::Pointwise/1(s6, i7) program="add(x0, x1)"
)net");
}

// One chain has six inputs and one four, of which they share one: nine together. The product absorbs the first, and reads the second.
TEST(FusePointwise, OfChainsThatHaveTooManyInputsTogetherTheFirstIsTakenIn) {
  Chain b("together");
  ValueId ends[2];
  int next = 0;
  for (int chain = 0; chain < 2; ++chain) {
    ends[chain] = b.add1("Neg", "c" + std::to_string(chain), {b.x});
    for (int i = 0; i < (chain == 0 ? 5 : 3); ++i, ++next)
      ends[chain] = b.add1("Add", "s" + std::to_string(next), {ends[chain], b.input("i" + std::to_string(next), DType::f32, Shape{4, 2})});
  }
  b.output(b.add1("Mul", "y", {ends[0], ends[1]}));
  EXPECT_EQ(
      b.fused(),
      R"net(together(x: f32[4, 2], i0: f32[4, 2], i1: f32[4, 2], i2: f32[4, 2], i3: f32[4, 2], i4: f32[4, 2], i5: f32[4, 2], i6: f32[4, 2], i7: f32[4, 2]) -> (y)
s7: f32[4, 2] = heddle::Pointwise/1(x, i5, i6, i7) program="add(add(add(neg(x0), x1), x2), x3)"
y: f32[4, 2] = heddle::Pointwise/1(x, i0, i1, i2, i3, i4, s7) program="mul(add(add(add(add(add(neg(x0), x1), x2), x3), x4), x5), x6)"
)net");
}

// An input that two producers share is one input, so that the sum has eight and absorbs both.
TEST(FusePointwise, AnInputOfSeveralProducersCountsOnce) {
  Chain b("common");
  ValueId ends[2] = {b.x, b.x};
  for (int i = 0; i < 7; ++i)
    ends[i % 2] = b.add1("Mul", "s" + std::to_string(i), {ends[i % 2], b.input("i" + std::to_string(i), DType::f32, Shape{4, 2})});
  b.output(b.add1("Add", "y", {ends[0], ends[1]}));
  EXPECT_EQ(
      b.fused(),
      R"net(common(x: f32[4, 2], i0: f32[4, 2], i1: f32[4, 2], i2: f32[4, 2], i3: f32[4, 2], i4: f32[4, 2], i5: f32[4, 2], i6: f32[4, 2]) -> (y)
y: f32[4, 2] = heddle::Pointwise/1(x, i0, i2, i4, i6, i1, i3, i5) program="add(mul(mul(mul(mul(x0, x1), x2), x3), x4), mul(mul(mul(x0, x5), x6), x7))"
)net");
}

// Three chains of 24 instructions each exceed the limit of one program.
TEST(FusePointwise, InstructionsOfAllProducersCountTogether) {
  Chain b("instructions");
  ValueId ends[3];
  for (int chain = 0; chain < 3; ++chain) {
    ends[chain] = b.input("i" + std::to_string(chain), DType::f32, Shape{4, 2});
    for (int i = 0; i < 24; ++i) ends[chain] = b.add1(i % 2 ? "Exp" : "Neg", "c" + std::to_string(100 * chain + i), {ends[chain]});
  }
  const ValueId one = b.input("low", DType::f32, Shape{4, 2});
  b.output(b.add1("PRelu", "y", {b.add1("Sub", "s", {ends[0], ends[1]}), b.add1("Sub", "t", {one, ends[2]})}));
  const std::string text = b.fused();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
  EXPECT_NE(text.find("y: f32[4, 2] = heddle::Pointwise"), std::string::npos) << text;
}

TEST(FusePointwise, AtMostSixtyFourInstructions) {
  Chain b("long");
  ValueId y = b.x;
  for (int i = 0; i < 80; ++i) y = b.add1("Exp", "e" + std::to_string(i), {y});
  b.output(y);
  const std::string text = b.fused();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
}

// A NaN has more bits than its name.
TEST(FusePointwise, ANanIsNoLiteral) {
  Chain b("nan");
  const ValueId sum = b.add1("Add", "sum", {b.x, b.constant_float("nan", std::numeric_limits<float>::quiet_NaN())});
  b.output(b.add1("Mul", "y", {sum, b.constant_float("inf", std::numeric_limits<float>::infinity())}));
  EXPECT_EQ(b.fused(), R"net(nan(x: f32[4, 2]) -> (y)
nan: f32[] = ["nan"]
y: f32[4, 2] = heddle::Pointwise/1(x, nan) program="mul(add(x0, x1), inf)"
)net");
}

TEST(FusePointwise, AScalarLiteralThatGivesTheResultItsRankIsNotInlinedAway) {
  Chain b("rank");
  b.output(b.add1("Exp", "y", {b.add1("Add", "sum", {b.x, b.constant("wide", blob(Shape{1, 1, 1}, 1, 0))})}));
  EXPECT_EQ(b.fused(), R"net(rank(x: f32[4, 2]) -> (y)
wide: f32[1, 1, 1] = [1]
y: f32[1, 4, 2] = heddle::Pointwise/1(x, wide) program="exp(add(x0, x1))"
)net");
  Session session = open(runtime(), b.finish());
  const std::vector<float> values(8, 0);
  auto result = session.run({view(values.data(), DType::f32, Shape{4, 2})});
  ASSERT_TRUE(result.ok()) << result.status().text();
  EXPECT_EQ((*result)[0].shape(), (Shape{1, 4, 2}));
}

// A program of literals alone would have no shape: the constant stays an input.
TEST(FusePointwise, ConstantsAloneAreInputs) {
  Chain b("literals");
  b.output(b.add1("Exp", "y", {b.add1("Neg", "n", {b.constant_float("two", 2)})}));
  EXPECT_EQ(b.fused(), R"net(literals(x: f32[4, 2]) -> (y)
two: f32[] = [2]
y: f32[] = heddle::Pointwise/1(two) program="exp(neg(x0))"
)net");
}

// "rules::Swish" has an expression and no kernel.
TEST(FusePointwise, AnOperatorWithoutAKernelBecomesAProgram) {
  Stages rules;
  rules.plugins = {"rules_sound"};
  Chain b("swish");
  b.output(b.add1("Swish", "y", {b.add1("Neg", "n", {b.x})}, {}, "rules"));
  EXPECT_EQ(transformed(b.net(), {"lower_pointwise"}, rules), R"net(swish(x: f32[4, 2]) -> (y)
n: f32[4, 2] = heddle::Pointwise/1(x) program="neg(x0)"
y: f32[4, 2] = heddle::Pointwise/1(n) program="mul(x0, sigmoid(x0))"
)net");
  EXPECT_EQ(b.fused(rules), R"net(swish(x: f32[4, 2]) -> (y)
y: f32[4, 2] = heddle::Pointwise/1(x) program="t1 = neg(x0); mul(t1, sigmoid(t1))"
)net");
}

TEST(FusePointwise, WhatIsLoweredJoinsChainsInASecondPass) {
  Stages rules;
  rules.plugins = {"rules_sound"};
  Chain b("swish");
  b.output(b.add1("Neg", "y", {b.add1("Swish", "s", {b.x}, {}, "rules")}));
  EXPECT_EQ(transformed(b.net(), {"lower_pointwise", "fuse_pointwise"}, rules), R"net(swish(x: f32[4, 2]) -> (y)
y: f32[4, 2] = heddle::Pointwise/1(x) program="neg(mul(x0, sigmoid(x0)))"
)net");
}

}  // namespace
}  // namespace heddle
