// Executors of all kinds: none, one that never runs its tasks, one that runs them too late, TBB's; asynchronous steps; idling.
#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/threads/clock.h"
#include "heddle/tbb.h"
#include "schedule/reluctant_executor.h"
#include "schedule/scheduler_support.h"
#include "schedule/tbb_executor.h"
#include "schedule/worker.h"

namespace heddle {
namespace {

using testing::Failures;
using testing::ReluctantExecutor;
using testing::TestNet;
using testing::ThreadExecutor;

// A net with work to share: 60 independent steps, then a step of many tiles.
struct WideNet {
  TestNet net;
  std::atomic<uint32_t> runs{0};
  std::atomic<int64_t> tiles{0};
  WideNet() {
    std::vector<uint32_t> steps;
    for (int i = 0; i < 60; ++i) steps.push_back(net.add({}, [this](int64_t, int64_t) { return ++runs, HEDDLE_OK; }));
    net.add(
        steps, [this](int64_t begin, int64_t end) { return tiles += end - begin, HEDDLE_OK; }, 500);
    net.build();
  }
  void run(Scheduler& scheduler) {
    runs = 0;
    tiles = 0;
    RunControl control;
    scheduler.run(net.steps(), control);
    EXPECT_TRUE(scheduler.last_run_complete());
    EXPECT_EQ(runs, 60u);
    EXPECT_EQ(tiles, 500);
  }
};

TEST(SchedulerExecutor, WhoNeverRunsHelpersHarmsNobody) {
  ReluctantExecutor executor;
  WideNet wide;
  {
    Scheduler scheduler(wide.net.graph(), &executor, testing::parallel_unmeasured(4));
    for (int run = 0; run < 50; ++run) wide.run(scheduler);
    EXPECT_EQ(scheduler.last_run_threads(), 1u);
    EXPECT_GE(executor.pending(), 1u);
    EXPECT_LE(executor.pending(), 3u) << "a helper that has not come is not asked for again";
  }
  // The scheduler is destroyed; its tasks still exist and find no work.
  executor.run_all();
}

TEST(SchedulerExecutor, HelpersThatComeAfterTheRunFindNothingOrTheNextOne) {
  ReluctantExecutor executor;
  WideNet wide;
  Scheduler scheduler(wide.net.graph(), &executor, testing::parallel_unmeasured(4));
  for (int run = 0; run < 20; ++run) {
    wide.run(scheduler);
    EXPECT_GE(executor.pending(), 1u) << "asked for again once they have been here";
    executor.run_all();
    EXPECT_EQ(executor.pending(), 0u);
  }
}

TEST(SchedulerExecutor, RunsInsideAndBesideTheArenaOfAHost) {
  tbb::task_arena arena(2);
  TbbArenaExecutor executor(arena);
  EXPECT_EQ(executor.concurrency(), 2);
  WideNet wide;
  std::atomic<uint32_t> begun{0};
  {
    Scheduler scheduler(wide.net.graph(), &executor, testing::parallel_unmeasured(0));
    EXPECT_EQ(scheduler.max_threads(), 2u);
    for (int run = 0; run < 20; ++run) wide.run(scheduler);
    for (int run = 0; run < 20; ++run) arena.execute([&] { wide.run(scheduler); });
  }
  // Waits until the arena has run the scheduler's remaining tasks, as the header requires.
  arena.enqueue([&] { begun = 1; });
  while (begun == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

// Eight schedulers over one graph and one executor, each run by a thread of its own.
TEST(SchedulerExecutor, ConcurrentContexts) {
  TbbExecutor executor({4, false});
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&executor] {
      WideNet wide;
      Scheduler scheduler(wide.net.graph(), &executor, testing::parallel_unmeasured(4));
      for (int run = 0; run < 50; ++run) wide.run(scheduler);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Like the body of an If: a run inside a step, on whatever thread, whose steps see index 0.
TEST(SchedulerExecutor, NestedRunsHaveIndicesOfTheirOwn) {
  ThreadExecutor executor(3);
  TestNet outer;
  std::atomic<uint32_t> wrong{0};
  for (int i = 0; i < 20; ++i) {
    outer.add({}, [&](int64_t, int64_t) {
      const uint32_t before = worker_index();
      TestNet inner;
      inner.add({}, [&](int64_t, int64_t) {
        if (worker_index() != 0) ++wrong;
        return HEDDLE_OK;
      });
      inner.build();
      Scheduler scheduler(inner.graph(), nullptr, {});
      RunControl control;
      scheduler.run(inner.steps(), control);
      if (worker_index() != before) ++wrong;
      return HEDDLE_OK;
    });
  }
  outer.build();
  Scheduler scheduler(outer.graph(), &executor, testing::parallel(3));
  RunControl control;
  scheduler.run(outer.steps(), control);
  EXPECT_EQ(wrong, 0u);
}

// ---------------------------------------------------------------- asynchronous steps

// A thread that completes steps in any order, as a device's notifications would.
class Device {
 public:
  explicit Device(Scheduler*& scheduler) : scheduler_(scheduler), thread_([this] { serve(); }) {}
  ~Device() {
    ending_ = true;
    thread_.join();
  }
  void start(uint32_t step, heddle_status status) {
    const std::lock_guard lock(mutex_);
    queue_.emplace_back(step, status);
  }

 private:
  void serve() {
    while (!ending_) {
      std::pair<uint32_t, heddle_status> next;
      {
        const std::lock_guard lock(mutex_);
        if (queue_.empty()) {
          std::this_thread::yield();
          continue;
        }
        next = queue_[queue_.size() / 2];
        queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(queue_.size() / 2));
      }
      if (next.first % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
      scheduler_->complete(next.first, next.second);
    }
  }
  Scheduler*& scheduler_;
  std::mutex mutex_;
  std::vector<std::pair<uint32_t, heddle_status>> queue_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

TEST(SchedulerAsync, CompletedByAForeignThread) {
  ThreadExecutor executor(4);
  for (const uint32_t threads : {0u, 1u, 2u, 4u}) {
    Scheduler* current = nullptr;
    Device device(current);
    TestNet net;
    std::vector<std::atomic<uint32_t>> state(60);  // 1: started, 2: done
    std::atomic<uint32_t> wrong{0};
    int fails_at = -1;
    for (uint32_t i = 0; i < 60; ++i) {
      std::vector<uint32_t> before;
      if (i >= 5) before = {i - 5, i - 3};
      const bool asynchronous = i % 2 == 0;
      net.add(before, [&, i, asynchronous, before](int64_t, int64_t) {
        for (const uint32_t p : before)
          if (state[p] == 0) ++wrong;
        state[i] = 1;
        if (asynchronous) device.start(i, fails_at == static_cast<int>(i) ? HEDDLE_ERROR_DEVICE : HEDDLE_OK);
        return HEDDLE_OK;
      });
      if (asynchronous) net.set_asynchronous(i);
    }
    net.build();
    Scheduler scheduler(net.graph(), threads == 0 ? nullptr : &executor, testing::parallel(threads));
    current = &scheduler;
    for (int run = 0; run < 12; ++run) {
      for (auto& s : state) s = 0;
      fails_at = run == 5 ? 30 : -1;
      RunControl control;
      Failures failures;
      failures.attach(control);
      scheduler.run(net.steps(), control);
      EXPECT_EQ(scheduler.last_run_complete(), run != 5);
      EXPECT_EQ(failures.first(),
                run == 5 ? std::pair(30u, heddle_status{HEDDLE_ERROR_DEVICE}) : std::pair(UINT32_MAX, heddle_status{HEDDLE_OK}));
      // 35 waits for the step that failed.
      for (uint32_t i = 0; i < 60; ++i) EXPECT_TRUE(run == 5 ? i != 35 || state[i] == 0 : state[i] == 1) << i;
    }
    EXPECT_EQ(wrong, 0u);
  }
}

TEST(SchedulerAsync, FailsToStartOrCompletesBeforeItReturns) {
  TestNet net;
  Scheduler* current = nullptr;
  bool fail = false;
  int after = 0;
  const uint32_t step = net.add({}, [&](int64_t, int64_t) -> heddle_status {
    if (fail) return HEDDLE_ERROR_DEVICE;
    current->complete(0, HEDDLE_OK);
    return HEDDLE_OK;
  });
  net.set_asynchronous(step);
  net.add({step}, [&](int64_t, int64_t) { return ++after, HEDDLE_OK; });
  net.build();
  Scheduler scheduler(net.graph(), nullptr, {});
  current = &scheduler;
  for (int run = 0; run < 3; ++run) {
    fail = run == 1;
    RunControl control;
    Failures failures;
    failures.attach(control);
    scheduler.run(net.steps(), control);
    EXPECT_EQ(scheduler.last_run_complete(), !fail);
    EXPECT_EQ(failures.all.size(), fail ? 1u : 0u);
  }
  EXPECT_EQ(after, 2);
}

// A chain of steps, each of which starts work that a consumer waits for, such as work on a stream with copies to the host.
TEST(SchedulerAsync, AwaitedStepsLetTheOtherSuccessorsGoOn) {
  constexpr uint32_t links = 20;
  ThreadExecutor executor(4);
  for (const uint32_t threads : {0u, 1u, 2u, 4u}) {
    Scheduler* current = nullptr;
    Device device(current);
    TestNet net;
    std::atomic<uint32_t> enqueued{0}, consumed{0}, run_anyway{0};
    uint32_t fails_at = links, refuses_at = links;
    uint32_t before = 0;
    for (uint32_t i = 0; i < links; ++i) {
      const uint32_t awaited = net.count() + 1;
      // Nothing is completed before the whole chain has been enqueued, so it must not wait for completions.
      const uint32_t step =
          net.add(i == 0 ? std::vector<uint32_t>() : std::vector{before}, [&, i, awaited](int64_t, int64_t) -> heddle_status {
            current->expect(awaited);
            if (i == refuses_at) return current->unexpect(), HEDDLE_ERROR_DEVICE;
            if (++enqueued < links && refuses_at == links) return HEDDLE_OK;
            for (uint32_t k = 0; k <= i; ++k) device.start(3 * k + 1, k == fails_at ? HEDDLE_ERROR_DEVICE : HEDDLE_OK);
            return HEDDLE_OK;
          });
      before = step;
      net.add({step}, [&](int64_t, int64_t) { return ++run_anyway, HEDDLE_OK; });
      net.set_awaited(awaited);
      net.add({awaited}, [&](int64_t, int64_t) { return ++consumed, HEDDLE_OK; });
    }
    net.build();
    Scheduler scheduler(net.graph(), threads == 0 ? nullptr : &executor, testing::parallel(threads));
    current = &scheduler;
    for (int run = 0; run < 12; ++run) {
      enqueued = consumed = 0;
      fails_at = run == 4 ? 7 : links;
      refuses_at = run == 8 ? 0 : links;
      RunControl control;
      Failures failures;
      failures.attach(control);
      scheduler.run(net.steps(), control);
      const bool fails = run == 4 || run == 8;
      EXPECT_EQ(scheduler.last_run_complete(), !fails);
      EXPECT_EQ(failures.first(), fails ? std::pair(run == 4 ? 22u : 0u, heddle_status{HEDDLE_ERROR_DEVICE})
                                        : std::pair(UINT32_MAX, heddle_status{HEDDLE_OK}));
      EXPECT_TRUE(fails ? consumed < links : consumed == links) << consumed;
    }
    EXPECT_EQ(run_anyway, 0u);
  }
}

// ---------------------------------------------------------------- idling

// The caller sleeps while a device works, and so do helpers: processor time, not wall time, is measured.
TEST(SchedulerIdle, WaitingCostsNoProcessorTime) {
  ThreadExecutor executor(4);
  TestNet net;
  Scheduler* current = nullptr;
  std::thread device;
  const uint32_t slow = net.add({}, [&](int64_t, int64_t) {
    device = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      current->complete(0, HEDDLE_OK);
    });
    return HEDDLE_OK;
  });
  net.set_asynchronous(slow);
  for (int i = 0; i < 20; ++i) net.add({}, [](int64_t, int64_t) { return HEDDLE_OK; });
  net.build();
  Scheduler scheduler(net.graph(), &executor, testing::parallel(4));
  current = &scheduler;
  timespec before = {};
  timespec after = {};
  const uint64_t helpers_before = executor.cpu_ns();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  RunControl control;
  scheduler.run(net.steps(), control);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  device.join();
  const double caller_ns = static_cast<double>(after.tv_sec - before.tv_sec) * 1e9 + static_cast<double>(after.tv_nsec - before.tv_nsec);
  const auto helpers_ns = static_cast<double>(executor.cpu_ns() - helpers_before);
  // 300 ms of waiting by each; a spinning thread would use most of it even on a busy machine.
  EXPECT_LT(caller_ns, 30e6);
  EXPECT_LT(helpers_ns, 90e6);
}

TEST(SchedulerIdle, HelpersLeaveBetweenRuns) {
  ThreadExecutor executor(4);
  WideNet wide;
  Scheduler scheduler(wide.net.graph(), &executor, testing::parallel_unmeasured(4));
  for (int run = 0; run < 10; ++run) wide.run(scheduler);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const uint64_t before = executor.cpu_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(executor.cpu_ns() - before, 3'000'000u);
}

}  // namespace
}  // namespace heddle
