// Ranks that have no memory. With allocations failing in turn while they meet, connect and run, and while one leaves, no process ends, no
// rank waits longer than its time-out, and later runs are right. A run of ranks that are connected allocates nothing. HEDDLE_LONG_TESTS=1
// fails each allocation, and not some.
#include <gtest/gtest.h>

#include <cstdlib>

#include "collectives/summing_ranks.h"
#include "failing_allocations.h"

namespace heddle::testing_memory {
namespace {

using namespace testing_collectives;

const Crew gloo = {0, false, "gloo"};
constexpr int64_t timeout_ms = 500;
const bool long_tests = std::getenv("HEDDLE_LONG_TESTS") != nullptr;

// Both run, and the n-th allocation fails. Returns whether there was one.
bool run_with(const AllRanks& ranks, int64_t n, int64_t* count = nullptr) {
  std::vector<std::thread> threads;
  FailingAllocation failing(n);
  {
    const Unwatched by_the_test;
    for (const auto& rank : ranks) threads.emplace_back([&rank] { rank->run(); });
  }
  for (std::thread& thread : threads) thread.join();
  const bool failed = failing.stop();
  if (count) *count = failing.count();
  return failed;
}

// A rank that fails may be told of the failure of an earlier run.
void expect_usable(const AllRanks& ranks) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    run_all(ranks);
    if (ranks[0]->status.ok() && ranks[1]->status.ok()) break;
  }
  for (const auto& rank : ranks) {
    ASSERT_TRUE(rank->status.ok()) << rank->status.text();
    EXPECT_EQ(rank->sum(), (std::vector<float>{2, 4}));
  }
}

void expect_error(const Status& status) {
  const Code code = status.code();
  EXPECT_TRUE(code == Code::ok || code == Code::out_of_memory || code == Code::device_failed || code == Code::cancelled ||
              code == Code::deadline_exceeded)
      << status.text();
}

TEST(FailingMemoryOfRanks, EndsTheirMeetingAndNothingElse) {
  int64_t all = 0;
  {
    const AllRanks ranks = ranks_of(gloo, "meeting", 2);
    note_libraries();
    run_with(ranks, 0, &all);
    for (const auto& rank : ranks) ASSERT_TRUE(rank->status.ok()) << rank->status.text();
  }
  ASSERT_GT(all, 100);
  const int64_t tries = long_tests ? all : 20;
  for (int64_t i = 0; i < tries && !::testing::Test::HasFailure(); ++i) {
    const int64_t n = 1 + i * all / tries;
    SCOPED_TRACE("allocation " + std::to_string(n) + " of about " + std::to_string(all));
    const AllRanks ranks = ranks_of(gloo, "meeting" + std::to_string(i), 2, timeout_ms);
    run_with(ranks, n);
    for (const auto& rank : ranks) expect_error(rank->status);
    expect_usable(ranks);
  }
}

TEST(FailingMemoryOfRanks, IsNotNeededOnceTheyAreConnected) {
  const AllRanks ranks = ranks_of(gloo, "connected", 2);
  for (int i = 0; i < 3; ++i) expect_right(ranks);
  note_libraries();
  int64_t count = -1;
  for (int i = 0; i < 5; ++i) {
    run_with(ranks, 0, &count);
    EXPECT_EQ(count, 0);
    for (const auto& rank : ranks) EXPECT_TRUE(rank->status.ok()) << rank->status.text();
  }
}

// One runs alone, and leaves at its time-out.
TEST(FailingMemoryOfRanks, EndsOneThatLeavesAndNothingElse) {
  const AllRanks ranks = ranks_of(gloo, "leaving", 2, timeout_ms);
  note_libraries();
  bool failed = true;
  for (int64_t n = 1; failed && !::testing::Test::HasFailure(); n += long_tests ? 1 : 9) {
    SCOPED_TRACE("allocation " + std::to_string(n));
    expect_usable(ranks);
    FailingAllocation failing(n);
    ranks[n % 2]->run();
    failed = failing.stop();
    EXPECT_FALSE(ranks[n % 2]->status.ok());
    expect_error(ranks[n % 2]->status);
  }
  expect_usable(ranks);
}

}  // namespace
}  // namespace heddle::testing_memory
