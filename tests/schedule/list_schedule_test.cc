#include "schedule/list_schedule.h"

#include <gtest/gtest.h>

#include "schedule/scheduler_support.h"
#include "schedule/step_table.h"

namespace heddle {
namespace {

struct Problem {
  explicit Problem(const testing::TestNet& net) : table(net.graph()) {}
  double time(uint32_t threads, const ScheduleOverheads& overheads = {}) {
    std::vector<float> rank(cost.size());
    remaining_paths(table.schedule_graph(), cost.data(), rank.data());
    return simulate_schedule(table.schedule_graph(), cost.data(), rank.data(), tiles.empty() ? nullptr : tiles.data(), threads, overheads,
                             workspace);
  }
  StepTable table;
  std::vector<float> cost;
  std::vector<int64_t> tiles;
  ScheduleWorkspace workspace;
};

const auto nothing = [](int64_t, int64_t) { return HEDDLE_OK; };

// A fork of branches of 3, 6, 9 and 4 steps and a join: 24 steps, at best 1 + 11 + 1 on two threads.
testing::TestNet inception_block() {
  testing::TestNet net;
  std::vector<uint32_t> ends;
  const uint32_t fork = net.add({}, nothing);
  for (const int length : {3, 6, 9, 4}) {
    uint32_t last = fork;
    for (int i = 0; i < length; ++i) last = net.add({last}, nothing);
    ends.push_back(last);
  }
  net.add(ends, nothing);
  net.build();
  return net;
}

TEST(ListSchedule, LongestPathFirstFindsTheBestOfABlock) {
  Problem problem(inception_block());
  problem.cost.assign(24, 10.0F);
  EXPECT_EQ(problem.time(1), 240);
  EXPECT_EQ(problem.time(2), 130);
  EXPECT_EQ(problem.time(8), 110);
}

TEST(ListSchedule, OverheadsCount) {
  Problem problem(inception_block());
  problem.cost.assign(24, 10.0F);
  EXPECT_EQ(problem.time(1, {.step_ns = 1}), 264);
  EXPECT_EQ(problem.time(1, {.run_ns = 7}), 247);
  EXPECT_GT(problem.time(2, {.handover_ns = 5}), 130);
  // No step is worth handing over: two threads take as long as one.
  EXPECT_EQ(problem.time(2, {.small_ns = 100}), 240);
}

TEST(ListSchedule, IdleThreadsShareTiles) {
  testing::TestNet net;
  net.add({}, nothing);
  net.add({0}, nothing);
  net.build();
  Problem problem(net);
  problem.cost = {100, 100};
  problem.tiles = {1, 8};
  EXPECT_EQ(problem.time(2), 150);
  EXPECT_EQ(problem.time(4), 125);
  EXPECT_EQ(problem.time(2, {.split_ns = 10}), 160);
}

}  // namespace
}  // namespace heddle
