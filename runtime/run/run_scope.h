// RunScope: one run of a plan as the code inside it sees it: its settings, whether it was requested to stop, and which run it is part of.
//
// The run of a subnet is inside a step of an outer run, and ends when the outer run is requested to stop. There is one per Execution,
// reused by each of its runs. Threads: begin() is called by the thread that runs, everything else by any thread.
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
  // `graph` and `outer` must outlive it. `outer`: the run whose step `outer_step` runs this one; null: there is none.
  explicit RunScope(const StepGraph& graph, RunScope* outer = nullptr, uint32_t outer_step = 0);
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;

  // Begins a run. `deadline` in ticks, 0: none; `step`: the net's step, for random operators on the host.
  void begin(const RunSettings& settings, uint64_t deadline, int64_t step) {
    control_.stop.store(0, std::memory_order_relaxed);
    subnet_runs_.store(0, std::memory_order_relaxed);
    if (settings.cancelled) heed(*settings.cancelled);
    control_.deadline_ticks = deadline;
    control_.holds = FairSharedMutex::held_here();
    control_.profile = settings.profile;
    control_.tiles = settings.tiles;
    ++run_;
    state_ = {settings.seed, static_cast<uint64_t>(step), settings.trip};
  }
  // Requests the run to stop: nothing new starts. Sequentially consistent, in one order with the accesses of begin().
  void cancel() {
    uint32_t running = 0;
    control_.stop.compare_exchange_strong(running, stop_cancelled);
  }
  // Whether the run was requested to stop: its deadline has passed, it was cancelled, or a step failed. Does not ask outer runs, unlike
  // stop_requested(RunControl&) of the scheduler and should_stop().
  bool stop_requested() {
    if (control_.deadline_ticks != 0) look_at_deadline();
    return stop_reason() != 0;
  }
  // Whether the running kernel of `step` should give up, because this run or an outer one was requested to stop. Never in the update phase
  // of any of them: either all updates of variables are made or none.
  bool should_stop(uint32_t step);
  // Whether the kernel of the outer step should give up. REQUIRES: is_subnet().
  bool outer_should_stop() { return outer_->should_stop(outer_step_); }
  bool is_subnet() const { return outer_ != nullptr; }
  // Counts a run of a subnet; returns how many there were before, in the outermost run and all runs inside it.
  int64_t count_subnet_run();

  // The deadline of the run in ticks, for a subnet that of the run around it; 0: none.
  uint64_t deadline_ticks() const { return outer_ && control_.deadline_ticks == 0 ? outer_->deadline_ticks() : control_.deadline_ticks; }

  RunControl& control() { return control_; }
  // The stop_* for which the run ends; 0: none so far.
  uint32_t stop_reason() const { return control_.stop.load(std::memory_order_relaxed); }
  // The number of this run; never 0 during a run.
  uint64_t run() const { return run_; }
  // The run's state, at the same address in each run and constant during a run.
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
  std::atomic<int64_t> subnet_runs_{0};  // counted in the outermost run
};

}  // namespace heddle
