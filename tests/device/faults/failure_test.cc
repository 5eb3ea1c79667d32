// Failures on devices: the error names the operator, nothing is left in flight, and the next run works.
#include <atomic>
#include <thread>

#include "device/device_support.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(DeviceFailure);

// x -> Relu -> fault -> Add with the host's part -> y; there is other work on the same stream before and after.
Net faulty_net(const FaultyStep& faulty) {
  NetBuilder b("faulty");
  const ValueId x = b.input("x", DType::f32, Shape{32});
  const std::string device = device_name(0);
  const ValueId first = on(b, device, b.add1("Relu", "first", {x}));
  const ValueId fault = faulty.add(b, first);
  const ValueId host = b.add1("Neg", "host", {first});
  const ValueId last = on(b, device, b.add1("Add", "last", {fault, host}));
  b.output(last);
  b.output(b.add1("Neg", "after", {last}));
  return b.finish();
}

TEST_P(DeviceFailure, AnErrorThatArrivesLateNamesItsOperator) {
  HEDDLE_DEVICE_NEEDS(has_faults());
  for (const int streams : {1, 2, 3}) {
    const FaultyStep faulty(FaultyStep::When::later, 2);
    const Runtime runtime = device_runtime(2);
    auto prepared = prepare(runtime, faulty_net(faulty), silent(streams));
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    for (int i = 0; i < 2; ++i) {
      const Status status = prepared->context.run();
      ASSERT_EQ(status.code(), Code::device_failed) << status.text();
      EXPECT_EQ(status.diagnostic().node, "fault") << status.text();
      EXPECT_EQ(status.diagnostic().type, FaultyStep::type());
      EXPECT_EQ(exit_status(status.code()), 1);
      EXPECT_NE(status.text().find("an address was out of range"), std::string::npos) << status.text();
      EXPECT_NE(status.text().find(device_name(0)), std::string::npos) << status.text();
      EXPECT_TRUE(status.diagnostic().attached.empty()) << status.text();
    }
    EXPECT_TRUE(prepared->context.run().ok()) << "the third time it works";
    EXPECT_EQ(bytes(prepared->context.output(0)), std::vector<char>(32 * sizeof(float), 0)) << "r + -r";
  }
}

TEST_P(DeviceFailure, ALaunchThatFailsEndsTheRun) {
  HEDDLE_DEVICE_NEEDS(has_faults());
  const FaultyStep faulty(FaultyStep::When::at_launch, 1);
  const Runtime runtime = device_runtime(1);
  auto prepared = prepare(runtime, faulty_net(faulty), silent(2));
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const Status status = prepared->context.run();
  ASSERT_EQ(status.code(), Code::device_failed) << status.text();
  EXPECT_EQ(status.diagnostic().node, "fault");
  EXPECT_NE(status.text().find("the launch failed"), std::string::npos) << status.text();
  EXPECT_TRUE(prepared->context.run().ok());
}

TEST_P(DeviceFailure, ADeviceThatDoesNotKnowNamesAllItMayBe) {
  HEDDLE_DEVICE_NEEDS(has_faults());
  HEDDLE_DEVICE_NEEDS(misbehaves);
  const DeviceSetting forgetful("FORGETFUL", "1");
  const FaultyStep faulty(FaultyStep::When::later, 1);
  const Runtime runtime = device_runtime(1);
  auto prepared = prepare(runtime, faulty_net(faulty), silent());
  ASSERT_TRUE(prepared.ok());
  const Status status = prepared->context.run();
  ASSERT_EQ(status.code(), Code::device_failed) << status.text();
  EXPECT_NE(status.text().find("does not say which of"), std::string::npos) << status.text();
  EXPECT_NE(status.text().find("\"fault\""), std::string::npos) << status.text();
  EXPECT_TRUE(prepared->context.run().ok());
}

