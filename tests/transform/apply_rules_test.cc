// apply_rules: where a rule of tests/plugins/rules/rules.cc applies, and where it must not.
#include "stages.h"

namespace heddle {
namespace {

using namespace testing_nets;
using namespace testing_stages;

Stages with_rules() {
  Stages stages;
  stages.plugins = {"rules_sound"};
  return stages;
}

// y = x * sigmoid(x), z = |y|; `leak`: sigmoid(x) is an output too.
Net swish_net(DType dtype = DType::f32, bool leak = false, bool swapped = false, const Shape& shape = {2, 3}) {
  NetBuilder b("swish");
  const ValueId x = b.input("x", dtype, shape);
  const ValueId s = b.add1("Sigmoid", "s", {x});
  const ValueId y = swapped ? b.add1("Mul", "y", {s, x}) : b.add1("Mul", "y", {x, s});
  b.output(b.add1("Abs", "z", {y}));
  if (leak) b.output(s);
  return b.finish();
}

// Returns whether nothing became a Swish.
bool unchanged(const Net& net) {
  return transformed(net, {"apply_rules"}, with_rules()) == transformed(net, {}, with_rules());
}

TEST(ApplyRules, AppliesWhereThePatternOccurs) {
  EXPECT_EQ(transformed(swish_net(), {"apply_rules"}, with_rules()), R"net(swish(x: f32[2, 3]) -> (z)
"y/rules_sound: swish/y": f32[2, 3] = rules::Swish/1(x)
z: f32[2, 3] = Abs("y/rules_sound: swish/y")
)net");
}

TEST(ApplyRules, AppliesAtEveryPlace) {
  NetBuilder b("twice");
  ValueId y = b.input("x", DType::f32, Shape{2, 3});
  for (const char* name : {"a", "b"}) y = b.add1("Mul", name, {y, b.add1("Sigmoid", std::string("s") + name, {y})});
  b.output(y);
  EXPECT_EQ(transformed(b.finish(), {"apply_rules"}, with_rules()), R"net(twice(x: f32[2, 3]) -> (b)
"a/rules_sound: swish/y": f32[2, 3] = rules::Swish/1(x)
b: f32[2, 3] = rules::Swish/1("a/rules_sound: swish/y") # "b/rules_sound: swish/y"
)net");
}

TEST(ApplyRules, NotWhereAnInnerValueIsReadOutside) {
  EXPECT_TRUE(unchanged(swish_net(DType::f32, true)));
}

TEST(ApplyRules, NotForAnotherDtypeOrRank) {
  EXPECT_TRUE(unchanged(swish_net(DType::f64)));
  EXPECT_TRUE(unchanged(swish_net(DType::f32, false, false, {6})));
}

TEST(ApplyRules, ACommutativeOperatorMatchesWithItsInputsSwapped) {
  EXPECT_EQ(transformed(swish_net(DType::f32, false, true), {"apply_rules"}, with_rules()),
            transformed(swish_net(), {"apply_rules"}, with_rules()));
}

TEST(ApplyRules, NotWhereTwoInputsAreMeantToBeOne) {
  NetBuilder b("other");
  const ValueId x = b.input("x", DType::f32, Shape{2, 3}), other = b.input("other", DType::f32, Shape{2, 3});
  b.output(b.add1("Mul", "y", {x, b.add1("Sigmoid", "s", {other})}));
  EXPECT_TRUE(unchanged(b.net()));
}

// A net of vectors p, q and r, whose result is "y", for the rules of tests/plugins/rules/rules_commuted.cc.
struct Commuted : NetBuilder {
  Commuted() : NetBuilder("commuted") {
    p = input("p", DType::f32, Shape{3});
    q = input("q", DType::f32, Shape{3});
    r = input("r", DType::f32, Shape{3});
  }
  ValueId op(const char* type, const std::vector<ValueId>& inputs, const std::string& name = "") {
    return add1(type, name.empty() ? "n" + std::to_string(net().nodes.size()) : name, inputs);
  }
  // Returns the operator that makes y after the rules were applied.
  std::string result(ValueId y) {
    output(y);
    Stages stages;
    stages.plugins = {"rules_commuted"};
    const std::string text = transformed(net(), {"apply_rules", "prune"}, stages);
    const size_t last = text.rfind('\n', text.size() - 2) + 1;
    const std::string line = text.substr(last, text.size() - last - 1);
    const size_t begin = line.find(" = ") + 3;
    return line.substr(begin, line.find(" #") - begin);
  }
  ValueId p, q, r;
};

// x * sigmoid(x) + x, whose sum and product are commutative.
TEST(ApplyRules, AtTheRootInsideAndOnBothLevels) {
  for (const bool root : {false, true})
    for (const bool inside : {false, true}) {
      Commuted b;
      const ValueId s = b.op("Sigmoid", {b.p});
      const ValueId m = inside ? b.op("Mul", {s, b.p}) : b.op("Mul", {b.p, s});
      EXPECT_EQ(b.result(root ? b.op("Add", {b.p, m}, "y") : b.op("Add", {m, b.p}, "y")), "rules::SwishPlus/1(p)") << root << inside;
    }
}

TEST(ApplyRules, OperatorsThatAreNotCommutativeMatchAsWritten) {
  Commuted written, swapped;
  EXPECT_EQ(written.result(written.op("Sub", {written.op("Relu", {written.p}), written.p}, "y")), "rules::ReluMinus/1(p)");
  EXPECT_EQ(swapped.result(swapped.op("Sub", {swapped.p, swapped.op("Relu", {swapped.p})}, "y")), "Sub(p, n0)");
}

TEST(ApplyRules, BothInputsOfACommutativeOperatorMayBeOne) {
  Commuted one, two, read_twice;
  const ValueId t = one.op("Tanh", {one.p});
  EXPECT_EQ(one.result(one.op("Mul", {t, t}, "y")), "rules::SquaredTanh/1(p)");
  EXPECT_EQ(two.result(two.op("Mul", {two.op("Tanh", {two.p}), two.op("Tanh", {two.q})}, "y")), "Mul(n0, n1)");
  const ValueId e = read_twice.op("Exp", {read_twice.p});  // two operators of the pattern, one of the net
  EXPECT_EQ(read_twice.result(read_twice.op("Max", {e, e}, "y")), "rules::LargerExp/1(p, p)");
}

// Where both orders fit, the order of the pattern is taken: a net has one result.
TEST(ApplyRules, AsWrittenIsTriedFirst) {
  Commuted b, c;
  EXPECT_EQ(b.result(b.op("Max", {b.op("Exp", {b.p}), b.op("Exp", {b.q})}, "y")), "rules::LargerExp/1(p, q)");
  EXPECT_EQ(c.result(c.op("Max", {c.op("Exp", {c.q}), c.op("Exp", {c.p})}, "y")), "rules::LargerExp/1(q, p)");
}

// a * exp(b) + tanh(b): the product of two exponentials fits both ways, and the operand of the tangent decides which one is meant.
TEST(ApplyRules, WhatDoesNotFitBehindAnOrderIsUndone) {
  for (const bool swapped : {false, true}) {
    Commuted b;
    const ValueId ep = b.op("Exp", {b.p}), eq = b.op("Exp", {b.q});
    const ValueId m = b.op("Mul", {ep, eq}), t = b.op("Tanh", {swapped ? b.p : b.q});
    EXPECT_EQ(b.result(b.op("Add", {m, t}, "y")), swapped ? "rules::ScaledPlus/1(n1, p)" : "rules::ScaledPlus/1(n0, q)");
  }
  Commuted neither;
  const ValueId m = neither.op("Mul", {neither.op("Exp", {neither.p}), neither.op("Exp", {neither.q})});
  EXPECT_EQ(neither.result(neither.op("Add", {m, neither.op("Tanh", {neither.r})}, "y")), "Add(n2, n3)");
}

// Each of the twelve sums has its inputs in the other order than the rule.
TEST(ApplyRules, AsManyCommutativeOperatorsAsARuleMayHave) {
  Commuted b;
  const ValueId e = b.op("Exp", {b.p});
  ValueId t = b.p;
  for (int i = 1; i <= 12; ++i) t = b.op("Add", {e, t}, i == 12 ? "y" : "");
  EXPECT_EQ(b.result(t), "rules::MinusTanh/1(p)");
}

// Each of six sums fits in both orders, and only after all of them are matched does the last operator differ.
TEST(ApplyRules, GivesUpWhereNoOrderFits) {
  Commuted b;
  ValueId sum;
  for (int i = 0; i < 6; ++i) {
    const ValueId leaf = b.op("Add", {b.op("Exp", {b.p}), b.op("Exp", {b.q})});
    sum = i == 0 ? leaf : b.op("Add", {sum, leaf});
  }
  const std::string line = b.result(b.op("Sub", {sum, b.op("Sin", {b.r})}, "y"));
  EXPECT_EQ(line.rfind("Sub(", 0), 0u) << line;
  Commuted fits;
  for (int i = 0; i < 6; ++i) {
    const ValueId leaf = fits.op("Add", {fits.op("Exp", {fits.p}), fits.op("Exp", {fits.q})});
    sum = i == 0 ? leaf : fits.op("Add", {sum, leaf});
  }
  EXPECT_EQ(fits.result(fits.op("Sub", {sum, fits.op("Tanh", {fits.r})}, "y")), "rules::MinusTanh/1(r)");
}

TEST(ApplyRules, NotAcrossDevicesNorWhatWaitsForOthers) {
  Net across = swish_net(), waits = swish_net();
  across.nodes[0].device = "bare:0";
  waits.nodes[1].control = {NodeId(0)};
  EXPECT_TRUE(unchanged(across));
  EXPECT_TRUE(unchanged(waits));
}

TEST(ApplyRules, TheReplacementRunsWhereThePatternRan) {
  Net net = swish_net();
  for (Node& node : net.nodes) node.device = "sim:1";
  Stages stages = with_rules();
  stages.plugins.push_back("../sim");
  EXPECT_EQ(transformed(net, {"apply_rules"}, stages), R"net(swish(x: f32[2, 3]) -> (z)
"y/rules_sound: swish/y": f32[2, 3] = rules::Swish/1(x) @sim:1
z: f32[2, 3] = Abs("y/rules_sound: swish/y") @sim:1
)net");
}

// No plugin here has a kernel for it.
TEST(ApplyRules, NotWhereTheReplacementHasNoKernel) {
  Net net = swish_net();
  for (Node& node : net.nodes) node.device = "sim:1";
  EXPECT_TRUE(unchanged(net));
}

// y = 2 * leaky_relu(x), as rules_constants has it, or with a difference.
std::string doubled(double alpha, const Shape& shape_of_two, float two, bool fed = false) {
  NetBuilder b("doubled");
  const ValueId x = b.input("x", DType::f32, Shape{3});
  const ValueId l = b.add1("LeakyRelu", "l", {x}, {{"alpha", alpha}});
  const ValueId factor = fed ? b.input("two", DType::f32, shape_of_two) : b.constant("two", blob(shape_of_two, two, 0));
  b.output(b.add1("Mul", "y", {l, factor}));
  Stages stages;
  stages.plugins = {"rules_constants"};
  return transformed(b.finish(), {"apply_rules"}, stages);
}

TEST(ApplyRules, ConstantsOfThePatternAreThoseOfTheNet) {
  EXPECT_EQ(doubled(0.5, {}, 2), R"net(doubled(x: f32[3]) -> (y)
"y/rules_constants: doubled-leaky/two": f32[] = [2]
"y/rules_constants: doubled-leaky/m": f32[3] = Mul/14(x, "y/rules_constants: doubled-leaky/two")
y: f32[3] = Max/13("y/rules_constants: doubled-leaky/m", x) # "y/rules_constants: doubled-leaky/y"
)net");
  EXPECT_EQ(doubled(0.5, {1}, 2), doubled(0.5, {}, 2)) << "one element broadcasts as a scalar does";
  EXPECT_NE(doubled(0.5, {}, 3).find("LeakyRelu"), std::string::npos);
  EXPECT_NE(doubled(0.5, {3}, 2).find("LeakyRelu"), std::string::npos);
  EXPECT_NE(doubled(0.5, {}, 2, true).find("LeakyRelu"), std::string::npos);
}

TEST(ApplyRules, AttributesThatThePatternStatesAreThoseOfTheNet) {
  EXPECT_NE(doubled(0.25, {}, 2).find("LeakyRelu"), std::string::npos);
}

}  // namespace
}  // namespace heddle
