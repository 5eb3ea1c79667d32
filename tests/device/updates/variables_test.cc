// Variables with a device copy: uploaded once, updated there, read on the host on request.
#include <set>

#include "device/device_support.h"
#include "device/simulated.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(DeviceVariables);

std::vector<float> numbers(const Tensor& tensor) {
  const auto* data = static_cast<const float*>(tensor.data());
  return {data, data + tensor.shape().element_count()};
}

// y = x + w; w <- w + x, on `device`.
Net counting_net(const std::string& device, const FaultyStep* faulty = nullptr) {
  NetBuilder b("counting");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  const float zeros[4] = {};
  const ValueId w = b.variable("w", Blob::copy_of(DType::f32, Shape{4}, zeros));
  b.output(on(b, device, b.add1("Add", "y", {x, w})));
  const ValueId step = faulty ? faulty->add(b, x) : x;
  const ValueId next = on(b, device, b.add1("AccumulateAdd", "next", {w, step}, {}, "heddle"));
  b.updates(next, w);
  return b.finish();
}

TEST_P(DeviceVariables, LiveWhereTheyAreUpdated) {
  const Runtime runtime = device_runtime(2);
  auto prepared = prepare(runtime, counting_net(device_name(0)), silent(2));
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const float x[4] = {1, 2, 3, 4};
  ASSERT_TRUE(prepared->context.bind_input(0, x).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(prepared->context.run().ok());
  auto w = prepared->session.read_variable("w");
  ASSERT_TRUE(w.ok());
  EXPECT_EQ(numbers(*w), (std::vector<float>{3, 6, 9, 12}));
  EXPECT_EQ(prepared->plan().copies.size(), 2u) << "x there and y back, nothing of w";
  EXPECT_EQ(prepared->plan().devices[0].memory.persistent_bytes, 16);
  const float fresh[4] = {10, 10, 10, 10};
  ASSERT_TRUE(prepared->session.write_variable("w", {DType::f32, Shape{4}, const_cast<float*>(fresh)}).ok());
  ASSERT_TRUE(prepared->context.run().ok());
  EXPECT_EQ(static_cast<const float*>(prepared->context.output(0).data)[3], 14);
  EXPECT_EQ(numbers(*prepared->session.read_variable("w")), (std::vector<float>{11, 12, 13, 14}));
}

// A variable is copied to the host when it was written on the device since, and only then.
TEST_P(DeviceVariables, ASecondLookCopiesNothing) {
  HEDDLE_DEVICE_NEEDS(has_clock);  // a device that counts
  NetBuilder b("two");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  for (const char* name : {"v", "w"}) {
    const ValueId old = b.variable(name, whole_numbers(Shape{4}, 7, 0));
    b.updates(on(b, device_name(0), b.add1("AccumulateAdd", std::string("next_") + name, {old, x}, {}, "heddle")), old);
  }
  const Runtime runtime = device_runtime();
  auto prepared = prepare(runtime, b.finish(), silent());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const float ones[4] = {1, 1, 1, 1};
  ASSERT_TRUE(prepared->context.bind_input(0, ones).ok());
  const auto copies_of_a_look = [&] {
    const uint64_t before = counted(prepared->plan(), &sim_counts::copies);
    for (const char* name : {"v", "w"}) EXPECT_TRUE(prepared->session.read_variable(name).ok());
    return counted(prepared->plan(), &sim_counts::copies) - before;
  };
  ASSERT_TRUE(prepared->context.run().ok());
  EXPECT_EQ(copies_of_a_look(), 2u);
  EXPECT_EQ(copies_of_a_look(), 0u);
  ASSERT_TRUE(prepared->context.run().ok());
  EXPECT_EQ(copies_of_a_look(), 2u) << "one for each variable after a step";
  EXPECT_EQ(copies_of_a_look(), 0u);
}

TEST_P(DeviceVariables, AFailureBeforeTheUpdatesLeavesThemAsTheyWere) {
  HEDDLE_DEVICE_NEEDS(has_faults());
  const FaultyStep faulty(FaultyStep::When::later, 1);
  const Runtime runtime = device_runtime(2);
  auto prepared = prepare(runtime, counting_net(device_name(0), &faulty), silent());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const float x[4] = {1, 2, 3, 4};
  ASSERT_TRUE(prepared->context.bind_input(0, x).ok());
  const Status status = prepared->context.run();
  EXPECT_EQ(status.diagnostic().node, "fault") << status.text();
  EXPECT_EQ(numbers(*prepared->session.read_variable("w")), (std::vector<float>{0, 0, 0, 0}));
  ASSERT_TRUE(prepared->context.run().ok());
  EXPECT_EQ(numbers(*prepared->session.read_variable("w")), (std::vector<float>{1, 2, 3, 4}));
}

TEST_P(DeviceVariables, TheRateOfAnUpdateIsATensorThere) {
  NetBuilder b("sgd");
  const ValueId g = b.input("g", DType::f32, Shape{4}), rate = b.input("rate", DType::f32, Shape{});
  const ValueId w = b.variable("w", whole_numbers(Shape{4}, 7, 0));
  const ValueId next = on(b, device_name(0), b.add1("SgdUpdate", "next", {w, g, rate}, {}, "heddle"));
  b.updates(next, w);
  b.output(next);
  const Runtime runtime = device_runtime();
  auto prepared = prepare(runtime, b.finish(), silent());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const float ones[4] = {1, 1, 1, 1};
  float two = 2;
  ASSERT_TRUE(prepared->context.bind_input(0, ones).ok());
  ASSERT_TRUE(prepared->context.bind_input(1, &two).ok());
  ASSERT_TRUE(prepared->context.run().ok());
  EXPECT_EQ(numbers(*prepared->session.read_variable("w")), (std::vector<float>{-1, -1, -1, -1}));
  EXPECT_EQ(static_cast<const float*>(prepared->context.output(0).data)[0], -1);
  two = 1;  // a schedule: the next run reads the next rate
  ASSERT_TRUE(prepared->context.run().ok());
  EXPECT_EQ(numbers(*prepared->session.read_variable("w")), (std::vector<float>{-2, -2, -2, -2}));
  for (const PlanInfo::Step& step : prepared->context.plan()->steps)
    for (const PlanInfo::Operand& in : step.inputs)
      EXPECT_FALSE(in.at_enqueue && step.name == "next") << "nothing is read when it is enqueued";
}

// Shows values that are read when work is enqueued, whose changes a replay of the enqueued work would miss; a constant's bytes can be read
// by the host in prepare, wherever it is.
TEST_P(DeviceVariables, WhatIsReadWhenAStepIsEnqueuedIsShown) {
  if (kind().name != std::string("bare")) GTEST_SKIP() << "an operator of bare";
  NetBuilder b("shifted");
  const ValueId x = b.input("x", DType::f32, Shape{4}), k = b.input("k", DType::f32, Shape{});
  b.output(on(b, device_name(0), b.add1("Shift", "y", {x, k, b.constant("table", whole_numbers(Shape{8}, 8, 1))}, {}, "bare")));
  const Runtime runtime = device_runtime();
  auto prepared = prepare(runtime, b.finish(), silent());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const float ones[4] = {1, 1, 1, 1}, ten = 10;
  ASSERT_TRUE(prepared->context.bind_input(0, ones).ok());
  ASSERT_TRUE(prepared->context.bind_input(1, &ten).ok());
  const Status status = prepared->context.run();
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(static_cast<const float*>(prepared->context.output(0).data)[3], 13);  // 1 + 10 + 2
  for (const PlanInfo::Step& step : prepared->context.plan()->steps) {
    if (step.name != "y") continue;
    EXPECT_FALSE(step.inputs[0].at_enqueue);
    EXPECT_TRUE(step.inputs[1].at_enqueue);
    EXPECT_FALSE(step.inputs[2].at_enqueue);
  }
}

// Gives the same numbers as on the host, for each step and seed; the counter is counted on the device, and is never copied to the host.
TEST_P(DeviceVariables, RandomNumbersAreDrawnWhereTheNodeIs) {
  const auto drawn = [&](const std::string& device) {
    NetBuilder b("draws");
    const ValueId x = b.input("x", DType::f32, Shape{70});
    const int64_t zero = 0, one = 1;
    const ValueId step = b.variable("step", Blob::copy_of(DType::i64, Shape{}, &zero));
    const ValueId next =
        on(b, device, b.add1("AccumulateAdd", "next", {step, b.constant("one", Blob::copy_of(DType::i64, Shape{}, &one))}, {}, "heddle"));
    b.updates(next, step);
    b.net().step_counter = b.net()[step].variable;
    b.output(on(b, device, b.add1("RandomUniformLike", "noise", {x}, {{"low", -1.0}, {"high", 3.0}})));
    const Runtime runtime = device_runtime();
    auto prepared = prepare(runtime, b.finish(), silent());
    EXPECT_TRUE(prepared.ok()) << prepared.status().text();
    const std::vector<float> zeros(70, 0);
    std::vector<std::vector<char>> runs;
    if (!prepared.ok() || !prepared->context.bind_input(0, zeros.data()).ok()) return runs;
    for (int i = 0; i < 4; ++i) {
      RunOptions options;
      options.seed = i < 3 ? 5 : 6;
      const Status status = prepared->context.run(options);
      EXPECT_TRUE(status.ok()) << status.text();
      runs.push_back(bytes(prepared->context.output(0)));
    }
    return runs;
  };
  const auto there = drawn(device_name(0)), here = drawn("cpu:0");
  EXPECT_EQ(there, here);
  EXPECT_EQ((std::set<std::vector<char>>(there.begin(), there.end()).size()), 4u);
}

TEST_P(DeviceVariables, AStepCounterThatIsCountedThereIsReadHereWhereAStepDrawsHere) {
  NetBuilder b("steps");
  const ValueId x = b.input("x", DType::f32, Shape{64});
  const int64_t zero = 0, one = 1;
  const ValueId step = b.variable("step", Blob::copy_of(DType::i64, Shape{}, &zero));
  const ValueId next =
      on(b, device_name(0),
         b.add1("AccumulateAdd", "next", {step, b.constant("one", Blob::copy_of(DType::i64, Shape{}, &one))}, {}, "heddle"));
  b.updates(next, step);
  b.net().step_counter = b.net()[step].variable;
  b.output(b.add1("RandomUniformLike", "noise", {x}));
  const Runtime runtime = device_runtime();
  auto prepared = prepare(runtime, b.finish(), silent());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const std::vector<float> zeros(64, 0);
  ASSERT_TRUE(prepared->context.bind_input(0, zeros.data()).ok());
  std::set<std::vector<char>> drawn;
  for (int i = 0; i < 4; ++i) {
    const Status status = prepared->context.run();
    ASSERT_TRUE(status.ok()) << status.text();
    drawn.insert(bytes(prepared->context.output(0)));
  }
  EXPECT_EQ(drawn.size(), 4u) << "each step draws other numbers";
}

TEST_P(DeviceVariables, UpdatesOnTwoDevicesAreRefused) {
  HEDDLE_DEVICES_NEEDED(2);
  NetBuilder b("torn");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  const ValueId w = b.variable("w", whole_numbers(Shape{4}, 7, 0));
  const ValueId once = on(b, device_name(0), b.add1("AccumulateAdd", "once", {w, x}, {}, "heddle"));
  b.updates(once, w);
  const ValueId twice = on(b, device_name(1), b.add1("AccumulateAdd", "twice", {once, x}, {}, "heddle"));
  b.updates(twice, once);
  b.output(twice);
  const Runtime runtime = device_runtime();
  const Status status = prepare(runtime, b.finish(), silent()).status();
  EXPECT_EQ(status.code(), Code::wrong_device) << status.text();
  EXPECT_EQ(status.diagnostic().node, "twice");
}

}  // namespace
}  // namespace heddle
