// Steps of several tiles: each tile runs once, finish once and after all of them, and results do not depend on the split.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/threads/clock.h"
#include "schedule/scheduler_support.h"
#include "schedule/worker.h"

namespace heddle {
namespace {

using testing::Failures;
using testing::TestNet;
using testing::ThreadExecutor;

TEST(SchedulerTiles, EveryTileOnceAndFinishAfterAll) {
  ThreadExecutor executor(8);
  for (const int64_t tiles : {0, 1, 2, 3, 7, 64, 1000, 100003}) {
    for (uint64_t seed = 0; seed < 6; ++seed) {
      TestNet net;
      std::vector<uint8_t> done(static_cast<size_t>(tiles));
      std::atomic<int64_t> count{0};
      int64_t count_at_finish = -1;
      int64_t count_behind = -1;
      const uint32_t step = net.add(
          {},
          [&](int64_t begin, int64_t end) {
            for (int64_t t = begin; t < end; ++t) ++done[static_cast<size_t>(t)];
            count += end - begin;
            return HEDDLE_OK;
          },
          tiles);
      net.set_finish(step, [&] {
        count_at_finish = count_at_finish < 0 ? count.load() : -2;
        return HEDDLE_OK;
      });
      net.add({step}, [&](int64_t, int64_t) { return count_behind = count_at_finish, HEDDLE_OK; });
      net.build();
      Scheduler scheduler(net.graph(), &executor, testing::parallel(static_cast<uint32_t>(1 + seed), seed));
      RunControl control;
      scheduler.run(net.steps(), control);
      EXPECT_TRUE(scheduler.last_run_complete());
      EXPECT_EQ(count_behind, tiles);
      EXPECT_TRUE(std::all_of(done.begin(), done.end(), [](uint8_t n) { return n == 1; }));
    }
  }
}

// There are more tiles than the claims can count: they are claimed in larger units.
TEST(SchedulerTiles, BillionsOfTiles) {
  ThreadExecutor executor(3);
  TestNet net;
  constexpr int64_t tiles = (int64_t{1} << 33) + 5;
  std::atomic<int64_t> count{0};
  std::atomic<int64_t> largest{0};
  net.add(
      {},
      [&](int64_t begin, int64_t end) {
        count += end - begin;
        int64_t seen = largest;
        while (seen < end && !largest.compare_exchange_weak(seen, end)) {
        }
        return HEDDLE_OK;
      },
      tiles);
  net.build();
  Scheduler scheduler(net.graph(), &executor, testing::parallel(3, 5));
  RunControl control;
  scheduler.run(net.steps(), control);
  EXPECT_EQ(count, tiles);
  EXPECT_EQ(largest, tiles);
}

// Sums of floats, where every order of addition gives another result: partial sums by tile, combined in tile order.
TEST(SchedulerTiles, SumsAreBitIdenticalForAnySplit) {
  ThreadExecutor executor(8);
  TestNet net;
  constexpr int64_t tiles = 257;
  constexpr int layers = 6;
  std::vector<std::vector<float>> partial(layers, std::vector<float>(tiles));
  std::vector<float> sum(layers);
  for (int layer = 0; layer < layers; ++layer) {
    const std::vector<uint32_t> before = layer < 2 ? std::vector<uint32_t>{} : std::vector<uint32_t>{static_cast<uint32_t>(layer - 2)};
    const uint32_t step = net.add(
        before,
        [&, layer](int64_t begin, int64_t end) {
          const float seed = layer < 2 ? 1.0F : sum[static_cast<size_t>(layer - 2)];
          for (int64_t t = begin; t < end; ++t) {
            float x = seed;
            for (int i = 0; i < 50; ++i) x = std::sin(x * static_cast<float>(t + 1)) * 1e3F;
            partial[static_cast<size_t>(layer)][static_cast<size_t>(t)] = x;
          }
          return HEDDLE_OK;
        },
        tiles);
    net.set_finish(step, [&, layer] {
      float total = 0;
      for (const float x : partial[static_cast<size_t>(layer)]) total += x;
      sum[static_cast<size_t>(layer)] = total;
      return HEDDLE_OK;
    });
  }
  net.build();
  Scheduler serial(net.graph(), nullptr, {});
  RunControl control;
  serial.run(net.steps(), control);
  const std::vector<float> expected = sum;
  uint32_t max_threads = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::fill(sum.begin(), sum.end(), 0.0F);
    const uint32_t threads[] = {1, 2, 3, 8};
    Scheduler scheduler(net.graph(), &executor, testing::parallel(threads[seed % 4], seed));
    scheduler.run(net.steps(), control);
    ASSERT_EQ(sum, expected) << "seed " << seed;
    max_threads = std::max(max_threads, scheduler.last_run_threads());
  }
  EXPECT_GT(max_threads, 1u) << "no two threads ever worked together: the test has shown nothing";
}

// Two threads meet inside one step, from both ends.
TEST(SchedulerTiles, HelpersJoinFromTheBack) {
  ThreadExecutor executor(2);
  TestNet net;
  std::atomic<uint32_t> here{0};
  std::atomic<int64_t> caller_begin{-1};
  std::atomic<int64_t> helper_begin{-1};
  net.add(
      {},
      [&](int64_t begin, int64_t) {
        (worker_index() == 0 ? caller_begin : helper_begin).store(begin);
        here.fetch_or(1u << worker_index());
        for (int wait = 0; wait < 20000 && here != 3u; ++wait) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return HEDDLE_OK;
      },
      100);
  net.build();
  Scheduler scheduler(net.graph(), &executor, testing::parallel(2));
  RunControl control;
  scheduler.run(net.steps(), control);
  EXPECT_EQ(here, 3u);
  EXPECT_EQ(scheduler.last_run_threads(), 2u);
  EXPECT_LT(caller_begin, helper_begin);
}

// Independent steps run side by side before one is split: each of two threads runs one of two equal steps.
TEST(SchedulerTiles, EqualStepsSideBySide) {
  ThreadExecutor executor(2);
  TestNet net;
  std::atomic<uint32_t> here{0};
  std::atomic<uint32_t> owner[2] = {9, 9};
  for (int i = 0; i < 2; ++i) {
    net.add(
        {},
        [&, i](int64_t begin, int64_t) {
          if (begin != 0) return HEDDLE_OK;
          owner[i] = worker_index();
          here.fetch_add(1);
          for (int wait = 0; wait < 20000 && here != 2u; ++wait) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          return HEDDLE_OK;
        },
        2);
  }
  net.build();
  Scheduler scheduler(net.graph(), &executor, testing::parallel(2));
  RunControl control;
  scheduler.run(net.steps(), control);
  EXPECT_EQ(here, 2u);
  EXPECT_NE(owner[0], owner[1]);
}

TEST(SchedulerTiles, AFailedTileIsReportedOnceAndDrains) {
  ThreadExecutor executor(4);
  for (uint64_t seed = 0; seed < 30; ++seed) {
    TestNet net;
    std::atomic<int> inside{0};
    std::atomic<int> finished{0};
    std::atomic<int> after{0};
    const uint32_t step = net.add(
        {},
        [&](int64_t begin, int64_t) {
          ++inside;
          testing::burn(2000);
          --inside;
          return begin >= 10 ? HEDDLE_ERROR_INVALID : HEDDLE_OK;
        },
        1000);
    net.set_finish(step, [&] { return ++finished, HEDDLE_OK; });
    net.add({step}, [&](int64_t, int64_t) { return ++after, HEDDLE_OK; });
    net.build();
    Scheduler scheduler(net.graph(), &executor, testing::parallel(4, seed + 1));
    for (int run = 0; run < 3; ++run) {
      Failures failures;
      RunControl control;
      failures.attach(control);
      scheduler.run(net.steps(), control);
      EXPECT_FALSE(scheduler.last_run_complete());
      EXPECT_EQ(failures.all.size(), 1u);
      EXPECT_EQ(inside, 0);
    }
    EXPECT_EQ(finished, 0);
    EXPECT_EQ(after, 0);
  }
}

// Cancels in the middle of a step: ranges that were claimed are finished, the rest is left out.
TEST(SchedulerTiles, CancelBetweenRanges) {
  ThreadExecutor executor(2);
  TestNet net;
  RunControl control;
  std::atomic<int64_t> done{0};
  std::atomic<int> finished{0};
  const uint32_t step = net.add(
      {},
      [&](int64_t begin, int64_t end) {
        control.stop = stop_cancelled;
        done += end - begin;
        return HEDDLE_OK;
      },
      1 << 20);
  net.set_finish(step, [&] { return ++finished, HEDDLE_OK; });
  net.build();
  Scheduler scheduler(net.graph(), &executor, testing::parallel(2));
  scheduler.run(net.steps(), control);
  EXPECT_FALSE(scheduler.last_run_complete());
  EXPECT_EQ(finished, 0);
  EXPECT_GT(done, 0);
  EXPECT_LT(done, 1 << 20);
}

}  // namespace
}  // namespace heddle
