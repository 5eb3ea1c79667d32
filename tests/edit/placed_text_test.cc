// place: the device of operators for which the net names none.
#include "stages.h"

namespace heddle {
namespace {

using namespace testing_nets;
using namespace testing_stages;

// MatMul has a kernel on the devices of the test plugin, Neg has none, and Flatten is a view.
Net net(const char* device_of_product = "") {
  NetBuilder b("placed");
  const ValueId x = b.input("x", DType::f32, Shape{64, 64});
  const ValueId product = b.add1("MatMul", "product", {x, x});
  b.net().nodes[0].device = device_of_product;
  b.output(b.add1("Neg", "n", {b.add1("Flatten", "flat", {product})}));
  return b.finish();
}

std::string placed(Net net, const char* device, bool fall_back) {
  Stages bare;
  bare.plugins = {"bare"};
  bare.device = device;
  bare.fall_back = fall_back;
  return transformed(std::move(net), {"place"}, bare);
}

TEST(Place, OnTheHostNothingIsWritten) {
  EXPECT_EQ(placed(net(), "cpu", true), R"net(placed(x: f32[64, 64]) -> (n)
product: f32[64, 64] = MatMul(x, x)
flat: f32[64, 64] = Flatten(product)
n: f32[64, 64] = Neg(flat)
)net");
}

TEST(Place, WithoutFallBackNothingIsAsked) {
  EXPECT_EQ(placed(net(), "bare", false), R"net(placed(x: f32[64, 64]) -> (n)
product: f32[64, 64] = MatMul(x, x) @bare:0
flat: f32[64, 64] = Flatten(product) @bare:0
n: f32[64, 64] = Neg(flat) @bare:0
)net");
}

TEST(Place, WhatTheDeviceHasNoKernelForRunsOnTheHost) {
  EXPECT_EQ(
      placed(net(), "bare", true),
      R"net(warning[no-kernel] "placed": "n" (Neg): runs on "cpu:0": no kernel for it on "bare:0"; load a plugin that has one, or say SessionOptions::copies = Copies::automatic
placed(x: f32[64, 64]) -> (n)
product: f32[64, 64] = MatMul(x, x) @bare:0
flat: f32[64, 64] = Flatten(product) @bare:0
n: f32[64, 64] = Neg(flat) @cpu:0
)net");
}

TEST(Place, ANamedDeviceStaysAndIsSpelledOneWay) {
  EXPECT_EQ(placed(net("bare"), "cpu:0", true), R"net(placed(x: f32[64, 64]) -> (n)
product: f32[64, 64] = MatMul(x, x) @bare:0
flat: f32[64, 64] = Flatten(product) @cpu:0
n: f32[64, 64] = Neg(flat) @cpu:0
)net");
  EXPECT_EQ(placed(net("cpu"), "bare:1", false), R"net(placed(x: f32[64, 64]) -> (n)
product: f32[64, 64] = MatMul(x, x) @cpu:0
flat: f32[64, 64] = Flatten(product) @bare:1
n: f32[64, 64] = Neg(flat) @bare:1
)net");
}

TEST(Place, TheDefaultDeviceByNameIsTheDefaultDevice) {
  EXPECT_EQ(placed(net("bare:1"), "bare:1", false), R"net(placed(x: f32[64, 64]) -> (n)
product: f32[64, 64] = MatMul(x, x) @bare:1
flat: f32[64, 64] = Flatten(product) @bare:1
n: f32[64, 64] = Neg(flat) @bare:1
)net");
}

TEST(Place, WhatIsBehindExtentsThatOnlyTheRunKnowsIsPlacedLikeTheRest) {
  NetBuilder b("late");
  b.output(b.add1("Relu", "y", {b.add1("Unique", "found", {b.input("x", DType::f32, Shape{3})})}));
  EXPECT_EQ(
      placed(b.finish(), "bare", true),
      R"net(warning[no-kernel] "late": "found" (Unique): runs on "cpu:0": no kernel for it on "bare:0"; load a plugin that has one, or say SessionOptions::copies = Copies::automatic
warning[wrong-device] "late": "y" (Relu): runs on "cpu:0": 24 bytes fewer are copied in each run than with it on "bare:0"; give it the device "bare:0" to keep it there, or say SessionOptions::copies = Copies::automatic
late(x: f32[3]) -> (y)
found: f32[<=3] = Unique(x) @cpu:0
y: f32[3] late = Relu(found) @cpu:0
)net");
}

TEST(Place, NothingIsSaidOfWhatIsBehindAMistake) {
  NetBuilder b("mistake");
  const ValueId x = b.input("x", DType::f32, Shape{2});
  b.output(b.add1("Neg", "n", {b.add1("Add", "wrong", {x, b.input("y", DType::f32, Shape{3})})}));
  Stages bare;
  bare.plugins = {"bare"};
  bare.device = "bare:0";
  bare.fall_back = true;
  Typed made = typed(b.finish(), bare);
  ASSERT_TRUE(made.findings.failed());
  Findings findings;
  EXPECT_EQ(print(place(std::move(made.net), bare.target(), findings)), R"net(mistake(x: f32[2], y: f32[3]) -> (n)
wrong: ? = Add(x, y) @bare:0
n: ? = Neg(wrong) @bare:0
)net");
  EXPECT_EQ(text_of(findings), "");
}

}  // namespace
}  // namespace heddle
