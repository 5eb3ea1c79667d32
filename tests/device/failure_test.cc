// What goes wrong on devices: said with the operator's name, nothing left in flight, and the next run works.
#include <thread>

#include "device_support.h"

namespace heddle {
namespace {

using namespace testing_devices;

// x -> Relu -> Fault -> Add with the host's part -> y; other work on the same stream before and behind.
Net faulty_net(int64_t later, int64_t times) {
  NetBuilder b("faulty");
  const ValueId x = b.input("x", DType::f32, Shape{32});
  const std::string device = "proto:0";
  const ValueId first = on(b, device, b.add1("Relu", "first", {x}));
  const ValueId fault = on(b, device, b.add1("Fault", "fault", {first}, {{"later", later}, {"times", times}}, "proto"));
  const ValueId host = b.add1("Neg", "host", {first});
  const ValueId last = on(b, device, b.add1("Add", "last", {fault, host}));
  b.output(last);
  b.output(b.add1("Neg", "after", {last}));
  return b.finish();
}

TEST(DeviceFailure, AnErrorThatArrivesLateNamesItsOperator) {
  for (const int streams : {1, 2, 3}) {
    const Runtime runtime = proto_runtime(2);
    auto prepared = prepare(runtime, faulty_net(1, 2), silent(streams));
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    for (int i = 0; i < 2; ++i) {
      const Status status = prepared->context.run();
      ASSERT_EQ(status.code(), Code::device_failed) << status.text();
      EXPECT_EQ(status.diagnostic().node, "fault") << status.text();
      EXPECT_EQ(status.diagnostic().type, "proto::Fault");
      EXPECT_EQ(exit_status(status.code()), 1);
      EXPECT_NE(status.text().find("an address was out of range"), std::string::npos) << status.text();
      EXPECT_NE(status.text().find("proto:0"), std::string::npos) << status.text();
      EXPECT_TRUE(status.diagnostic().attached.empty()) << status.text();
    }
    EXPECT_TRUE(prepared->context.run().ok()) << "the third time it works";
    EXPECT_EQ(bytes(prepared->context.output(0)), std::vector<char>(32 * sizeof(float), 0)) << "r + -r";
  }
}

TEST(DeviceFailure, ALaunchThatFailsEndsTheRun) {
  const Runtime runtime = proto_runtime(1);
  auto prepared = prepare(runtime, faulty_net(0, 1), silent(2));
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const Status status = prepared->context.run();
  ASSERT_EQ(status.code(), Code::device_failed) << status.text();
  EXPECT_EQ(status.diagnostic().node, "fault");
  EXPECT_NE(status.text().find("the launch failed"), std::string::npos) << status.text();
  EXPECT_TRUE(prepared->context.run().ok());
}

TEST(DeviceFailure, ADeviceThatDoesNotKnowNamesAllItMayBe) {
  const Setting forgetful("HEDDLE_PROTO_FORGETFUL", "1");
  const Runtime runtime = proto_runtime(1);
  auto prepared = prepare(runtime, faulty_net(1, 1), silent());
  ASSERT_TRUE(prepared.ok());
  const Status status = prepared->context.run();
  ASSERT_EQ(status.code(), Code::device_failed) << status.text();
  EXPECT_NE(status.text().find("does not say which of"), std::string::npos) << status.text();
  EXPECT_NE(status.text().find("\"fault\""), std::string::npos) << status.text();
  EXPECT_TRUE(prepared->context.run().ok());
}

TEST(DeviceFailure, CancelledInTheMiddleNothingStaysInFlight) {
  const Net net = mixed_net();
  const Runtime plain = proto_runtime();
  auto right = prepare(plain, on_the_host(net), {});
  ASSERT_TRUE(right.ok() && right->context.run().ok());
  int cancelled = 0;
  for (int seed = 1; seed <= 12; ++seed) {
    const Setting delays("HEDDLE_PROTO_DELAY_SEED", std::to_string(seed));
    const Runtime runtime = proto_runtime(1 + seed % 3);
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
    ASSERT_TRUE(prepared->context.run().ok());
    EXPECT_EQ(outputs(prepared->context), outputs(right->context)) << "seed " << seed;
  }
  EXPECT_GT(cancelled, 0) << "nobody was cancelled: the delays are too short";
}

TEST(DeviceFailure, DeadlinesEndRunsOnDevices) {
  const Setting delays("HEDDLE_PROTO_DELAY_SEED", "3");
  const Runtime runtime = proto_runtime(1);
  auto prepared = prepare(runtime, mixed_net(), silent());
  ASSERT_TRUE(prepared.ok());
  RunOptions hurry;
  hurry.deadline_ns = 1;
  EXPECT_EQ(prepared->context.run(hurry).code(), Code::deadline_exceeded);
  EXPECT_TRUE(prepared->context.run().ok());
}

Status why_not(const Net& net, const SessionOptions& options = silent()) {
  const Runtime runtime = proto_runtime();
  return prepare(runtime, net, options).status();
}

TEST(DeviceFailure, ADeviceThatDoesNotOpenSaysWhy) {
  const Setting broken("HEDDLE_PROTO_BROKEN", "1");
  const Status status = why_not(mixed_net());
  EXPECT_EQ(status.code(), Code::device_failed) << status.text();
  EXPECT_EQ(exit_status(status.code()), 1);
  EXPECT_NE(status.text().find("HEDDLE_PROTO_BROKEN is set"), std::string::npos) << status.text();
}

TEST(DeviceFailure, DevicesThatAreNotThereAreNamedWithTheReason) {
  {
    const Setting none("HEDDLE_PROTO_DEVICES", "0");
    const Status status = why_not(mixed_net());
    EXPECT_EQ(status.code(), Code::no_such_device) << status.text();
    EXPECT_EQ(exit_status(status.code()), 1);
    EXPECT_NE(status.text().find("HEDDLE_PROTO_DEVICES is 0"), std::string::npos) << status.text();
  }
  EXPECT_EQ(why_not(mixed_net("proto:2")).code(), Code::no_such_device);
  EXPECT_EQ(why_not(mixed_net("proto:first")).code(), Code::no_such_device);
  EXPECT_EQ(why_not(mixed_net("cpu:1")).code(), Code::no_such_device);
  const Status unknown = why_not(mixed_net("loom"));
  EXPECT_EQ(unknown.code(), Code::no_such_device);
  EXPECT_NE(unknown.text().find("no loaded plugin brings devices of kind"), std::string::npos) << unknown.text();
}

TEST(DeviceFailure, ADeviceWithoutMemoryIsOutOfMemory) {
  // Enough for the constant, not for the arena beside it.
  const Setting little("HEDDLE_PROTO_MEMORY", "4096");
  NetBuilder b("large");
  const ValueId x = b.input("x", DType::f32, Shape{4096});
  b.output(on(b, "proto:0", b.add1("Relu", "y", {x})));
  const Status status = why_not(b.finish());
  EXPECT_EQ(status.code(), Code::out_of_memory) << status.text();
  EXPECT_EQ(exit_status(status.code()), 4);
  EXPECT_NE(status.text().find("bytes asked for"), std::string::npos) << status.text();
}

TEST(DeviceFailure, TheMemoryLimitCountsForEachDevice) {
  SessionOptions options = silent();
  options.memory_limit = 2048;
  NetBuilder b("large");
  const ValueId x = b.input("x", DType::f32, Shape{1024});
  b.output(on(b, "proto:0", b.add1("Relu", "y", {x})));
  const Status status = why_not(b.finish(), options);
  EXPECT_EQ(status.code(), Code::limit_exceeded) << status.text();
}

}  // namespace
}  // namespace heddle
