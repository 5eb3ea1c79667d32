// Every step runs exactly once, in a legal order, with the same results as the serial loop, whichever thread runs it.
#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <atomic>
#include <random>

#include "schedule/scheduler_support.h"
#include "schedule/tbb_executor.h"
#include "schedule/worker.h"

namespace heddle {
namespace {

using testing::TestNet;
using testing::ThreadExecutor;

// Random operators over variables, with the dependences of an engine that allows many readers or one writer. Each operator checks the
// version of all it touches, so a missing or late dependence is seen at once, and mixes values in an order-sensitive way.
struct VariableProgram {
  struct Operator {
    std::vector<uint32_t> reads;
    uint32_t writes = 0;
    std::vector<uint64_t> read_versions;
    uint64_t write_version = 0;
  };
  std::vector<Operator> operators;
  std::vector<uint64_t> value;
  std::vector<uint64_t> version;
  std::vector<uint64_t> final_version;
  std::atomic<uint32_t> wrong_versions{0};
  std::vector<uint8_t> runs;  // by operator; bytes of their own, no atomics: only its own step writes it
  TestNet net;

  VariableProgram(uint32_t operator_count, uint32_t variables, uint64_t seed)
      : operators(operator_count), value(variables), version(variables), final_version(variables), runs(operator_count) {
    std::mt19937_64 random(seed);
    std::vector<uint32_t> writer(variables, UINT32_MAX);
    std::vector<std::vector<uint32_t>> readers(variables);
    for (uint32_t i = 0; i < operator_count; ++i) {
      Operator& op = operators[i];
      op.writes = static_cast<uint32_t>(random() % variables);
      for (uint64_t r = random() % 4; r > 0; --r) {
        const auto v = static_cast<uint32_t>(random() % variables);
        if (v != op.writes && std::find(op.reads.begin(), op.reads.end(), v) == op.reads.end()) op.reads.push_back(v);
      }
      std::vector<uint32_t> before = readers[op.writes];
      if (writer[op.writes] != UINT32_MAX) before.push_back(writer[op.writes]);
      for (const uint32_t v : op.reads) {
        if (writer[v] != UINT32_MAX) before.push_back(writer[v]);
        readers[v].push_back(i);
        op.read_versions.push_back(final_version[v]);
      }
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      op.write_version = final_version[op.writes]++;
      writer[op.writes] = i;
      readers[op.writes].clear();
      net.add(before, [this, i](int64_t, int64_t) { return execute(i); });
    }
    net.build();
  }

  heddle_status execute(uint32_t i) {
    const Operator& op = operators[i];
    ++runs[i];
    uint64_t mixed = i;
    bool wrong = version[op.writes] != op.write_version;
    for (size_t r = 0; r < op.reads.size(); ++r) {
      wrong = wrong || version[op.reads[r]] != op.read_versions[r];
      mixed = mixed * 6364136223846793005u + value[op.reads[r]];
    }
    value[op.writes] = (value[op.writes] ^ mixed) * 0x9e3779b97f4a7c15u;
    ++version[op.writes];
    if (wrong) ++wrong_versions;
    return HEDDLE_OK;
  }

