// The choice between serial and parallel: made from measured costs, tried, kept, and reviewed when runs change.
#include "schedule/run_mode.h"

#include <gtest/gtest.h>

#include "schedule/scheduler_support.h"

namespace heddle {
namespace {

// `width` chains of `depth` steps side by side.
testing::TestNet chains(uint32_t width, uint32_t depth, int64_t tiles = 1) {
  testing::TestNet net;
  for (uint32_t i = 0; i < width * depth; ++i)
    net.add(
        i < width ? std::vector<uint32_t>{} : std::vector<uint32_t>{i - width}, [](int64_t, int64_t) { return HEDDLE_OK; }, tiles);
  net.build();
  return net;
}

// A machine in which each step takes `step_ns` and two threads are `speed_up` times as fast as one.
struct Machine {
  Machine(const testing::TestNet& net, float declared_ns, uint32_t threads = 2)
      : count(net.count()), table(net.graph()), mode(table, std::vector<float>(count, declared_ns), threads) {
    mode.set_tiles(net.steps());
  }
  // Simulates one run; returns true if it was parallel.
  bool run() {
    const RunMode::Choice choice = mode.next();
    if (choice.measure)
      for (uint32_t s = 0; s < count; ++s) mode.measured_ns()[s] = step_ns;
    const double serial = static_cast<double>(step_ns) * count;
    if (choice.timed) mode.ran(choice, choice.parallel ? serial / speed_up : serial);
    return choice.parallel;
  }
  bool after(int runs) {
    bool parallel = false;
    for (int i = 0; i < runs; ++i) parallel = run();
    return parallel;
  }
  uint32_t count;
  StepTable table;
  RunMode mode;
  float step_ns = 10000;
  double speed_up = 1.9;
};

TEST(RunMode, HeavyAndWideGoesParallelLightOrNarrowStaysSerial) {
  const testing::TestNet wide = chains(8, 20);
  Machine heavy(wide, 0);
  EXPECT_FALSE(heavy.run()) << "nothing is known: serial first";
  EXPECT_TRUE(heavy.after(20));
  Machine light(wide, 0);
  light.step_ns = 50;
  EXPECT_FALSE(light.after(20));
  const testing::TestNet narrow = chains(1, 200);
  Machine chain(narrow, 0);
  EXPECT_FALSE(chain.after(20));
  const testing::TestNet tiled = chains(1, 200, 16);
  Machine tiles(tiled, 0);
  EXPECT_TRUE(tiles.after(20));
}

TEST(RunMode, DeclaredCostsOfAHundredTimesDoNotLast) {
  const testing::TestNet net = chains(8, 200);
  Machine overrated(net, 10000);
  overrated.step_ns = 100;
  overrated.speed_up = 0.3;
  EXPECT_TRUE(overrated.run()) << "the guess is believed at first";
  EXPECT_FALSE(overrated.after(10));
  Machine underrated(net, 100);
  EXPECT_FALSE(underrated.run());
  EXPECT_TRUE(underrated.after(20));
}

TEST(RunMode, APromiseThatIsNotKeptIsDropped) {
  const testing::TestNet net = chains(8, 20);
  Machine busy(net, 0);
  busy.speed_up = 0.8;  // the other core is used by another process
  EXPECT_FALSE(busy.after(40));
  busy.speed_up = 1.9;  // and now it is free
  EXPECT_TRUE(busy.after(150)) << "it is tried again soon";
}

TEST(RunMode, LooksAgainWhenRunsChange) {
  const testing::TestNet net = chains(8, 20);
  Machine machine(net, 0);
  EXPECT_TRUE(machine.after(200));
  machine.step_ns = 100;
  machine.speed_up = 0.3;
  EXPECT_FALSE(machine.after(3000));
  machine.step_ns = 10000;
  machine.speed_up = 1.9;
  EXPECT_TRUE(machine.after(10000));
}

// Tests the scheduler itself: work that is too small for threads never leaves the calling one, even when declared enormous.
TEST(RunMode, SmallNetsEndOnTheCallingThread) {
  testing::ThreadExecutor executor(2);
  testing::TestNet net = chains(8, 10);
  for (uint32_t s = 0; s < net.count(); ++s) net.set_cost(s, 1e6F);
  net.build();
  Scheduler scheduler(net.graph(), &executor, {});
  RunControl control;
  scheduler.run(net.steps(), control);
  EXPECT_TRUE(scheduler.last_run_parallel());
  for (int run = 0; run < 20; ++run) scheduler.run(net.steps(), control);
  EXPECT_FALSE(scheduler.last_run_parallel());
  EXPECT_LT(scheduler.cost_ns()[0], 1e5F);
}

}  // namespace
}  // namespace heddle
