// The findings of resolve, in its words, and its changes to the net.
#include "stages.h"

namespace heddle {
namespace {

using namespace testing_nets;
using namespace testing_stages;

TEST(ResolveFindings, AttributesAndPorts) {
  NetBuilder b("wrong");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  b.output(b.add1("LeakyRelu", "unknown", {x}, {{"alhpa", 0.1}}));
  b.output(b.add1("Relu", "none", {x}, {{"alpha", 0.1}}));
  b.output(b.add1("LeakyRelu", "type", {x}, {{"alpha", std::string("much")}}));
  b.output(b.add1("LeakyRelu", "twice", {x}, {{"alpha", 0.1}, {"alpha", 0.2}}));
  b.output(b.add1("Cast", "missing", {x}));
  b.output(b.add1("Relu", "many", {x, x}));
  b.output(b.add1("Add", "few", {x}));
  EXPECT_EQ(resolved(b.finish()), R"net(error[unknown-attribute] "wrong": "unknown" (LeakyRelu): attribute "alhpa" is unknown; it has: alpha
error[unknown-attribute] "wrong": "none" (Relu): attribute "alpha" is unknown; the operator has no attributes
error[attribute-mismatch] "wrong": "type" (LeakyRelu): attribute "alpha" is a string, must be a number
error[duplicate-name] "wrong": "twice" (LeakyRelu): attribute "alpha" is given twice; keep one of the two
error[attribute-mismatch] "wrong": "missing" (Cast): attribute "to" is missing and has no default
error[arity-mismatch] "wrong": "many" (Relu): has 2 inputs, the operator has at most 1
error[arity-mismatch] "wrong": "few" (Add): input "B" is missing; give 2 inputs or more
)net");
}

TEST(ResolveFindings, OperatorsAndVersions) {
  NetBuilder b("operators");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  b.output(b.add1("Rellu", "near", {x}));
  b.output(b.add1("Frobnicate", "far", {x}, {}, "mine"));
  b.output(b.add1("Relu", "old", {x}));
  b.net().nodes.back().version = 3;
  EXPECT_EQ(resolved(b.finish()),
            R"net(error[unknown-operator] "operators": "near" (Rellu): no loaded plugin has this operator; did you mean "Relu"?
error[unknown-operator] "operators": "far" (mine::Frobnicate): no loaded plugin has this operator; load a plugin that has it with RuntimeOptions::plugins
error[unknown-operator] "operators": "old" (Relu): version 3 of the operator is not known; the loaded plugins have version 14; import the model again, which brings its operators to the newest semantics
)net");
}

TEST(ResolveFindings, UpdatesOfVariables) {
  NetBuilder b("updates");
  const ValueId w = b.variable("w", blob(Shape{3}, 1, 0)), g = b.input("g", DType::f32, Shape{3});
  b.updates(b.add1("Neg", "no update", {w}), w);
  b.add1("AccumulateAdd", "no variable", {g, g}, {}, "heddle");
  b.add1("AccumulateAdd", "stale", {w, g}, {}, "heddle");
  EXPECT_EQ(
      resolved(b.finish()),
      R"net(error[hazard] "updates": "no update" (Neg): produces version 1 of variable "w", but the operator updates nothing; use an operator that updates its input, or give the result a name of its own
error[hazard] "updates": "no variable" (heddle::AccumulateAdd): output "updated" updates input "variable", which is not a variable; feed it a variable
error[hazard] "updates": "stale" (heddle::AccumulateAdd): updates version 0 of variable "w", which has been updated already; update the newest version
)net");
}

TEST(ResolveFindings, NetsInNets) {
  NetBuilder body("body"), b("outer");
  body.variable("w", blob(Shape{2}, 1, 1));
  body.output(body.add1("Nagate", "t", {body.input("x", DeclaredType())}));
  const auto same = subnet(body);
  b.output(b.add1("If", "y", {yes(b), b.input("x", DType::f32, Shape{2})}, {{"then_branch", same}, {"else_branch", same}}));
  EXPECT_EQ(
      resolved(b.finish()),
      R"net(error[subnet-mismatch] "outer": "y" (If): subnet "body" has variable "w", and subnets have no memory of their own; declare it in the outermost net and hand its value to the subnet
error[unknown-operator] "body": "t" (Nagate): no loaded plugin has this operator, used 2 times; express it by other operators, or use one of a plugin's own domain
error[subnet-mismatch] "outer": "y" (If): subnet "body" has variable "w", and subnets have no memory of their own; declare it in the outermost net and hand its value to the subnet
)net");
}

TEST(ResolveFindings, SubnetsHaveThePortsThatTheirOperatorsHandThem) {
  NetBuilder one("one"), b("outer");
  one.output(one.add1("Neg", "t", {one.input("x", DeclaredType())}));
  const auto same = subnet(one);
  const ValueId x = b.input("x", DType::f32, Shape{2});
  b.output(b.add1("If", "two", {yes(b), x, x}, {{"then_branch", same}, {"else_branch", same}}));
  b.add("If", "outputs", {yes(b), x}, 2, {{"then_branch", same}, {"else_branch", same}});
  b.add1("Loop", "loop", {ValueId(), ValueId(), x}, {{"body", same}});
  EXPECT_EQ(resolved(b.finish()), R"net(error[subnet-mismatch] "outer": "two" (If): it takes 1 inputs, is given 2, in subnet "one"
error[subnet-mismatch] "outer": "two" (If): it takes 1 inputs, is given 2, in subnet "one"
error[subnet-mismatch] "outer": "outputs" (If): it has 1 outputs, 2 are wanted, in subnet "one"
error[subnet-mismatch] "outer": "outputs" (If): it has 1 outputs, 2 are wanted, in subnet "one"
error[subnet-mismatch] "outer": "loop" (Loop): it takes 1 inputs, is given 3, in subnet "one"
)net");
}

// A net with an If whose output is the next version of w; `takes_w` says for each operand whether it is w or x.
Net updating(const std::vector<bool>& takes_w, const char* type = "If") {
  NetBuilder body("body"), b("outer");
  const ValueId w = b.variable("w", blob(Shape{2}, 1, 0)), x = b.input("x", DType::f32, Shape{2});
  std::vector<ValueId> inputs = {yes(b)}, inside;
  for (const bool takes : takes_w) {
    inputs.push_back(takes ? w : x);
    inside.push_back(body.input("i" + std::to_string(inside.size()), DeclaredType()));
  }
  body.output(inside.back());
  const auto same = subnet(body);
  std::vector<Attribute> attributes = {{"then_branch", same}, {"else_branch", same}};
  if (std::string(type) == "Loop") attributes = {{"body", same}};
  const ValueId next = b.add1(type, "next", inputs, attributes);
  b.updates(next, w);
  b.output(next);
  return b.finish();
}

TEST(ResolveFindings, VariablesThatSubnetsUpdate) {
  EXPECT_EQ(resolved(updating({false, true})), R"net(outer(x: f32[2]) -> (w@1)
yes: bool[] = [1]
variable w: f32[2] = [1, 1] -> w@1
w@1: f32[2] = If(yes, x, w@0) then_branch={
  body(i0, w@0) -> (w@0)
  variable w: input 1
} else_branch={
  body(i0, w@0) -> (w@0)
  variable w: input 1
} # next
)net");
  EXPECT_EQ(resolved(updating({true, true})),
            R"net(error[hazard] "outer": "next" (If): updates variable "w" and takes it twice; take it once
error[hazard] "outer": "next" (If): updates variable "w" and takes it twice; take it once
)net");
  EXPECT_EQ(
      resolved(updating({false, false})),
      R"net(error[hazard] "outer": "next" (If): produces version 1 of variable "w", but the operator updates nothing; use an operator that updates its input, or give the result a name of its own
)net");
}

// An integer becomes a float where an attribute requires one; an update makes its output a version of the variable.
TEST(Resolve, WidensAttributesAndNumbersVersions) {
  NetBuilder b("sound");
  const ValueId w = b.variable("w", blob(Shape{2}, 1, 0));
  const ValueId next = b.add1("AccumulateAdd", "next", {w, b.input("x", DType::f32, Shape{2})}, {}, "heddle");
  b.output(b.add1("LeakyRelu", "y", {next}, {{"alpha", int64_t{2}}}));
  EXPECT_EQ(resolved(b.finish()), R"net(sound(x: f32[2]) -> (y)
variable w: f32[2] = [1, 1] -> w@1
w@1 = heddle::AccumulateAdd(w@0, x) # next
y = LeakyRelu(w@1) alpha=2
)net");
}

}  // namespace
}  // namespace heddle
