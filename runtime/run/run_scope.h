// RunScope: one run of a plan as the code inside it sees it: what it was asked for, whether it is to end, and which run it is part of.
//
// The run of a subnet is inside a step of an outer run, and ends when that is to end. One per Execution, used anew by each of its runs;
// begin() by the thread that runs, all else by any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "heddle/abi.h"
#include "run/run_settings.h"
#include "schedule/run_control.h"
#include "schedule/step_graph.h"

namespace heddle {

class RunScope {
 public:
  // `graph` outlives it, as does `outer`: the run in whose step `outer_step` this one is; null: there is none.
  explicit RunScope(const StepGraph& graph, RunScope* outer = nullptr, uint32_t outer_step = 0);
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;

  // `deadline` in ticks, 0: none; `step`: of the net, for random operators on the host.
  void begin(const RunSettings& settings, uint64_t deadline, int64_t step) {
    control_.stop.store(0, std::memory_order_relaxed);
    subnet_runs_.store(0, std::memory_order_relaxed);
    if (settings.cancelled) heed(*settings.cancelled);
    control_.deadline_ticks = deadline;
    control_.holds = FairSharedMutex::held_here();
    control_.profile = settings.profile;
    ++run_;
    state_ = {settings.seed, static_cast<uint64_t>(step), settings.trip};
  }
  // Nothing new starts, in one order with the accesses of begin().
  void cancel() {
    uint32_t running = 0;
    control_.stop.compare_exchange_strong(running, stop_cancelled);
  }
  // Whether the caller wants the run to end: its deadline has passed, or it was cancelled. Also once a step failed.
  bool told_to_end() {
    if (control_.deadline_ticks != 0) look_at_deadline();
    return stop_reason() != 0;
  }
  // Whether the kernel of `step` should give up, when it asks while it runs: this run, or one around it, is told to end. Never in the tail
  // of any of them: updates of variables are all made or none.
  bool should_stop(uint32_t step);
  // The same of the step around this run, which is a subnet's.
  bool outer_should_stop() { return outer_->should_stop(outer_step_); }
  bool is_subnet() const { return outer_ != nullptr; }
  // Counts a run of a subnet; returns how many there were before, in the outermost run and all that is inside it.
  int64_t count_subnet_run();

  RunControl& control() { return control_; }
  // The stop_* for which the run ends; 0: none so far.
  uint32_t stop_reason() const { return control_.stop.load(std::memory_order_relaxed); }
  // Of this run; never 0 in one.
  uint64_t run() const { return run_; }
  // At the same place in each run, and the same for its duration.
  const heddle_run_state& state() const { return state_; }

 private:
  void heed(const std::atomic<bool>& cancelled);
  void look_at_deadline();

  const StepGraph& graph_;
  RunScope* const outer_;
  const uint32_t outer_step_;
  RunControl control_;
  heddle_run_state state_ = {};
  uint64_t run_ = 0;
  std::atomic<int64_t> subnet_runs_{0};  // of the outermost
};

}  // namespace heddle
