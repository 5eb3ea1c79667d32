// Nets spread at random over the host and all devices of a kind give the bits of the serial run on the host, whatever the delays.
//
// HEDDLE_LONG_TESTS=1 tries 500 seeds of delays for each net (tools/soak.sh --spread).
#include <cstdlib>
#include <random>

#include "random_nets.h"
#include "simulated.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(Spread);

const uint64_t delay_seeds = std::getenv("HEDDLE_LONG_TESTS") ? 500 : 5;

// Places every operator at random on the host or on one of the devices.
Net spread(Net net, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (Node& node : net.nodes) {
    const auto place = random() % static_cast<uint64_t>(kind().devices + 1);
    if (place > 0) node.device = device_name(static_cast<int>(place) - 1);
  }
  return net;
}

std::vector<std::vector<char>> two_runs(const Runtime& runtime, Net net, const SessionOptions& options) {
  auto prepared = prepare(runtime, std::move(net), options);
  EXPECT_TRUE(prepared.ok()) << prepared.status().text();
  if (!prepared.ok()) return {};
  std::vector<std::vector<char>> all;
  for (int run = 0; run < 2; ++run) {
    const Status status = prepared->context.run();
    EXPECT_TRUE(status.ok()) << status.text();
    for (std::vector<char>& output : outputs(prepared->context)) all.push_back(std::move(output));
  }
  return all;
}

TEST_P(Spread, AnywhereInAnyLegalOrderTheBitsAreThoseOfTheHost) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  const Runtime serial = device_runtime();
  for (uint64_t net_seed = 1; net_seed <= 20; ++net_seed) {
    const Net net = random_net(net_seed);
    const std::vector<std::vector<char>> right = two_runs(serial, net, {});
    for (uint64_t seed = 1; seed <= delay_seeds; ++seed) {
      SCOPED_TRACE(::testing::Message() << "net " << net_seed << ", seed " << seed);
      const DeviceSetting delays("SEED", std::to_string(seed));
      const Runtime runtime = device_runtime(2);
      ASSERT_EQ(two_runs(runtime, spread(net, net_seed * 100 + seed), silent(1 + static_cast<int>(seed % 3))), right);
    }
  }
}

TEST_P(Spread, AProgramTakesTheSameBytesOnEachOfEightDevices) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  const DeviceSetting eight("DEVICES", "8");
  const Runtime runtime = device_runtime(2);
  Net net = random_net(uint64_t{3});
  std::vector<Prepared> all;
  for (int i = 0; i < 8; ++i) {
    for (Node& node : net.nodes) node.device = device_name(i);
    auto prepared = prepare(runtime, net, silent(2));
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    ASSERT_TRUE(prepared->context.run().ok());
    all.push_back(std::move(*prepared));
  }
  int64_t free = 0, total = 0, taken = -1;
  for (Prepared& prepared : all) {
    const PlanDevice& device = prepared.plan().devices[0];
    EXPECT_EQ(device.memory.peak_bytes, all[0].plan().devices[0].memory.peak_bytes);
    ASSERT_TRUE(device.device->memory_info(&free, &total).ok());
    if (taken < 0) taken = total - free;
    EXPECT_EQ(total - free, taken) << device.device->name();
    EXPECT_EQ(outputs(prepared.context), outputs(all[0].context));
  }
}

// Compares the copies of one run, as counted by the devices.
TEST_P(Spread, TheCopiesCountedAreThoseOfThePlan) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Runtime runtime = device_runtime(2);
    auto prepared = prepare(runtime, spread(random_net(seed), seed), silent(2));
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    const auto copies = [&] { return counted(prepared->plan(), &sim_counts::copies); };
    for (int run = 0; run < 2; ++run) ASSERT_TRUE(prepared->context.run().ok());
    const uint64_t before = copies();
    ASSERT_TRUE(prepared->context.run().ok());
    EXPECT_EQ(copies() - before, prepared->plan().copies.size());
    EXPECT_GT(prepared->plan().copies.size(), 0u);
  }
}

}  // namespace
}  // namespace heddle
