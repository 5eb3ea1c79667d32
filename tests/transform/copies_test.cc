// insert_copies: a value that is needed on another device than its own goes through a Copy.
#include "stages.h"

namespace heddle {
namespace {

using namespace testing_nets;
using namespace testing_stages;

// x [2], and operators on the devices of a test plugin.
struct Placed : NetBuilder {
  explicit Placed(const char* name) : NetBuilder(name) { x = input("x", DType::f32, Shape{2}); }
  ValueId on(const char* device, const char* type, const char* name, std::vector<ValueId> inputs, const char* domain = "") {
    const ValueId made = add1(type, name, std::move(inputs), {}, domain);
    net().nodes.back().device = device;
    return made;
  }
  std::string copied(const std::string& default_device = "cpu:0") {
    Stages bare;
    bare.plugins = {"bare"};
    bare.device = default_device;
    return transformed(net(), {"insert_copies"}, bare);
  }
  ValueId x;
};

TEST(Copies, ANetOnTheHostHasNone) {
  Placed b("host");
  b.output(b.on("", "Relu", "y", {b.on("cpu:0", "Relu", "r", {b.x})}));
  EXPECT_EQ(b.copied(), R"net(host(x: f32[2]) -> (y)
r: f32[2] = Relu(x) @cpu:0
y: f32[2] = Relu(r)
)net");
}

TEST(Copies, InputsComeAndOutputsGo) {
  Placed b("device");
  b.output(b.on("bare:0", "Relu", "y", {b.x}));
  EXPECT_EQ(b.copied(), R"net(device(x: f32[2]) -> (y)
"x/copy to bare:0": f32[2] = heddle::Copy/1(x) @bare:0
"y/copy to cpu:0": f32[2] = Relu("x/copy to bare:0") @bare:0 # y
y: f32[2] = heddle::Copy/1("y/copy to cpu:0") @cpu:0 # "y/copy to cpu:0"
)net");
}

TEST(Copies, OneIsEnoughForAllReadersOfAPlace) {
  Placed b("readers");
  const ValueId a = b.on("bare:0", "Add", "a", {b.x, b.x});
  b.output(b.on("", "Add", "y", {a, b.on("", "Neg", "n", {a})}));
  EXPECT_EQ(b.copied(), R"net(readers(x: f32[2]) -> (y)
"x/copy to bare:0": f32[2] = heddle::Copy/1(x) @bare:0
a: f32[2] = Add("x/copy to bare:0", "x/copy to bare:0") @bare:0
"a/copy to cpu:0": f32[2] = heddle::Copy/1(a) @cpu:0
n: f32[2] = Neg("a/copy to cpu:0") @cpu:0
y: f32[2] = Add("a/copy to cpu:0", n) @cpu:0
)net");
}

TEST(Copies, FromDeviceToDeviceGoThroughTheHost) {
  Placed b("across");
  const ValueId a = b.on("bare:0", "Relu", "a", {b.x});
  b.output(b.on("", "Neg", "back", {b.on("bare:1", "Relu", "there", {a})}));
  EXPECT_EQ(b.copied(), R"net(across(x: f32[2]) -> (back)
"x/copy to bare:0": f32[2] = heddle::Copy/1(x) @bare:0
a: f32[2] = Relu("x/copy to bare:0") @bare:0
"a/copy to cpu:0": f32[2] = heddle::Copy/1(a) @cpu:0
"a/copy to bare:1": f32[2] = heddle::Copy/1("a/copy to cpu:0") @bare:1
there: f32[2] = Relu("a/copy to bare:1") @bare:1
"there/copy to cpu:0": f32[2] = heddle::Copy/1(there) @cpu:0
back: f32[2] = Neg("there/copy to cpu:0") @cpu:0
)net");
}

TEST(Copies, TheDefaultDeviceIsWhereOperatorsRunThatNameNone) {
  Placed b("inherited");
  b.output(b.on("", "Relu", "y", {b.on("cpu:0", "Neg", "n", {b.x})}));
  EXPECT_EQ(b.copied("bare:0"), R"net(inherited(x: f32[2]) -> (y)
n: f32[2] = Neg(x) @cpu:0
"n/copy to bare:0": f32[2] = heddle::Copy/1(n) @bare:0
"y/copy to cpu:0": f32[2] = Relu("n/copy to bare:0") @bare:0 # y
y: f32[2] = heddle::Copy/1("y/copy to cpu:0") @cpu:0 # "y/copy to cpu:0"
)net");
}

// Compile makes the copy of a constant once, when it opens the device.
TEST(Copies, ConstantsLieOnTheHost) {
  Placed b("constant");
  b.output(b.on("bare:0", "Add", "y", {b.x, b.constant("a", blob(Shape{2}, 1, 1))}));
  EXPECT_EQ(b.copied(), R"net(constant(x: f32[2]) -> (y)
a: f32[2] = [1, 2]
"x/copy to bare:0": f32[2] = heddle::Copy/1(x) @bare:0
"a/copy to bare:0": f32[2] = heddle::Copy/1(a) @bare:0
"y/copy to cpu:0": f32[2] = Add("x/copy to bare:0", "a/copy to bare:0") @bare:0 # y
y: f32[2] = heddle::Copy/1("y/copy to cpu:0") @cpu:0 # "y/copy to cpu:0"
)net");
}

TEST(Copies, AVariableLiesWhereItIsUpdated) {
  Placed b("variable");
  const ValueId w = b.variable("w", blob(Shape{2}, 1, 1));
  b.on("bare:0", "AccumulateAdd", "next", {w, b.x}, "heddle");
  b.output(b.on("", "Neg", "before", {w}));
  EXPECT_EQ(b.copied(), R"net(variable(x: f32[2]) -> (before)
variable w: f32[2] = [1, 2] -> w@1
"x/copy to bare:0": f32[2] = heddle::Copy/1(x) @bare:0
w@1: f32[2] = heddle::AccumulateAdd(w@0, "x/copy to bare:0") @bare:0 # next
"w/copy to cpu:0": f32[2] = heddle::Copy/1(w@0) @cpu:0
before: f32[2] = Neg("w/copy to cpu:0") @cpu:0
)net");
}

TEST(Copies, ACopyThatIsThereIsTakenAsItIs) {
  Placed b("explicit");
  const ValueId there = b.on("bare:0", "Copy", "there", {b.x}, "heddle");
  b.output(b.on("", "Copy", "y", {b.on("bare:0", "Relu", "r", {there})}, "heddle"));
  EXPECT_EQ(b.copied(), R"net(explicit(x: f32[2]) -> (y)
there: f32[2] = heddle::Copy(x) @bare:0
r: f32[2] = Relu(there) @bare:0
y: f32[2] = heddle::Copy(r) @cpu:0
)net");
}

TEST(Copies, AnInputThatIsAnOutputStays) {
  Placed b("passes");
  b.output(b.x);
  b.output(b.on("bare:0", "Relu", "y", {b.x}));
  b.output(b.net().outputs[1]);
  EXPECT_EQ(b.copied(), R"net(passes(x: f32[2]) -> (x, y, y)
"x/copy to bare:0": f32[2] = heddle::Copy/1(x) @bare:0
"y/copy to cpu:0": f32[2] = Relu("x/copy to bare:0") @bare:0 # y
y: f32[2] = heddle::Copy/1("y/copy to cpu:0") @cpu:0 # "y/copy to cpu:0"
)net");
}

// The host reads the shape of a Reshape, wherever the Reshape runs.
TEST(Copies, HostPortsAreReadOnTheHost) {
  Placed b("shape");
  const ValueId shape = b.input("shape", DType::i64, Shape{2});
  b.output(b.on("bare:0", "Reshape", "y", {b.on("bare:0", "Relu", "r", {b.x}), shape}));
  Stages bare;
  bare.plugins = {"bare"};
  bare.infer.inputs.resize(2);
  const int64_t extents[] = {2, 1};
  bare.infer.inputs[1] = {{DType::i64, Shape{2}}, Blob::copy_of(DType::i64, Shape{2}, extents)};
  EXPECT_EQ(transformed(b.net(), {"insert_copies"}, bare), R"net(shape(x: f32[2], shape: i64[2] known [2, 1]) -> (y)
"x/copy to bare:0": f32[2] = heddle::Copy/1(x) @bare:0
r: f32[2] = Relu("x/copy to bare:0") @bare:0
"y/copy to cpu:0": f32[2, 1] = Reshape(r, shape) @bare:0 # y
y: f32[2, 1] = heddle::Copy/1("y/copy to cpu:0") @cpu:0 # "y/copy to cpu:0"
)net");
}

}  // namespace
}  // namespace heddle
