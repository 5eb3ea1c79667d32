// Collectives of one process: the k-th of a communicator on each device are launched by one call.
#include <algorithm>
#include <string>
#include <vector>

#include "compile/plan_check/plan_check.h"
#include "group_nets.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(Groups);

// -x on the first device, and -y on the second; the negative sum of both on each.
Net two_sums() {
  NetBuilder b("sums");
  const ValueId x = b.input("x", DType::f32, Shape{4}), y = b.input("y", DType::f32, Shape{4});
  const ValueId left = sum_of_both(b, "left", 0, on(b, device_name(0), b.add1("Neg", "a", {x})));
  const ValueId right = sum_of_both(b, "right", 1, on(b, device_name(1), b.add1("Neg", "b", {y})));
  b.output(on(b, device_name(0), b.add1("Neg", "c", {left})));
  b.output(on(b, device_name(1), b.add1("Neg", "d", {right})));
  return b.finish();
}

TEST_P(Groups, AreSummedOnAllMembers) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const DeviceSetting delays("SEED", std::to_string(seed));
    auto prepared = prepare(device_runtime(2, {"groups"}), two_sums(), with_both_devices());
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    ASSERT_TRUE(compiling::check(prepared->plan()).ok()) << compiling::check(prepared->plan()).text();
    const std::vector<float> x = {1, 2, 3, 4}, y = {10, 20, 30, 40};
    ASSERT_TRUE(prepared->context.bind_input(0, x.data()).ok());
    ASSERT_TRUE(prepared->context.bind_input(1, y.data()).ok());
    for (int run = 0; run < 3; ++run) {
      const Status status = prepared->context.run();
      ASSERT_TRUE(status.ok()) << status.text();
      for (size_t i = 0; i < 2; ++i) {
        const TensorView output = prepared->context.output(i);
        const auto* const data = static_cast<const float*>(output.data);
        EXPECT_EQ(std::vector<float>(data, data + 4), (std::vector<float>{11, 22, 33, 44}));
      }
    }
  }
}

// The error of a net that is opened for two devices.
std::string refusal(Net net) {
  const auto prepared = prepare(device_runtime(2, {"groups"}), std::move(net), with_both_devices());
  return prepared.ok() ? "" : prepared.status().text();
}

TEST_P(Groups, ThatLackAMemberAreRefused) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  NetBuilder b("lacking");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  b.output(sum_of_both(b, "first", 0, x));
  b.output(sum_of_both(b, "second", 1, x));
  b.output(sum_of_both(b, "alone", 0, x));
  const std::string text = refusal(b.finish());
  EXPECT_NE(text.find("\"alone\" (groups::Sum)"), std::string::npos) << text;
  EXPECT_NE(text.find("is number 1 of communicator \"both\", and sim:1 has no such collective"), std::string::npos) << text;
}

TEST_P(Groups, BesideACollectiveOnTheHostAreRefused) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  NetBuilder b("mixed");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  b.output(sum_of_both(b, "there", 0, x));
  b.output(b.add1("Sum", "here", {x}, {{"communicator", std::string("both")}}, "groups"));
  const std::string text = refusal(b.finish());
  EXPECT_NE(text.find("\"here\" (groups::Sum): is a collective of communicator \"both\" on the host, and \"there\" is one on "),
            std::string::npos)
      << text;
}

TEST_P(Groups, WhoseMembersDifferAreRefused) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  NetBuilder b("other");
  const ValueId x = b.input("x", DType::f32, Shape{4}), y = b.input("y", DType::f32, Shape{5});
  b.output(sum_of_both(b, "x0", 0, x));
  b.output(sum_of_both(b, "y0", 0, y));
  b.output(sum_of_both(b, "y1", 1, y));
  b.output(sum_of_both(b, "x1", 1, x));
  const std::string text = refusal(b.finish());
  EXPECT_NE(text.find("\"y1\" (groups::Sum)"), std::string::npos) << text;
  EXPECT_NE(text.find("meets \"x0\" of sim:0"), std::string::npos) << text;
}

TEST_P(Groups, WhoseMembersDependOnEachOtherAreRefused) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  NetBuilder b("circular");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  const ValueId first = sum_of_both(b, "first", 0, x);
  b.output(sum_of_both(b, "second", 1, on(b, device_name(1), b.add1("Neg", "between", {first}))));
  const std::string text = refusal(b.finish());
  EXPECT_NE(text.find("depends on a collective that is launched together with it"), std::string::npos) << text;
}

TEST_P(Groups, OfOtherDevicesThanTheSessionDeclaresAreRefused) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  NetBuilder b("one");
  b.output(sum_of_both(b, "alone", 0, b.input("x", DType::f32, Shape{4})));
  auto prepared = prepare(device_runtime(2, {"groups"}), b.finish(), with_both_devices());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const Status status = prepared->context.run();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_NE(status.text().find("has its collectives of communicator \"both\" on sim:0, and the session declares sim:0 and sim:1"),
            std::string::npos)
      << status.text();
}

// A collective that names its device stays there: on the host it would be alone.
TEST_P(Groups, OfDevicesWithoutKernelsForThemAreRefused) {
  if (kind().runs_host_kernels) GTEST_SKIP() << kind().name << " runs the host's kernels";
  NetBuilder b("sums");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  b.output(sum_of_both(b, "left", 0, x));
  b.output(sum_of_both(b, "right", 1, x));
  const std::string text = refusal(b.finish());
  EXPECT_NE(text.find("\"left\" (groups::Sum): no loaded plugin has a kernel for it on \"" + device_name(0)), std::string::npos) << text;
}

// Each collective on the host would be alone, and its sum the input.
TEST_P(Groups, OfDevicesOnTheHostAreRefused) {
  NetBuilder b("host");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  b.output(sum_of_both(b, "left", 0, x));
  b.output(sum_of_both(b, "right", 1, x));
  auto prepared = prepare(device_runtime(2, {"groups"}), on_the_host(b.finish()), with_both_devices());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const Status status = prepared->context.run();
  EXPECT_NE(status.text().find("has its collectives of communicator \"both\" on the host, and the session declares"), std::string::npos)
      << status.text();
}

// Whatever the members wait for, they are next to each other in the plan, on streams of their own, and the last launches all.
TEST_P(Groups, AreLaunchedByTheLast) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  auto prepared = prepare(device_runtime(2, {"groups"}), two_sums(), with_both_devices());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const Plan& plan = prepared->plan();
  size_t groups = 0;
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    if (plan.steps[s].type != "Sum") continue;
    const DeviceWork& work = *plan.steps[s].on_device;
    EXPECT_EQ(plan.devices[work.device - 1u].stream_classes[work.stream], HEDDLE_STREAM_COMMUNICATION);
    if (work.launched_by >= 0) {
      EXPECT_EQ(work.launched_by, static_cast<int32_t>(s) + 1);
      continue;
    }
    ++groups;
    EXPECT_EQ(work.group, (std::vector<uint32_t>{s - 1, s}));
  }
  EXPECT_EQ(groups, 1u);
}

}  // namespace
}  // namespace heddle
