// fuse_epilogues: pointwise operators that a compute kernel takes as its epilogue, and those that it must not.
#include "stages.h"

namespace heddle {
namespace {

using namespace testing_nets;
using namespace testing_stages;

// x -> Conv "conv" of 2 channels; tests append more operators.
struct Convolution : NetBuilder {
  explicit Convolution(const char* name, int64_t extent = 3) : NetBuilder(name) {
    x = input("x", DType::f32, Shape{1, 2, extent, extent});
    conv = add1("Conv", "conv", {x, constant("w", blob(Shape{2, 2, 1, 1}, 1, 1))});
  }
  std::string fused(const Stages& stages = {}) { return transformed(net(), {"fuse_epilogues"}, stages); }
  // Returns whether nothing became part of another operator.
  bool unchanged(const Stages& stages = {}) { return fused(stages) == transformed(net(), {}, stages); }
  ValueId x, conv;
};

TEST(FuseEpilogues, AnActivation) {
  Convolution b("activation");
  b.output(b.add1("Relu", "y", {b.conv}));
  EXPECT_EQ(b.fused(), R"net(activation(x: f32[1, 2, 3, 3]) -> (y)
w: f32[2, 2, 1, 1] = [1, 2, 3, 4]
y: f32[1, 2, 3, 3] = Conv(x, w) then Relu(max(acc, 0)) # conv
)net");
}

TEST(FuseEpilogues, ABiasPerChannelThenAResidualThenAnActivation) {
  Convolution b("chain");
  const ValueId biased = b.add1("Add", "biased", {b.conv, b.constant("bias", blob(Shape{2, 1, 1}, 1, 1))});
  const ValueId sum = b.add1("Add", "sum", {b.x, biased});
  b.output(b.add1("LeakyRelu", "y", {sum}, {{"alpha", 0.5}}));
  EXPECT_EQ(b.fused(), R"net(chain(x: f32[1, 2, 3, 3]) -> (y)
w: f32[2, 2, 1, 1] = [1, 2, 3, 4]
bias: f32[2, 1, 1] = [1, 2]
y: f32[1, 2, 3, 3] = Conv(x, w, bias, x) then Add(add(acc, operand)) operand=bias per channel then Add(add(operand, acc)) operand=x same shape then LeakyRelu(select(gt(acc, 0), acc, mul(0.5, acc))) # conv
)net");
}

TEST(FuseEpilogues, ALiteralOrAnOperandOfOneElement) {
  Convolution b("scalars");
  const ValueId doubled = b.add1("Mul", "doubled", {b.constant_float("two", 2), b.conv});
  b.output(b.add1("Mul", "y", {doubled, b.input("rate", DType::f32, Shape{1})}));
  EXPECT_EQ(b.fused(), R"net(scalars(x: f32[1, 2, 3, 3], rate: f32[1]) -> (y)
w: f32[2, 2, 1, 1] = [1, 2, 3, 4]
y: f32[1, 2, 3, 3] = Conv(x, w, rate) then Mul(mul(2, acc)) then Mul(mul(acc, operand)) operand=rate scalar # conv
)net");
}

TEST(FuseEpilogues, OfAMatrixProductAnOperandOfTheLastDimension) {
  NetBuilder b("matrix");
  const ValueId product = b.add1("MatMul", "product", {b.input("x", DType::f32, Shape{4, 3}), b.input("w", DType::f32, Shape{3, 5})});
  b.output(b.add1("Add", "y", {product, b.input("bias", DType::f32, Shape{5})}));
  EXPECT_EQ(transformed(b.finish(), {"fuse_epilogues"}), R"net(matrix(x: f32[4, 3], w: f32[3, 5], bias: f32[5]) -> (y)
y: f32[4, 5] = MatMul(x, w, bias) then Add(add(acc, operand)) operand=bias last dimension # product
)net");
}

// The operand is computed between the two: the fused operator takes the place of the later one.
TEST(FuseEpilogues, MovesBehindWhatItsOperandIsMadeOf) {
  Convolution b("between");
  const ValueId made = b.add1("Neg", "made", {b.x});
  b.output(b.add1("Add", "y", {b.conv, made}));
  EXPECT_EQ(b.fused(), R"net(between(x: f32[1, 2, 3, 3]) -> (y)
w: f32[2, 2, 1, 1] = [1, 2, 3, 4]
made: f32[1, 2, 3, 3] = Neg(x)
y: f32[1, 2, 3, 3] = Conv(x, w, made) then Add(add(acc, operand)) operand=made same shape # conv
)net");
}

// Otherwise all products would be kept until the last of them is computed.
TEST(FuseEpilogues, OfASumOfProductsEachTakesInTheSumBeforeIt) {
  NetBuilder b("sum");
  const ValueId x = b.input("x", DType::f32, Shape{4, 2});
  ValueId sum;
  for (int k = 0; k < 3; ++k) {
    const std::string number = std::to_string(k);
    const ValueId product = b.add1("MatMul", "p" + number, {x, b.input("w" + number, DType::f32, Shape{2, 2})});
    sum = k == 0 ? product : b.add1("Add", "s" + number, {sum, product});
  }
  b.output(sum);
  EXPECT_EQ(transformed(b.finish(), {"fuse_epilogues"}),
            R"net(sum(x: f32[4, 2], w0: f32[2, 2], w1: f32[2, 2], w2: f32[2, 2]) -> (s2)
p0: f32[4, 2] = MatMul(x, w0)
s1: f32[4, 2] = MatMul(x, w1, p0) then Add(add(operand, acc)) operand=p0 same shape # p1
s2: f32[4, 2] = MatMul(x, w2, s1) then Add(add(operand, acc)) operand=s1 same shape # p2
)net");
}

TEST(FuseEpilogues, StopsAtWhatIsReadTwice) {
  Convolution b("twice");
  const ValueId positive = b.add1("Relu", "positive", {b.conv});
  b.output(b.add1("Neg", "y", {positive}));
  b.output(b.add1("Abs", "z", {positive}));
  EXPECT_EQ(b.fused(), R"net(twice(x: f32[1, 2, 3, 3]) -> (y, z)
w: f32[2, 2, 1, 1] = [1, 2, 3, 4]
positive: f32[1, 2, 3, 3] = Conv(x, w) then Relu(max(acc, 0)) # conv
y: f32[1, 2, 3, 3] = Neg(positive)
z: f32[1, 2, 3, 3] = Abs(positive)
)net");
}

TEST(FuseEpilogues, NotWhatLeavesTheNet) {
  Convolution b("output");
  b.output(b.conv);
  b.output(b.add1("Relu", "y", {b.conv}));
  EXPECT_TRUE(b.unchanged()) << b.fused();
}

TEST(FuseEpilogues, NotWhereOneReaderReadsTwice) {
  Convolution b("square");
  b.output(b.add1("Mul", "y", {b.conv, b.conv}));
  EXPECT_TRUE(b.unchanged()) << b.fused();
}

TEST(FuseEpilogues, NotWithTwoMoreOperands) {
  Convolution b("three");
  b.output(b.add1("Sum", "y", {b.conv, b.x, b.x}));
  EXPECT_TRUE(b.unchanged()) << b.fused();
}

TEST(FuseEpilogues, NotWhereTheResultGrows) {
  Convolution b("grows", 1);
  b.output(b.add1("Add", "y", {b.conv, b.input("wide", DType::f32, Shape{1, 2, 3, 3})}));
  EXPECT_TRUE(b.unchanged()) << b.fused();
}

// The operand has neither the shape of a channel, nor of the last dimension, nor of the whole result.
TEST(FuseEpilogues, NotOperandsThatKernelsHaveNoFormFor) {
  for (const Shape& shape : {Shape{1, 1, 3, 1}, Shape{2, 3, 1}, Shape{1, 2, 1, 3}}) {
    Convolution b("form");
    b.output(b.add1("Add", "y", {b.conv, b.input("operand", DType::f32, shape)}));
    EXPECT_TRUE(b.unchanged()) << b.fused();
  }
}

TEST(FuseEpilogues, NotOperatorsOnAnotherDevice) {
  Stages bare;
  bare.plugins = {"bare"};
  Convolution b("devices");
  b.output(b.add1("Relu", "y", {b.conv}));
  b.net().nodes[1].device = "bare:0";
  EXPECT_TRUE(b.unchanged(bare)) << b.fused(bare);
}

// The device's convolution accepts no epilogue; its product refuses this one.
TEST(FuseEpilogues, NotWhatTheKernelOfTheDeviceRefuses) {
  Stages bare;
  bare.plugins = {"bare"};
  bare.device = "bare:0";
  NetBuilder b("device");
  const ValueId product = b.add1("MatMul", "product", {b.input("x", DType::f32, Shape{4, 3}), b.input("w", DType::f32, Shape{3, 5})});
  b.output(b.add1("Relu", "y", {product}));
  EXPECT_EQ(transformed(b.net(), {"fuse_epilogues"}, bare), transformed(b.net(), {}, bare));
}

TEST(FuseEpilogues, NotOtherDtypes) {
  NetBuilder b("f64");
  const ValueId product = b.add1("MatMul", "product", {b.input("x", DType::f64, Shape{4, 3}), b.input("w", DType::f64, Shape{3, 5})});
  b.output(b.add1("Relu", "y", {product}));
  EXPECT_EQ(transformed(b.net(), {"fuse_epilogues"}), transformed(b.net(), {}));
}

TEST(FuseEpilogues, NotOperatorsWithoutAPointwiseForm) {
  Convolution b("softmax");
  b.output(b.add1("Softmax", "y", {b.conv}));
  EXPECT_TRUE(b.unchanged()) << b.fused();
}

TEST(FuseEpilogues, NotBehindKernelsThatAcceptNone) {
  NetBuilder b("pool");
  b.output(b.add1("Relu", "y", {b.add1("GlobalAveragePool", "pool", {b.input("x", DType::f32, Shape{1, 2, 3, 3})})}));
  EXPECT_EQ(transformed(b.net(), {"fuse_epilogues"}), transformed(b.net(), {}));
}

TEST(FuseEpilogues, NotBehindPointwiseOperators) {
  NetBuilder b("chain");
  b.output(b.add1("Relu", "y", {b.add1("Neg", "n", {b.input("x", DType::f32, Shape{3})})}));
  EXPECT_EQ(transformed(b.net(), {"fuse_epilogues"}), transformed(b.net(), {}));
}

TEST(FuseEpilogues, NotWhatWaitsForOthers) {
  Convolution b("order");
  b.output(b.add1("Neg", "n", {b.x}));
  b.output(b.add1("Relu", "y", {b.conv}));
  b.net().nodes[2].control = {NodeId(1)};
  EXPECT_TRUE(b.unchanged()) << b.fused();
}

// After the update it would read the new content.
TEST(FuseEpilogues, NotWhatReadsAVariableThatIsUpdated) {
  for (const bool updated : {false, true}) {
    NetBuilder b("update");
    const ValueId x = b.input("x", DType::f32, Shape{3, 3}), w = b.variable("w", blob(Shape{3, 3}, 1, 1));
    const ValueId product = b.add1("MatMul", "product", {x, w});
    if (updated) b.add1("AccumulateAdd", "next", {w, x}, {}, "heddle");
    b.output(b.add1("Relu", "y", {product}));
    const bool fused = transformed(b.finish(), {"fuse_epilogues"}).find("then Relu") != std::string::npos;
    EXPECT_EQ(fused, !updated);
  }
}

TEST(FuseEpilogues, AnUpdatedVariableIsNoTemporary) {
  NetBuilder b("update");
  const ValueId x = b.input("x", DType::f32, Shape{3, 3}), w = b.variable("w", blob(Shape{3, 3}, 1, 1));
  const ValueId product = b.add1("MatMul", "product", {x, x});
  b.add1("AccumulateAdd", "next", {w, product}, {}, "heddle");
  EXPECT_EQ(transformed(b.net(), {"fuse_epilogues"}), transformed(b.net(), {}));
}

TEST(FuseEpilogues, NotExtentsThatOnlyTheRunKnows) {
  NetBuilder b("late");
  const ValueId found = b.add1("Unique", "found", {b.input("x", DType::f32, Shape{3})});
  const ValueId rows = b.add1("Unsqueeze", "rows", {found, b.constant_ints("axes", {1})});
  b.output(b.add1("Relu", "y", {b.add1("MatMul", "product", {rows, b.input("w", DType::f32, Shape{1, 2})})}));
  EXPECT_EQ(transformed(b.net(), {"fuse_epilogues"}), transformed(b.net(), {}));
}

}  // namespace
}  // namespace heddle