  std::vector<uint64_t> run(Scheduler& scheduler) {
    std::fill(value.begin(), value.end(), 1);
    std::fill(version.begin(), version.end(), 0);
    std::fill(runs.begin(), runs.end(), 0);
    RunControl control;
    scheduler.run(net.steps(), control);
    EXPECT_TRUE(scheduler.last_run_complete());
    EXPECT_EQ(wrong_versions, 0u);
    EXPECT_EQ(version, final_version);
    EXPECT_TRUE(std::all_of(runs.begin(), runs.end(), [](uint8_t n) { return n == 1; }));
    return value;
  }
};

TEST(SchedulerOrder, TenThousandRandomOperatorsEqualSerial) {
  ThreadExecutor executor(8);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    VariableProgram program(10000, 100, seed);
    Scheduler serial(program.net.graph(), nullptr, {});
    const std::vector<uint64_t> expected = program.run(serial);
    for (const uint32_t threads : {2u, 3u, 8u}) {
      Scheduler plain(program.net.graph(), &executor, testing::parallel(threads));
      for (int run = 0; run < 4; ++run) EXPECT_EQ(program.run(plain), expected) << "seed " << seed << ", " << threads << " threads";
      Scheduler shuffled(program.net.graph(), &executor, testing::parallel(threads, seed));
      EXPECT_EQ(program.run(shuffled), expected) << "seed " << seed << ", " << threads << " threads, shuffled";
    }
    Scheduler automatic(program.net.graph(), &executor, {});
    for (int run = 0; run < 20; ++run) EXPECT_EQ(program.run(automatic), expected);
  }
}

TEST(SchedulerOrder, TwoHundredShufflesAreLegalAndEqual) {
  ThreadExecutor executor(3);
  VariableProgram program(400, 12, 99);
  Scheduler serial(program.net.graph(), nullptr, {});
  const std::vector<uint64_t> expected = program.run(serial);
  uint32_t max_threads = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Scheduler scheduler(program.net.graph(), &executor, testing::parallel(static_cast<uint32_t>(1 + seed % 3), seed));
    ASSERT_EQ(program.run(scheduler), expected) << "seed " << seed;
    max_threads = std::max(max_threads, scheduler.last_run_threads());
  }
  EXPECT_GT(max_threads, 1u) << "no two threads ever ran side by side: the test has shown nothing";
}

// A shuffle that never changes anything would make the test above worthless.
TEST(SchedulerOrder, ShufflesReallyDiffer) {
  TestNet net;
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < 20; ++i) {
    net.add({}, [&order, i](int64_t, int64_t) {
      order.push_back(i);
      return HEDDLE_OK;
    });
  }
  net.build();
  std::vector<std::vector<uint32_t>> orders;
  for (const uint64_t seed : {1u, 2u, 1u}) {
    order.clear();
    Scheduler scheduler(net.graph(), nullptr, testing::parallel(1, seed));
    RunControl control;
    scheduler.run(net.steps(), control);
    ASSERT_EQ(order.size(), 20u);
    orders.push_back(order);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_EQ(orders[0], orders[2]);
}

// Write after read without any data from the reader to the writer: only the order keeps the readers' view right.
TEST(SchedulerOrder, WritersWaitForReaders) {
  ThreadExecutor executor(4);
  TestNet net;
  uint64_t variable = 0;
  std::atomic<uint32_t> wrong{0};
  std::vector<uint32_t> before;
  for (uint64_t round = 0; round < 50; ++round) {
    std::vector<uint32_t> readers;
    for (int r = 0; r < 6; ++r) {
      readers.push_back(net.add(before, [&, round](int64_t, int64_t) {
        for (int look = 0; look < 20; ++look)
          if (variable != round) ++wrong;
        return HEDDLE_OK;
      }));
    }
    before = {net.add(readers, [&](int64_t, int64_t) {
      ++variable;
      return HEDDLE_OK;
    })};
  }
  net.build();
  for (uint64_t seed = 0; seed < 20; ++seed) {
    variable = 0;
    Scheduler scheduler(net.graph(), &executor, testing::parallel(4, seed));
    RunControl control;
    scheduler.run(net.steps(), control);
    EXPECT_EQ(variable, 50u);
  }
  EXPECT_EQ(wrong, 0u);
}

TEST(SchedulerOrder, EachStepExactlyOnceOverAHundredRuns) {
  ThreadExecutor executor(8);
  for (const uint32_t threads : {1u, 2u, 3u, 8u}) {
    TestNet net;
    std::vector<std::atomic<uint32_t>> runs(200);
    std::vector<uint32_t> middle;
    const uint32_t fork = net.add({}, [&](int64_t, int64_t) { return ++runs[0], HEDDLE_OK; });
    for (uint32_t i = 1; i < 199; ++i) middle.push_back(net.add({fork}, [&runs, i](int64_t, int64_t) { return ++runs[i], HEDDLE_OK; }));
    net.add(middle, [&](int64_t, int64_t) { return ++runs[199], HEDDLE_OK; });
    net.build();
    Scheduler scheduler(net.graph(), &executor, testing::parallel(threads));
    for (uint32_t run = 1; run <= 100; ++run) {
      RunControl control;
      scheduler.run(net.steps(), control);
      ASSERT_TRUE(scheduler.last_run_complete());
      for (const auto& count : runs) ASSERT_EQ(count, run);
    }
  }
}

