// Tests when a run enters a device (HEDDLE_WORK_ENTERS): once each time that a thread turns to it, until the thread calls something else
// there. The simulated device refuses work of threads that did not enter it, or have called another device since.
#include "simulated.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(DeviceEntering);

// Six products, each followed by a Relu, on `devices` in turn.
Net turns(const std::vector<std::string>& devices) {
  NetBuilder b("turns");
  ValueId x = b.input("x", DType::f32, Shape{16, 16});
  const ValueId w = b.constant("w", whole_numbers(Shape{16, 16}, 1, 3));
  for (int i = 0; i < 6; ++i) {
    const std::string& device = devices[static_cast<size_t>(i) % devices.size()];
    x = on(b, device, b.add1("MatMul", "product" + std::to_string(i), {x, w}));
    x = on(b, device, b.add1("Relu", "relu" + std::to_string(i), {x}));
  }
  b.output(x);
  return b.finish();
}

struct Counted {
  uint64_t works = 0, entries = 0;
};
Counted run_counted(Prepared& prepared) {
  const auto now = [&] { return Counted{counted(prepared.plan(), &sim_counts::works), counted(prepared.plan(), &sim_counts::entries)}; };
  const Counted before = now();
  const Status status = prepared.context.run();
  EXPECT_TRUE(status.ok()) << status.text();
  return {now().works - before.works, now().entries - before.entries};
}

TEST_P(DeviceEntering, AThreadEntersTheDeviceOnceInARun) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  auto prepared = prepare(device_runtime(), turns({device_name(0)}), silent());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  for (int run = 0; run < 3; ++run) {
    const Counted made = run_counted(*prepared);
    EXPECT_GE(made.works, 8u);  // a product with its Relu is one work, and inputs and outputs are copied
    EXPECT_EQ(made.entries, 1u);
  }
}

TEST_P(DeviceEntering, AThreadThatComesFromAnotherDeviceEnters) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  auto prepared = prepare(device_runtime(), turns({device_name(0), device_name(1)}), silent());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const Counted made = run_counted(*prepared);
  EXPECT_GE(made.entries, 6u);
  EXPECT_LT(made.entries, made.works);
}

// It does so before the embedding program's code continues on the thread.
TEST_P(DeviceEntering, AThreadLeavesTheDeviceThatItEntered) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  const Runtime runtime = device_runtime();
  auto one = prepare(runtime, turns({device_name(0)}), silent()),
       both = prepare(runtime, turns({device_name(0), device_name(1)}), silent());
  ASSERT_TRUE(one.ok() && both.ok()) << one.status().text() << both.status().text();
  for (Prepared* prepared : {&*one, &*both}) {
    const uint64_t before = counted(prepared->plan(), &sim_counts::departures);
    for (int run = 0; run < 3; ++run) ASSERT_TRUE(prepared->context.run().ok());
    EXPECT_EQ(counted(prepared->plan(), &sim_counts::departures) - before, 3u) << "once a run, by the thread that ran";
  }
}

// The host's kernels may call any device.
TEST_P(DeviceEntering, WhereTheHostWorksTooEveryWorkEnters) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  auto prepared = prepare(device_runtime(), mixed_net(), silent());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const Counted made = run_counted(*prepared);
  EXPECT_GT(made.works, 0u);
  EXPECT_EQ(made.entries, made.works);
}

TEST_P(DeviceEntering, WhoWatchesTheStepsMayCallOtherDevices) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  auto prepared = prepare(device_runtime(), turns({device_name(0)}), silent());
  auto other = prepare(device_runtime(), turns({device_name(1)}), silent());
  ASSERT_TRUE(prepared.ok() && other.ok()) << prepared.status().text();
  const std::function<Status(uint32_t)> seen = [&](uint32_t) {
    counted(other->plan(), &sim_counts::works);  // which makes that device the thread's current one
    return Status();
  };
  RunSettings settings;
  settings.observer = &seen;
  const Status status = Internals::execution(prepared->context).run(settings);
  EXPECT_TRUE(status.ok()) << status.text();
}

// The runs alternate between devices on the same threads.
TEST_P(DeviceEntering, RunsOnSeveralDevicesInTurnHaveTheHostsBits) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  for (const int threads : {1, 3}) {
    const Runtime runtime = device_runtime(threads);
    auto host = prepare(runtime, on_the_host(turns({device_name(0)})), {});
    ASSERT_TRUE(host.ok() && host->context.run().ok());
    std::vector<Prepared> all;
    for (const std::vector<std::string>& devices : {std::vector{device_name(0)}, {device_name(1)}, {device_name(0), device_name(1)}}) {
      auto prepared = prepare(runtime, turns(devices), silent(2));
      ASSERT_TRUE(prepared.ok()) << prepared.status().text();
      all.push_back(std::move(*prepared));
    }
    for (int run = 0; run < 50; ++run)
      for (Prepared& prepared : all) {
        const Status status = prepared.context.run();
        ASSERT_TRUE(status.ok()) << status.text();
        EXPECT_EQ(outputs(prepared.context), outputs(host->context));
      }
  }
}

}  // namespace
}  // namespace heddle
