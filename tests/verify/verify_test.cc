// verify: the conditions on a net before it is transformed and compiled; all violations are reported at once.
#include "verify/verify.h"

#include "stages.h"

namespace heddle {
namespace {

using namespace testing_nets;
using namespace testing_stages;

// x [2] and operators on devices; bare is a test plugin with two of them.
struct Placed : NetBuilder {
  explicit Placed(const char* name) : NetBuilder(name) {
    x = input("x", DType::f32, Shape{2});
    stages.plugins = {"bare"};
  }
  ValueId on(const char* device, const char* type, const char* name, std::vector<ValueId> inputs, const char* domain = "") {
    const ValueId made = add1(type, name, std::move(inputs), {}, domain);
    net().nodes.back().device = device;
    return made;
  }
  std::string found() { return verified(net(), stages); }
  std::string found(Copies copies) {
    stages.copies = copies;
    return found();
  }
  ValueId x;
  Stages stages;
};

TEST(Verify, ASoundNetHasNoFindings) {
  EXPECT_EQ(verified(convolution_net()), "");
}

TEST(Verify, UnusedOperatorsAreWarnedOf) {
  NetBuilder b("unused");
  const ValueId x = b.input("x", DType::f32, Shape{2});
  b.add1("Neg", "behind", {b.add1("Abs", "unused", {x})});
  b.output(b.add1("Exp", "y", {x}));
  EXPECT_EQ(
      verified(b.finish()),
      R"net(warning[unused-operator] "unused": "behind" (Neg): nobody reads what it makes: it is left out of the plan; remove it, or make its output one of the net's
)net");
}

// An effect, an update, a control input from another operator and a sparse link are uses too.
TEST(Verify, WhatOnlyLooksUnusedIsNot) {
  Placed b("used");
  const ValueId w = b.variable("w", blob(Shape{2}, 1, 1));
  b.add1("AccumulateAdd", "updates", {w, b.x}, {}, "heddle");
  b.on("bare:0", "Fault", "effect", {b.x}, "bare");
  b.add1("Neg", "waited for", {b.x});
  const ValueId rows = b.add1("Cast", "rows", {b.x}, {{"to", int64_t{7}}}), values = b.add1("Abs", "values", {b.x});
  b.output(b.add1("Exp", "y", {b.x}));
  b.net().nodes.back().control = {NodeId(2u)};
  b.net().sparse_links = {{w, "rows", rows, values, 2, false, false}};
  EXPECT_EQ(b.found(), "");
}

TEST(Verify, AConstantOutputIsNoted) {
  NetBuilder b("constant");
  b.output(b.constant("a", blob(Shape{2}, 1, 1)));
  EXPECT_EQ(verified(b.finish()), R"net(note[ok] "constant": output "a" is a constant
)net");
}

TEST(Verify, DevicesThatAreNotThereAreNamedByEveryOperator) {
  Placed b("nowhere");
  b.output(b.on("bare:7", "Relu", "y", {b.x}));
  b.output(b.on("sim:0", "Relu", "z", {b.x}));
  b.output(b.on("cpu:1", "Relu", "u", {b.x}));
  EXPECT_EQ(
      b.found(Copies::automatic),
      R"net(error[no-such-device] "nowhere": "y" (Relu): device "bare:7" does not exist: there are 2 of kind "bare" (it would read "x" of "cpu:0" there); the last is bare:1
error[no-such-device] "nowhere": "z" (Relu): device "sim:0" does not exist: no loaded plugin brings devices of kind "sim" (it would read "x" of "cpu:0" there); load its plugin with RuntimeOptions::plugins, or choose cpu
error[no-such-device] "nowhere": "u" (Relu): device "cpu:1" does not exist (it would read "x" of "cpu:0" there); there is one cpu: cpu:0
)net");
}

TEST(Verify, TheDefaultDeviceMustBeThere) {
  Placed b("default");
  b.output(b.on("", "Relu", "y", {b.x}));
  b.output(b.on("cpu", "Relu", "z", {b.x}));
  b.stages.device = "bare:9";
  EXPECT_EQ(b.found(Copies::automatic),
            R"net(error[no-such-device] "default": device "bare:9" does not exist: there are 2 of kind "bare"; the last is bare:1
)net");
}

TEST(Verify, CrossingsAreRefusedWarnedOfOrTaken) {
  Placed b("crossing");
  b.output(b.on("", "Neg", "y", {b.on("bare:0", "Relu", "r", {b.x})}));
  EXPECT_EQ(
      b.found(Copies::strict),
      R"net(error[wrong-device] "crossing": "y" (Neg): runs on "cpu:0" but input "r" is on "bare:0", where "r" runs; put both on one device, or let copies be inserted with SessionOptions::copies = Copies::automatic
)net");
  EXPECT_EQ(
      b.found(Copies::warn),
      R"net(warning[wrong-device] "crossing": "y" (Neg): runs on "cpu:0" but input "r" is on "bare:0", where "r" runs: it is copied in each run; put both on one device, or say SessionOptions::copies = Copies::automatic
)net");
  EXPECT_EQ(b.found(Copies::automatic), "");
}

// Both operators are on one device, and yet the value crosses: the error says why.
TEST(Verify, AnOperandThatDecidesShapesIsNeededOnTheHost) {
  Placed b("shapes");
  const ValueId shape = b.on("bare:0", "NonZero", "shape", {b.x});
  b.output(b.on("bare:0", "Expand", "y", {b.x, b.on("bare:0", "Flatten", "flat", {shape})}));
  EXPECT_EQ(
      b.found(Copies::strict),
      R"net(error[wrong-device] "shapes": "y" (Expand): runs on "bare:0" and needs on the host what decides shapes: input "flat" is on "bare:0", where "flat" runs; compute it on the host, or let copies be inserted with SessionOptions::copies = Copies::automatic
)net");
  EXPECT_EQ(
      b.found(Copies::warn),
      R"net(warning[wrong-device] "shapes": "y" (Expand): runs on "bare:0" and needs on the host what decides shapes: input "flat" is on "bare:0", where "flat" runs: it is copied in each run; compute it on the host, or say SessionOptions::copies = Copies::automatic
)net");
  EXPECT_EQ(b.found(Copies::automatic), "");
}

TEST(Verify, InputsConstantsAndOutputsOfTheNetAreNoCrossing) {
  Placed b("ports");
  b.output(b.on("bare:0", "Add", "y", {b.x, b.constant("a", blob(Shape{2}, 1, 1))}));
  EXPECT_EQ(b.found(Copies::strict), "");
}

TEST(Verify, AVariableThatLivesElsewhereIsACrossing) {
  Placed b("variable");
  const ValueId w = b.variable("w", blob(Shape{2}, 1, 1));
  b.output(b.on("", "Neg", "y", {w}));
  b.on("bare:0", "AccumulateAdd", "next", {w, b.x}, "heddle");
  EXPECT_EQ(
      b.found(Copies::strict),
      R"net(error[wrong-device] "variable": "y" (Neg): runs on "cpu:0" but input "w" is on "bare:0", where the variable lives; put both on one device, or let copies be inserted with SessionOptions::copies = Copies::automatic
)net");
}

TEST(Verify, UpdatesOfOneVariableOnTwoDevicesAreRefused) {
  Placed b("updates");
  const ValueId w = b.variable("w", blob(Shape{2}, 1, 1));
  const ValueId once = b.on("bare:0", "AccumulateAdd", "once", {w, b.x}, "heddle");
  b.on("bare:1", "AccumulateAdd", "twice", {once, b.x}, "heddle");
  EXPECT_EQ(
      b.found(Copies::automatic),
      R"net(error[wrong-device] "updates": "twice" (heddle::AccumulateAdd): runs on "bare:1" but updates variable "w", which is updated on "bare:0"; put all operators that update one variable on one device
)net");
}

TEST(Verify, SubnetsRunOnTheHost) {
  NetBuilder inner("inner"), body("body");
  const ValueId i = inner.input("x", DeclaredType());
  inner.output(inner.add1("Relu", "deep", {i}));
  inner.net().nodes[0].device = "bare:0";
  const auto deep = subnet(inner);
  const ValueId x = body.input("x", DeclaredType());
  body.output(body.add1("If", "if", {yes(body), x}, {{"then_branch", deep}, {"else_branch", deep}}));
  const auto same = subnet(body);
  Placed b("outer");
  b.output(b.add1("If", "y", {yes(b), b.x}, {{"then_branch", same}, {"else_branch", same}}));
  EXPECT_EQ(
      b.found(Copies::automatic),
      R"net(error[unsupported] "outer": "y/if/deep" (Relu): is put on "bare:0", but its subnet runs on "cpu:0", in subnet "inner", in subnet "body"; leave its device out
)net");
}

TEST(Verify, AnOutputThatIsOverwrittenIsAHazard) {
  NetBuilder b("hazard");
  const ValueId w = b.variable("w", blob(Shape{2}, 1, 1));
  const ValueId next = b.add1("AccumulateAdd", "next", {w, b.input("x", DType::f32, Shape{2})}, {}, "heddle");
  b.output(w);
  b.output(next);
  EXPECT_EQ(
      verified(b.finish()),
      R"net(error[hazard] "hazard": output "w" is version 0 of variable "w", which is overwritten in the same run; make an Identity of it the output, or the newest version
)net");
}

TEST(Verify, AVariableIsDeclaredOnceAndKeepsItsType) {
  NetBuilder b("variables");
  const ValueId w = b.variable("w", blob(Shape{2}, 1, 1));
  b.variable("w", blob(Shape{2}, 1, 1));
  b.add1("AccumulateAdd", "next", {w, b.input("x", DType::f32, Shape{2})}, {}, "heddle");
  Typed made = typed(b.finish());
  made.net.types[made.net.net.variables[0].last.index] = {DType::f32, {3}};
  EXPECT_EQ(
      text_of(verify(made.net, host_target(), {})),
      R"net(error[shape-mismatch] "variables": variable "w" is f32[2] before the run and f32[3] after it; its updates must keep dtype and shape
error[duplicate-name] "variables": variable "w" is declared twice; rename one
)net");
}

TEST(Verify, SparseLinksHaveAnIndexForEachRow) {
  NetBuilder b("links");
  const ValueId table = b.input("table", DType::f32, Shape{5, 3}), rows = b.input("rows", DType::i64, Shape{2}),
                few = b.input("few", DType::f32, Shape{1, 3}), values = b.input("values", DType::f32, Shape{2, 3});
  b.output(b.add1("Gather", "y", {table, rows}));
  b.net().sparse_links = {{table, "rows", rows, values, 5, false, false},
                          {table, "rows", rows, few, 5, false, false},
                          {table, "rows", values, values, 5, false, false}};
  EXPECT_EQ(
      verified(b.finish()),
      R"net(error[shape-mismatch] "links": sparse slice of "table": indices "rows" are i64[2], values are [1, 3]; give one i32 or i64 index for each row of the values
error[shape-mismatch] "links": sparse slice of "table": indices "values" are f32[2, 3], values are [2, 3]; give one i32 or i64 index for each row of the values
)net");
}

TEST(Verify, EverythingIsToldAtOnce) {
  Placed b("all");
  const ValueId w = b.variable("w", blob(Shape{2}, 1, 1));
  b.on("bare:0", "AccumulateAdd", "next", {w, b.x}, "heddle");
  b.output(w);
  b.add1("Neg", "unused", {b.x});
  b.output(b.on("nowhere", "Relu", "y", {b.x}));
  EXPECT_EQ(
      b.found(Copies::strict),
      R"net(error[no-such-device] "all": "y" (Relu): device "nowhere:0" does not exist: no loaded plugin brings devices of kind "nowhere" (it would read "x" of "cpu:0" there); load its plugin with RuntimeOptions::plugins, or choose cpu
error[hazard] "all": output "w" is version 0 of variable "w", which is overwritten in the same run; make an Identity of it the output, or the newest version
warning[unused-operator] "all": "unused" (Neg): nobody reads what it makes: it is left out of the plan; remove it, or make its output one of the net's
)net");
}

// The mistakes of their producers are already reported.
TEST(Verify, ValuesWithoutATypeArePassedOver) {
  NetBuilder b("mistake");
  const ValueId x = b.input("x", DType::f32, Shape{2}), y = b.input("y", DType::f32, Shape{3});
  const ValueId wrong = b.add1("Add", "wrong", {x, y});
  b.output(b.add1("Neg", "behind", {wrong}));
  b.net().sparse_links = {{x, "rows", wrong, wrong, 2, false, false}};
  EXPECT_EQ(verified(b.finish()), "");
}

}  // namespace
}  // namespace heddle
