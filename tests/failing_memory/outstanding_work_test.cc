// Outstanding work is never lost for want of memory: with each allocation of a run that is given up failing in turn, the memory that it
// works in stays busy for others until the device answers.
#include <gtest/gtest.h>

#include <algorithm>

#include "device/device_support.h"
#include "failing_allocations.h"

namespace heddle::testing_memory {
namespace {

using namespace testing_devices;

TEST(FailingMemoryOfOutstandingWork, KeepsWhatItUsesBusy) {
  const auto& kinds = device_kinds();
  const auto sim = std::find_if(kinds.begin(), kinds.end(), [](const DeviceKind& one) { return one.name == "sim"; });
  ASSERT_NE(sim, kinds.end());
  kind_under_test() = &*sim;
  const Gate gate;
  RuntimeOptions options;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/sim.so"};
  options.default_plugins = false;
  options.threads = 2;
  auto runtime = Runtime::create(options);
  ASSERT_TRUE(runtime.ok()) << runtime.status().text();
  auto one = runtime->open(mixed_net(), silent(2)), two = runtime->open(on_the_host(mixed_net()), silent());
  auto shared = share_memory(one, two);
  ASSERT_TRUE(shared.ok()) << shared.status().text();
  Context *const first = &shared->first, *const second = &shared->second;
  note_libraries();
  RunOptions soon;
  soon.deadline_ns = 20'000'000;
  int left = 0;
  bool failed = true;
  for (int64_t n = 1; failed; ++n) {
    SCOPED_TRACE("allocation " + std::to_string(n));
    gate.close();
    FailingAllocation failing(n);
    Status status = first->run(soon);
    failed = failing.stop();
    EXPECT_FALSE(status.ok());
    if (Internals::execution(*first).left_work()) {
      ++left;
      EXPECT_EQ(second->run().code(), Code::busy);
      EXPECT_EQ(first->run().code(), Code::busy);
      EXPECT_GE(Internals::of(*runtime).outstanding->items(), 1u);
    }
    gate.open();
    do status = first->run();
    while (status.code() == Code::busy);
    EXPECT_TRUE(status.ok()) << status.text();
    EXPECT_TRUE(second->run().ok());
    EXPECT_EQ(Internals::of(*runtime).outstanding->items(), 0u);
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GE(left, 2);  // without a failed allocation, and with one
}

}  // namespace
}  // namespace heddle::testing_memory