TEST_P(DeviceFailure, CancelledInTheMiddleNothingStaysInFlight) {
  HEDDLE_DEVICE_NEEDS(has_settings);
  const Net net = mixed_net();
  const Runtime plain = device_runtime();
  auto right = prepare(plain, on_the_host(net), {});
  ASSERT_TRUE(right.ok() && right->context.run().ok());
  int cancelled = 0;
  for (int seed = 1; seed <= 12; ++seed) {
    const DeviceSetting delays("SEED", std::to_string(seed));
    const Runtime runtime = device_runtime(1 + seed % 3);
    auto prepared = prepare(runtime, net, silent(1 + seed % 2));
    ASSERT_TRUE(prepared.ok());
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(40 * seed));
      prepared->context.cancel();
    });
    const Status status = prepared->context.run();
    canceller.join();
    EXPECT_TRUE(status.ok() || status.code() == Code::cancelled) << status.text();
    cancelled += status.ok() ? 0 : 1;
    const Status after = prepared->context.run();
    ASSERT_TRUE(after.ok()) << after.text();
    EXPECT_EQ(outputs(prepared->context), outputs(right->context)) << "seed " << seed;
  }
  if (!kind().can_be_held) {
    EXPECT_GT(cancelled, 0) << "nobody was cancelled: the delays are too short";
    return;
  }
  const Gate gate;
  const Runtime runtime = device_runtime(2);
  auto prepared = prepare(runtime, net, silent());
  ASSERT_TRUE(prepared.ok());
  gate.close();
  std::atomic<bool> over{false};
  std::thread canceller([&] {
    while (!over) {  // a cancellation before the run has begun changes nothing
      prepared->context.cancel();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  Status status = prepared->context.run();
  over = true;
  canceller.join();
  EXPECT_EQ(status.code(), Code::cancelled) << status.text();
  gate.open();
  do {
    status = prepared->context.run();
  } while (status.code() == Code::busy);  // until the device has answered
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(outputs(prepared->context), outputs(right->context));
}

// Both contexts use the same streams.
TEST_P(DeviceFailure, CancellingOneContextLeavesAnotherInItsMemoryAlone) {
  HEDDLE_DEVICE_NEEDS(can_be_held);
  const Gate gate;
  const Runtime runtime = device_runtime(2);
  auto session = runtime.open(mixed_net(), silent());
  ASSERT_TRUE(session.ok()) << session.status().text();
  const SharedMemory memory;
  auto idle = session->prepare_on(memory), runs = session->prepare_on(memory);
  ASSERT_TRUE(idle.ok() && runs.ok());
  const std::vector<float> x(8 * 16, 1);
  ASSERT_TRUE(idle->bind_input(0, x.data()).ok() && runs->bind_input(0, x.data()).ok());
  ASSERT_TRUE(idle->run().ok());
  gate.close();
  std::atomic<bool> over{false};
  Status status;
  std::thread runner([&] {
    status = runs->run();
    over = true;
  });
  for (int i = 0; i < 50; ++i) {
    idle->cancel();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  EXPECT_FALSE(over);
  gate.open();
  runner.join();
  EXPECT_TRUE(status.ok()) << status.text();
}

// Whenever the cancellation comes, all updates are made or none, and the run's status tells which.
TEST_P(DeviceFailure, ACancelledRunHasMadeItsUpdatesOrNone) {
  NetBuilder b("updates");
  const std::string device = device_name(0);
  ValueId x = b.input("x", DType::f32, Shape{4});
  const std::vector<float> zeros(4);
  std::vector<std::string> names;
  for (int i = 0; i < 4; ++i) {
    names.push_back("w" + std::to_string(i));
    const ValueId w = b.variable(names.back(), Blob::copy_of(DType::f32, Shape{4}, zeros.data()));
    const ValueId change = on(b, device, b.add1("Relu", "change" + std::to_string(i), {x}));
    b.updates(on(b, device, b.add1("AccumulateAdd", "next" + std::to_string(i), {w, change}, {}, "heddle")), w);
  }
  b.output(on(b, device, b.add1("Relu", "y", {x})));
  const Net net = b.finish();
  for (const int threads : {1, 2}) {
    const Runtime runtime = device_runtime(threads);
    auto prepared = prepare(runtime, net, silent(2));
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    const std::vector<float> ones(4, 1);
    ASSERT_TRUE(prepared->context.bind_input(0, ones.data()).ok());
    std::atomic<bool> over{false};
    std::thread canceller([&] {
      for (uint32_t i = 1; !over; i = i * 1664525u + 1013904223u) {
        prepared->context.cancel();
        std::this_thread::sleep_for(std::chrono::microseconds(i >> 24));
      }
    });
    float made = 0;
    for (int run = 0; run < 200; ++run) {
      const Status status = prepared->context.run();
      EXPECT_TRUE(status.ok() || status.code() == Code::cancelled) << status.text();
      made += status.ok() ? 1 : 0;
      for (const std::string& name : names) {
        auto w = prepared->session.read_variable(name);
        EXPECT_EQ(w.ok() ? *static_cast<const float*>(w->data()) : -1, made)
            << name << " behind run " << run << ", which was " << status.text();
      }
    }
    over = true;
    canceller.join();
    ASSERT_TRUE(prepared->context.run().ok());
  }
}

TEST_P(DeviceFailure, DeadlinesEndRunsOnDevices) {
  const DeviceSetting delays("SEED", "3");
  const Runtime runtime = device_runtime(1);
  auto prepared = prepare(runtime, mixed_net(), silent());
  ASSERT_TRUE(prepared.ok());
  RunOptions hurry;
  hurry.deadline_ns = 1;
  EXPECT_EQ(prepared->context.run(hurry).code(), Code::deadline_exceeded);
  EXPECT_TRUE(prepared->context.run().ok());
}

Status why_not(const Net& net, const SessionOptions& options = silent()) {
  const Runtime runtime = device_runtime();
  return prepare(runtime, net, options).status();
}

TEST_P(DeviceFailure, ADeviceThatDoesNotOpenSaysWhy) {
  HEDDLE_DEVICE_NEEDS(misbehaves);
  const DeviceSetting broken("BROKEN", "1");
  const Status status = why_not(mixed_net());
  EXPECT_EQ(status.code(), Code::device_failed) << status.text();
  EXPECT_EQ(exit_status(status.code()), 1);
  EXPECT_NE(status.text().find(broken.name() + " is set"), std::string::npos) << status.text();
}

TEST_P(DeviceFailure, DevicesThatAreNotThereAreNamedWithTheReason) {
  HEDDLE_DEVICE_NEEDS(has_settings);
  {
    const DeviceSetting none("DEVICES", "0");
    const Status status = why_not(mixed_net());
    EXPECT_EQ(status.code(), Code::no_such_device) << status.text();
    EXPECT_EQ(exit_status(status.code()), 1);
    EXPECT_NE(status.text().find(said_of_none(none)), std::string::npos) << status.text();
  }
  EXPECT_EQ(why_not(mixed_net(device_name(2))).code(), Code::no_such_device);
  EXPECT_EQ(why_not(mixed_net(kind().name + ":first")).code(), Code::no_such_device);
  EXPECT_EQ(why_not(mixed_net("cpu:1")).code(), Code::no_such_device);
  const Status unknown = why_not(mixed_net("loom"));
  EXPECT_EQ(unknown.code(), Code::no_such_device);
  EXPECT_NE(unknown.text().find("no loaded plugin brings devices of kind"), std::string::npos) << unknown.text();
}

TEST_P(DeviceFailure, ADeviceWithoutMemoryIsOutOfMemory) {
  HEDDLE_DEVICE_NEEDS(has_settings);
  // The memory suffices for the constant, but not for the arena too.
  const DeviceSetting little("MEMORY", "4096");
  NetBuilder b("large");
  const ValueId x = b.input("x", DType::f32, Shape{4096});
  b.output(on(b, device_name(0), b.add1("Relu", "y", {x})));
  const Status status = why_not(b.finish());
  EXPECT_EQ(status.code(), Code::out_of_memory) << status.text();
  EXPECT_EQ(exit_status(status.code()), 4);
  EXPECT_NE(status.text().find("bytes asked for"), std::string::npos) << status.text();
}

TEST_P(DeviceFailure, TheMemoryLimitCountsForEachDevice) {
  SessionOptions options = silent();
  options.memory_limit = 2048;
  NetBuilder b("large");
  const ValueId x = b.input("x", DType::f32, Shape{1024});
  b.output(on(b, device_name(0), b.add1("Relu", "y", {x})));
  const Status status = why_not(b.finish(), options);
  EXPECT_EQ(status.code(), Code::limit_exceeded) << status.text();
}

}  // namespace
}  // namespace heddle
