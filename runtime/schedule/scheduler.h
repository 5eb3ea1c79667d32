// Runs the steps of a plan for one context: on the calling thread alone, or with helpers from an Executor.
//
// Everything is allocated by the constructor and the first runs. One run at a time; complete() from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "heddle/executor.h"
#include "schedule/parallel.h"
#include "schedule/run_control.h"
#include "schedule/run_mode.h"
#include "schedule/worker.h"

namespace heddle {

enum class ScheduleMode : uint8_t {
  automatic,  // whichever was measured to be faster
  serial,     // only ever the calling thread
  parallel,   // helpers from the first run on
};

struct SchedulerOptions {
  // Threads of a run, the calling one included; 0: as many as the executor has. At most 64 are used.
  uint32_t max_threads = 0;
  ScheduleMode mode = ScheduleMode::automatic;
  // For tests: not 0 makes each run a random legal schedule (which ready step is next, ranges of tiles, pauses), the same for the same
  // seed as far as one thread is concerned.
  uint64_t shuffle_seed = 0;
  // False: the declared costs stand (mode parallel only).
  bool measure = true;
};

class Scheduler {
 public:
  // `graph` outlives the scheduler; `executor`, null for serial, outlives the tasks it was given. `outer`: this one runs inside steps of
  // another (step_hosts), whose idle threads help it, in place of an executor's; it outlives this one. Null: it does not.
  Scheduler(const StepGraph& graph, Executor* executor, const SchedulerOptions& options, Scheduler* outer = nullptr);
  // No run is going on. Helpers that were asked for and have not come yet find nothing, whenever they come.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Makes what runs of these steps need. Once it has returned, run() and start() ask for no memory; before, they call it themselves.
  void prepare(const Step* steps) {
    if (engine_ && !prepared_) [[unlikely]]
      prepare_engine(steps);
  }

  // Runs all steps and returns when every step that was started has finished. Once control.stop is set, nothing new starts, except that
  // the tail runs to its end once it has begun. Asynchronous steps that do not answer some time after the run was told to end, or after
  // its deadline, are given up: see answered(). A step that fails is reported to control.failed and sets control.stop; what
  // its function throws counts as HEDDLE_ERROR_INTERNAL. steps[s].tiles is the same in each run. Nothing is written to shared state.
  void run(const Step* steps, RunControl& control) noexcept;

  // As run, on a thread that is given back when only asynchronous steps are left. True: the run is over. False: it has left the calling
  // thread, which touches nothing of it any more, and goes on in resume(), called once for each call of `leave.go_on`. Costs are not
  // measured.
  bool start(const Step* steps, RunControl& control, const RunLeave& leave) noexcept;
  bool resume() noexcept;

  // [in run() of its predecessor] Step `step` with step_awaited will be completed; the run does not end before. `unexpect`: it will not
  // after all, and the predecessor fails.
  void expect(uint32_t step) noexcept { engine_->expect(step); }
  void unexpect() noexcept { engine_->unexpect(); }

  // [any thread] Step `step` is done: one with step_async that the current run has started, exactly once for each whose function returned
  // HEDDLE_OK, possibly before it did; or one that is expected. With HEDDLE_PENDING: one with step_suspends is to be run again.
  void complete(uint32_t step, heddle_status status) noexcept { engine_->complete(step, status); }
  // [any thread] After control.stop was set from outside: a thread that sleeps until something happens looks at it.
  void wake() noexcept {
    if (engine_) engine_->wake_caller();
  }
  // [any thread] Which executing thread of the run this is; no_worker: none.
  uint32_t worker_here() const noexcept { return worker_index(standing_for()); }
  // This thread alone runs the steps, without run().
  WorkerScope alone() const noexcept { return {0, standing_for()}; }
  // Asynchronous steps of a run that was given up did not answer. No run begins before they have: true once all of them did.
  bool answered() noexcept { return !engine_ || engine_->answered(); }

  // Of the last run: did every step run and none fail? (A cancellation that came too late changes nothing.)
  bool last_run_complete() const { return last_complete_; }
  // Whether asynchronous steps of it were given up: they had their time to answer.
  bool last_run_given_up() const { return engine_ && engine_->given_up(); }
  // Whether it got as far as the tail; known of runs with asynchronous steps.
  bool last_run_reached_tail() const { return engine_ && engine_->reached_tail(); }
  bool last_run_parallel() const { return last_parallel_; }
  // Threads that executed something in the last run.
  uint32_t last_run_threads() const { return last_parallel_ ? engine_->executing_threads() : 1; }
  uint32_t max_threads() const { return threads_; }
  const SchedulerOptions& options() const { return options_; }
  // Single-threaded nanoseconds by step: measured, or declared as long as nothing was; 0: unknown.
  const std::vector<float>& cost_ns() const { return run_mode_ ? run_mode_->cost_ns() : graph_.cost_ns; }

 private:
  // For worker.h.
  const void* standing_for() const noexcept { return engine_ ? static_cast<const void*>(engine_.get()) : this; }
  void prepare_engine(const Step* steps);
  ParallelEngine* outer_engine() const noexcept;
  // Which one of it the calling thread is, before it becomes one of this run; no_worker: none.
  uint32_t worker_of_outer() const noexcept;
  // How this run goes; with an engine only.
  RunMode::Choice choose(const Step* steps) noexcept;
  void learn(const RunMode::Choice& choice, const Step* steps, double duration_ns) noexcept;

  const StepGraph& graph_;
  const SchedulerOptions options_;
  Scheduler* const outer_;
  uint32_t threads_ = 1;
  bool hosts_ = false;  // other runs, on several threads
  bool prepared_ = false;
  bool last_complete_ = false;
  bool last_parallel_ = false;
  std::shared_ptr<ParallelEngine> engine_;  // null: the serial loop is all there is
  std::unique_ptr<RunMode> run_mode_;       // null: the mode is fixed and nothing is measured
};

}  // namespace heddle
