// How runs end early: failures, exceptions, cancellation, deadlines; and which of these the tail of variable updates is exempt from.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <stdexcept>

#include "base/threads/clock.h"
#include "schedule/scheduler_support.h"

namespace heddle {
namespace {

using testing::Failures;
using testing::TestNet;
using testing::ThreadExecutor;

// Each test runs on the serial loop, on the engine with one thread, with two and with eight, and shuffled.
class SchedulerStop : public ::testing::TestWithParam<std::pair<uint32_t, uint64_t>> {
 protected:
  std::unique_ptr<Scheduler> scheduler(const TestNet& net) {
    const auto [threads, seed] = GetParam();
    return std::make_unique<Scheduler>(net.graph(), threads == 0 ? nullptr : &executor_, testing::parallel(threads, seed));
  }
  ThreadExecutor executor_{8};
};
INSTANTIATE_TEST_SUITE_P(Modes, SchedulerStop,
                         ::testing::Values(std::pair<uint32_t, uint64_t>{0, 0}, std::pair<uint32_t, uint64_t>{1, 1},
                                           std::pair<uint32_t, uint64_t>{2, 0}, std::pair<uint32_t, uint64_t>{8, 0},
                                           std::pair<uint32_t, uint64_t>{8, 7}));

// An exception, then a soft failure, then success; no run reports another one's error.
TEST_P(SchedulerStop, ThrowsThenFailsThenSucceeds) {
  TestNet net;
  int attempt = 0;
  std::atomic<int> after{0};
  const uint32_t first = net.add({}, [](int64_t, int64_t) { return HEDDLE_OK; });
  const uint32_t middle = net.add({first}, [&](int64_t, int64_t) -> heddle_status {
    if (attempt == 0) throw std::runtime_error("X");
    return attempt == 1 ? HEDDLE_ERROR_INVALID : HEDDLE_OK;
  });
  net.add({middle}, [&](int64_t, int64_t) { return ++after, HEDDLE_OK; });
  net.build();
  const auto s = scheduler(net);
  const heddle_status expected[] = {HEDDLE_ERROR_INTERNAL, HEDDLE_ERROR_INVALID, HEDDLE_OK};
  for (attempt = 0; attempt < 3; ++attempt) {
    Failures failures;
    RunControl control;
    failures.attach(control);
    s->run(net.steps(), control);
    EXPECT_EQ(s->last_run_complete(), attempt == 2);
    EXPECT_EQ(after, attempt == 2 ? 1 : 0);
    EXPECT_EQ(control.stop, attempt == 2 ? 0u : uint32_t{stop_failed});
    ASSERT_EQ(failures.all.size(), attempt == 2 ? 0u : 1u);
    EXPECT_EQ(failures.first().second, expected[attempt]);
    EXPECT_EQ(failures.first().first, attempt < 2 ? middle : UINT32_MAX);
  }
}

// Steps that depend on a failed one never run, whatever else fails, and each run reports its failures again.
TEST_P(SchedulerStop, NothingDownstreamOfAFailureRuns) {
  TestNet net;
  std::atomic<uint32_t> poisoned{0};
  std::vector<uint32_t> bad;
  for (int i = 0; i < 40; ++i) net.add({}, [](int64_t, int64_t) { return HEDDLE_OK; });
  for (int i = 0; i < 4; ++i) bad.push_back(net.add({}, [](int64_t, int64_t) { return HEDDLE_ERROR_DEVICE; }));
  for (const uint32_t b : bad) net.add({b}, [&](int64_t, int64_t) { return ++poisoned, HEDDLE_OK; });
  net.build();
  const auto s = scheduler(net);
  for (int run = 0; run < 10; ++run) {
    Failures failures;
    RunControl control;
    failures.attach(control);
    s->run(net.steps(), control);
    EXPECT_FALSE(s->last_run_complete());
    ASSERT_GE(failures.all.size(), 1u);
    for (const auto& [step, status] : failures.all) {
      EXPECT_TRUE(std::find(bad.begin(), bad.end(), step) != bad.end());
      EXPECT_EQ(status, HEDDLE_ERROR_DEVICE);
    }
  }
  EXPECT_EQ(poisoned, 0u);
}

TEST_P(SchedulerStop, FinishFunctionsFailAndThrowToo) {
  TestNet net;
  int attempt = 0;
  std::atomic<int> finished{0};
  const uint32_t step = net.add(
      {}, [](int64_t, int64_t) { return HEDDLE_OK; }, 16);
  net.set_finish(step, [&]() -> heddle_status {
    ++finished;
    if (attempt == 0) throw 7;
    return attempt == 1 ? HEDDLE_ERROR_OUT_OF_MEMORY : HEDDLE_OK;
  });
  net.build();
  const auto s = scheduler(net);
  const heddle_status expected[] = {HEDDLE_ERROR_INTERNAL, HEDDLE_ERROR_OUT_OF_MEMORY, HEDDLE_OK};
  for (attempt = 0; attempt < 3; ++attempt) {
    Failures failures;
    RunControl control;
    failures.attach(control);
    s->run(net.steps(), control);
    EXPECT_EQ(failures.first().second, expected[attempt]);
    EXPECT_EQ(finished, attempt + 1);
  }
}

// A step that is running when the stop is requested may finish; none begins after it.
TEST_P(SchedulerStop, CancelLatencyIsOneStep) {
  TestNet net;
  RunControl control;
  std::atomic<uint32_t> late{0};
  std::vector<uint32_t> before;
  for (int layer = 0; layer < 20; ++layer) {
    std::vector<uint32_t> here;
    for (int i = 0; i < 8; ++i) {
      here.push_back(net.add(before, [&, layer](int64_t, int64_t) {
        if (layer == 10) control.stop = stop_cancelled;
        // Layer 11 waits for all of layer 10: no step of it may begin.
        if (layer > 10) ++late;
        return HEDDLE_OK;
      }));
    }
    before = here;
  }
  net.build();
  const auto s = scheduler(net);
  Failures failures;
  failures.attach(control);
  s->run(net.steps(), control);
  EXPECT_FALSE(s->last_run_complete());
  EXPECT_EQ(late, 0u);
  EXPECT_EQ(control.stop, uint32_t{stop_cancelled});
  EXPECT_TRUE(failures.all.empty());
  // The next run is not affected.
  RunControl fresh;
  s->run(net.steps(), fresh);
  EXPECT_EQ(late, 72u + 0u) << "layers 11 to 19";
}

TEST_P(SchedulerStop, StoppedBeforeItBegins) {
  TestNet net;
  std::atomic<int> runs{0};
  net.add({}, [&](int64_t, int64_t) { return ++runs, HEDDLE_OK; });
  net.build();
  const auto s = scheduler(net);
  RunControl control;
  control.stop = stop_cancelled;
  s->run(net.steps(), control);
  EXPECT_FALSE(s->last_run_complete());
  control.stop = 0;
  control.deadline_ticks = ticks();
  s->run(net.steps(), control);
  EXPECT_EQ(control.stop, uint32_t{stop_deadline});
  EXPECT_EQ(runs, 0);
}

// The step during which the deadline passes finishes; the next one does not begin.
TEST_P(SchedulerStop, DeadlinesStopBetweenSteps) {
  TestNet net;
  RunControl control;
  std::atomic<int> late{0};
  const uint32_t slow = net.add({}, [&](int64_t, int64_t) {
    while (ticks() < control.deadline_ticks) {
    }
    return HEDDLE_OK;
  });
  net.add({slow}, [&](int64_t, int64_t) { return ++late, HEDDLE_OK; });
  net.build();
  const auto s = scheduler(net);
  control.deadline_ticks = ticks() + ns_to_ticks(200'000);
  s->run(net.steps(), control);
  EXPECT_EQ(control.stop, uint32_t{stop_deadline});
  EXPECT_FALSE(s->last_run_complete());
  EXPECT_EQ(late, 0);
  RunControl fresh;
  fresh.deadline_ticks = ticks() + ns_to_ticks(3600e9);
  s->run(net.steps(), fresh);
  EXPECT_EQ(fresh.stop, 0u);
  EXPECT_EQ(late, 1);
}

TEST_P(SchedulerStop, ATailBeginsOnlyAfterEverythingAndThenRunsToItsEnd) {
  TestNet net;
  RunControl* current = nullptr;
  std::atomic<uint32_t> main_runs{0};
  std::atomic<uint32_t> tail_runs{0};
  std::atomic<uint32_t> early{0};
  bool fail = false;
  bool cancel_in_main = false;
  std::vector<uint32_t> main;
  for (int i = 0; i < 12; ++i) {
    main.push_back(net.add({}, [&, i](int64_t, int64_t) -> heddle_status {
      if (cancel_in_main && i == 11) current->stop = stop_cancelled;
      ++main_runs;
      return fail && i == 5 ? HEDDLE_ERROR_INVALID : HEDDLE_OK;
    }));
  }
  net.begin_tail();
  for (int i = 0; i < 6; ++i) {
    const std::vector<uint32_t> before =
        i % 2 == 0 ? std::vector<uint32_t>{main[static_cast<size_t>(i)]} : std::vector<uint32_t>{net.count() - 1};
    net.add(before, [&](int64_t, int64_t) {
      current->stop.store(stop_cancelled);  // too late
      if (main_runs != 12) ++early;
      return ++tail_runs, HEDDLE_OK;
    });
  }
  net.build();
  const auto s = scheduler(net);
  for (int run = 0; run < 3; ++run) {
    RunControl control;
    Failures failures;
    failures.attach(control);
    current = &control;
    fail = run == 1;
    cancel_in_main = run == 2;
    main_runs = tail_runs = 0;
    s->run(net.steps(), control);
    EXPECT_EQ(s->last_run_complete(), run == 0);
    EXPECT_EQ(tail_runs, run == 0 ? 6u : 0u) << "run " << run;
    EXPECT_EQ(failures.all.size(), run == 1 ? 1u : 0u);
  }
  EXPECT_EQ(early, 0u);
}

TEST_P(SchedulerStop, AFailureInTheTailStopsTheTail) {
  TestNet net;
  int after = 0;
  net.add({}, [](int64_t, int64_t) { return HEDDLE_OK; });
  net.begin_tail();
  const uint32_t bad = net.add({0}, [](int64_t, int64_t) { return HEDDLE_ERROR_INVALID; });
  net.add({bad}, [&](int64_t, int64_t) { return ++after, HEDDLE_OK; });
  net.build();
  const auto s = scheduler(net);
  RunControl control;
  Failures failures;
  failures.attach(control);
  s->run(net.steps(), control);
  EXPECT_FALSE(s->last_run_complete());
  EXPECT_EQ(after, 0);
  EXPECT_EQ(failures.first(), std::pair(bad, heddle_status{HEDDLE_ERROR_INVALID}));
  EXPECT_EQ(control.stop, uint32_t{stop_failed});
}

// The run polls on after it was stopped for another reason: only a later poll may find that what it waits for is broken.
TEST_P(SchedulerStop, ARunThatWasToldLooksOn) {
  TestNet net;
  const uint32_t step = net.add({}, [](int64_t, int64_t) { return HEDDLE_OK; });
  net.set_asynchronous(step);
  net.build();
  const auto s = scheduler(net);
  RunControl control;
  int looks = 0;
  std::function<void()> look = [&] {
    ++looks;
    if (looks == 1) control.stop = stop_failed;
    if (looks == 2) s->complete(step, HEDDLE_ERROR_DEVICE_LOST);
  };
  control.user = &look;
  control.look = [](void* user) { (*static_cast<std::function<void()>*>(user))(); };
  s->run(net.steps(), control);
  EXPECT_GE(looks, 2);
  EXPECT_FALSE(s->last_run_complete());
  EXPECT_FALSE(s->last_run_given_up());
}

// Profiles have a span for each step that ran, in an order that its dependences allow.
TEST_P(SchedulerStop, ProfilesEveryStep) {
  TestNet net;
  for (uint32_t i = 0; i < 30; ++i)
    net.add(
        i < 3 ? std::vector<uint32_t>{} : std::vector<uint32_t>{i - 3}, [](int64_t, int64_t) { return HEDDLE_OK; }, i % 4 == 0 ? 9 : 1);
  net.build();
  const auto s = scheduler(net);
  std::vector<StepSpan> spans(net.count());
  RunControl control;
  control.profile = spans.data();
  s->run(net.steps(), control);
  for (uint32_t i = 0; i < 30; ++i) {
    EXPECT_NE(spans[i].begin, 0u);
    EXPECT_GE(spans[i].end, spans[i].begin);
    EXPECT_NE(spans[i].workers, 0u);
    EXPECT_GE(spans[i].begin, i >= 3 ? spans[i - 3].end : 1);
  }
}

}  // namespace
}  // namespace heddle
