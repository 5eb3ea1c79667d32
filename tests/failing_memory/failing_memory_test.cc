// No exception leaves the public API: with each allocation of each call failing in turn, the call returns out-of-memory, and the same call
// on the same objects then succeeds. On the host with one thread and with two, and on a simulated device.
//
// Of calls with many allocations some are failed, chosen evenly; HEDDLE_LONG_TESTS=1 fails each of them (some minutes).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "failing_allocations.h"
#include "public_calls.h"

namespace heddle::testing_memory {
namespace {

const bool long_tests = std::getenv("HEDDLE_LONG_TESTS") != nullptr;

struct Counts {
  int64_t allocations = 0, failed = 0, did_without = 0, wrong = 0;
};

// Returns the number of the next allocation to fail after the n-th.
int64_t after(int64_t n) {
  constexpr int64_t each_up_to = 24, parts = 12;
  return long_tests || n < each_up_to ? n + 1 : n + std::max<int64_t>(1, n / parts);
}

// Counts open files, and temporary files that a replacement of a file has left.
struct Held {
  size_t descriptors = 0, files = 0;
  explicit Held(const World& world) {
    const auto open = names_in("/proc/self/fd"), beside = names_in(world.folder.path());
    descriptors = open->size();
    files =
        static_cast<size_t>(std::count_if(beside->begin(), beside->end(), [](const std::string& name) { return name.ends_with(".tmp"); }));
  }
  bool operator==(const Held&) const = default;
};

// Fails allocations of one call in turn, from the first until one run of the call has no allocation left to fail.
Counts walk(const PublicCall& call, const std::shared_ptr<World>& world) {
  Counts counts;
  const Answer undisturbed = call.ready(world)();  // also makes what the call keeps for good
  EXPECT_TRUE(undisturbed.status.ok() && undisturbed.right) << undisturbed.status.text();
  const Held before(*world);
  for (int64_t n = 1;; n = after(n)) {
    SCOPED_TRACE("allocation " + std::to_string(n));
    const Call ready = call.ready(world);
    Answer answer;
    FailingAllocation failing(n);
    try {
      answer = ready();
    } catch (...) {
      failing.stop();
      ++counts.wrong;
      ADD_FAILURE() << "an exception left the call";
    }
    const bool failed = failing.stop();
    counts.allocations = std::max(counts.allocations, failing.count());
    if (failed) {
      ++counts.failed;
      if (answer.status.ok()) ++counts.did_without;
      const bool said = answer.status.code() == Code::out_of_memory || answer.status.code() == call.also ||
                        (answer.status.ok() && (answer.right || call.plain));
      if (!said) {
        ++counts.wrong;
        ADD_FAILURE() << "answered: " << answer.status.text() << (answer.right ? "" : ", and left something wrong");
      }
    }
    // A call that succeeded, with or without the memory, is not repeated: a plugin can be unloaded once.
    const bool again = !answer.status.ok() || (failed && call.plain);
    const Answer next = again ? ready() : std::move(answer);
    if (!next.status.ok() || !next.right) {
      ++counts.wrong;
      ADD_FAILURE() << (failed ? "the next call: " : "the call: ") << next.status.text() << (next.right ? "" : ", a wrong value");
    }
    if (!failed || counts.wrong > 3) break;
  }
  const Held held(*world);
  EXPECT_TRUE(held == before) << held.descriptors << " open files and " << held.files << " temporary ones, before: " << before.descriptors
                              << " and " << before.files;
  return counts;
}

class FailingMemory : public ::testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(FailingMemory, EachCallSaysSoAndTheNextOneWorks) {
  const auto world = std::make_shared<World>(GetParam().first, GetParam().second);
  note_libraries();
  Counts all;
  const char* const only = std::getenv("HEDDLE_FAILING_CALL");  // to find a defect
  for (const PublicCall& call : public_calls()) {
    const std::string name = call.name + (call.variant.empty() ? "" : ", " + call.variant);
    if (only && name.find(only) == std::string::npos) continue;
    SCOPED_TRACE(name);
    const Counts counts = walk(call, world);
    std::printf("%-48s %6lld allocations, %6lld failed, %4lld done without\n", name.c_str(), static_cast<long long>(counts.allocations),
                static_cast<long long>(counts.failed), static_cast<long long>(counts.did_without));
    std::fflush(stdout);
    all.allocations += counts.allocations;
    all.failed += counts.failed;
    all.did_without += counts.did_without;
    all.wrong += counts.wrong;
  }
  std::printf("%s, %d threads: %zu calls, %lld allocations, %lld of them failed, %lld wrong, %lld calls did without the memory\n",
              GetParam().first, GetParam().second, public_calls().size(), static_cast<long long>(all.allocations),
              static_cast<long long>(all.failed), static_cast<long long>(all.wrong), static_cast<long long>(all.did_without));
  for (const auto& [library, count] : foreign_allocations())
    std::printf("  %lld allocations inside of %s went on\n", static_cast<long long>(count), library.c_str());
  EXPECT_EQ(all.wrong, 0);
  EXPECT_GT(all.failed, 0);
}

INSTANTIATE_TEST_SUITE_P(Everywhere, FailingMemory, ::testing::Values(std::pair("cpu:0", 1), std::pair("cpu:0", 2), std::pair("sim:0", 2)),
                         [](const auto& info) {
                           return std::string(info.param.first).substr(0, 3) + "With" + std::to_string(info.param.second) + "Threads";
                         });

// The class that fails allocations must do so, or the tests above prove nothing.
TEST(FailingAllocations, TheOneThatIsAskedForFails) {
  note_libraries();
  int thrown = 0;
  for (int64_t n = 1; n <= 4; ++n) {
    FailingAllocation failing(n);
    try {
      for (int i = 0; i < 3; ++i) delete new int(i);
    } catch (const std::bad_alloc&) {
      ++thrown;
    }
    EXPECT_EQ(failing.stop(), n <= 3) << n;
    EXPECT_EQ(failing.count(), std::min<int64_t>(n, 3));
  }
  EXPECT_EQ(thrown, 3);
}

}  // namespace
}  // namespace heddle::testing_memory
