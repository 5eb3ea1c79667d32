// apply_rules: where a rule of tests/plugins/rules.cc applies, and where it must not.
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

// Whether nothing became a Swish.
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

TEST(ApplyRules, NotForAnotherDtypeRankOrOrderOfInputs) {
  EXPECT_TRUE(unchanged(swish_net(DType::f64)));
  EXPECT_TRUE(unchanged(swish_net(DType::f32, false, false, {6})));
  EXPECT_TRUE(unchanged(swish_net(DType::f32, false, true)));
}

TEST(ApplyRules, NotWhereTwoInputsAreMeantToBeOne) {
  NetBuilder b("other");
  const ValueId x = b.input("x", DType::f32, Shape{2, 3}), other = b.input("other", DType::f32, Shape{2, 3});
  b.output(b.add1("Mul", "y", {x, b.add1("Sigmoid", "s", {other})}));
  EXPECT_TRUE(unchanged(b.net()));
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

// No plugin brings kernels for it here.
TEST(ApplyRules, NotWhereTheReplacementHasNoKernel) {
  Net net = swish_net();
  for (Node& node : net.nodes) node.device = "sim:1";
  EXPECT_TRUE(unchanged(net));
}

// y = 2 * leaky_relu(x), as rules_constants has it, or not quite.
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