TEST(SchedulerOrder, NothingToDoAndOneStep) {
  ThreadExecutor executor(2);
  TestNet empty;
  empty.build();
  TestNet one;
  int runs = 0;
  one.add({}, [&](int64_t, int64_t) { return ++runs, HEDDLE_OK; });
  one.build();
  for (const ScheduleMode mode : {ScheduleMode::automatic, ScheduleMode::serial, ScheduleMode::parallel}) {
    SchedulerOptions options;
    options.mode = mode;
    RunControl control;
    Scheduler nothing(empty.graph(), &executor, options);
    nothing.run(empty.steps(), control);
    EXPECT_TRUE(nothing.last_run_complete());
    Scheduler something(one.graph(), &executor, options);
    something.run(one.steps(), control);
    EXPECT_TRUE(something.last_run_complete());
  }
  EXPECT_EQ(runs, 3);
}

// A hundred thousand steps in a row, and a hundred thousand side by side: no recursion, no queue that overflows.
TEST(SchedulerOrder, LongAndWide) {
  ThreadExecutor executor(2);
  for (const bool chain : {true, false}) {
    TestNet net;
    std::atomic<uint32_t> runs{0};
    for (uint32_t i = 0; i < 100000; ++i) {
      const std::vector<uint32_t> before = chain && i > 0 ? std::vector<uint32_t>{i - 1} : std::vector<uint32_t>{};
      net.add(before, [&](int64_t, int64_t) { return runs.fetch_add(1, std::memory_order_relaxed), HEDDLE_OK; });
    }
    net.build();
    Scheduler scheduler(net.graph(), &executor, testing::parallel(2));
    RunControl control;
    scheduler.run(net.steps(), control);
    EXPECT_EQ(runs, 100000u);
  }
}

// There are no tasks to be chained: a thread that finishes a step continues with its successor. A linear net stays on one thread; each of
// two chains changes its thread once at most, when a helper joins.
TEST(SchedulerOrder, ChainsStayWithTheirThread) {
  ThreadExecutor executor(2);
  for (const uint32_t chains : {1u, 2u})
    for (int repeat = 0; repeat < 20; ++repeat) {
      constexpr uint32_t length = 500;
      TestNet net;
      std::vector<uint32_t> by(size_t{chains} * length);
      for (uint32_t i = 0; i < by.size(); ++i)
        net.add(i >= chains ? std::vector<uint32_t>{i - chains} : std::vector<uint32_t>{},
                [&by, i](int64_t, int64_t) { return by[i] = worker_index(), HEDDLE_OK; });
      net.build();
      Scheduler scheduler(net.graph(), &executor, testing::parallel(2));
      RunControl control;
      scheduler.run(net.steps(), control);
      for (uint32_t c = 0; c < chains; ++c) {
        uint32_t changes = 0;
        for (uint32_t i = c + chains; i < by.size(); i += chains) changes += by[i] != by[i - chains];
        EXPECT_LE(changes, chains - 1) << "chain " << c << " of " << chains;
      }
    }
}

// Threads of the run have distinct indices below the number of threads, and the caller is 0; the scheduler counts them.
TEST(SchedulerOrder, EightThreadsReallyWork) {
  const tbb::global_control workers(tbb::global_control::max_allowed_parallelism, 8);
  TbbExecutor executor({8, false});
  TestNet net;
  std::atomic<uint32_t> seen{0};
  std::atomic<uint32_t> too_large{0};
  for (int i = 0; i < 8; ++i) {
    net.add({}, [&](int64_t, int64_t) {
      seen.fetch_or(1u << worker_index());
      if (worker_index() >= 8) ++too_large;
      // Waits until all eight are here, so that no thread can run two of the steps; gives up after a while, and the test fails.
      for (int wait = 0; wait < 20000 && seen != 255u; ++wait) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return HEDDLE_OK;
    });
  }
  net.build();
  Scheduler scheduler(net.graph(), &executor, testing::parallel(8));
  RunControl control;
  scheduler.run(net.steps(), control);
  EXPECT_EQ(seen, 255u);
  EXPECT_EQ(too_large, 0u);
  EXPECT_EQ(scheduler.last_run_threads(), 8u);
  EXPECT_EQ(worker_index(), 0u);
}

}  // namespace
}  // namespace heddle
