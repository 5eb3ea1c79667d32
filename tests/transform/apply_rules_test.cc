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
  across.nodes[0].device = "proto:0";
  waits.nodes[1].control = {NodeId(0)};
  EXPECT_TRUE(unchanged(across));
  EXPECT_TRUE(unchanged(waits));
}

TEST(ApplyRules, TheReplacementRunsWhereThePatternRan) {
  Net net = swish_net();
  for (Node& node : net.nodes) node.device = "proto:1";
  EXPECT_EQ(transformed(net, {"apply_rules"}, with_rules()), R"net(swish(x: f32[2, 3]) -> (z)
"y/rules_sound: swish/y": f32[2, 3] = rules::Swish/1(x) @proto:1
z: f32[2, 3] = Abs("y/rules_sound: swish/y") @proto:1
)net");
}

}  // namespace
}  // namespace heddle
