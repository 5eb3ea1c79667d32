// Runs the steps of a plan for one context: on the calling thread alone, or with helpers from an Executor.
//
// Everything is allocated by the constructor and the first runs. Threads: one run at a time; functions marked [any thread], such as
// complete(), may be called by any thread during it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "heddle/executor.h"
#include "schedule/awaited_step.h"
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
  // For tests: if not 0, each run is a random legal schedule (which ready step is next, ranges of tiles, pauses). The choices of one thread
  // are the same for the same seed.
  uint64_t shuffle_seed = 0;
  // False: the declared costs are kept (mode parallel only).
  bool measure = true;
};

class Scheduler {
 public:
  // `graph` must outlive the scheduler; `executor`, null for serial, must outlive the tasks it was given. `outer`: the scheduler in whose
  // steps (step_hosts) this one runs; its idle threads help, in place of an executor's; must outlive this one. Null: there is none.
  Scheduler(const StepGraph& graph, Executor* executor, const SchedulerOptions& options, Scheduler* outer = nullptr);
  // REQUIRES: no run is under way. Helpers that were requested and have not come yet find nothing, whenever they come.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Makes what runs of these steps need. Once it has returned, run() and start() allocate nothing; otherwise they call it themselves.
  void prepare(const Step* steps) {
    if (engine_ && !prepared_) [[unlikely]]
      prepare_engine(steps);
  }

  // Runs all steps and returns when every step that was started has finished. Once control.stop is set, nothing new starts, except that the
  // update phase runs to its end once it has begun. Asynchronous steps that do not complete within some time after the run was requested to
  // stop, or after its deadline, are given up: see answered(). A step that fails is reported to control.failed and sets control.stop; an
  // exception from its function counts as HEDDLE_ERROR_INTERNAL. steps[s].tiles must be the same in each run. Nothing is written to shared
  // state. A run that is observed (control.observe) is serial whatever the mode; steps with step_awaited are called like others, and none
  // suspends.
  void run(const Step* steps, RunControl& control) noexcept;

  // Like run(), but gives the calling thread back when only asynchronous steps are left. True: the run is over. False: it has left the
  // calling thread, which must not touch it any more; it continues in resume(), to be called once for each call of `leave.go_on`. Costs are
  // not measured.
  bool start(const Step* steps, RunControl& control, const RunLeave& leave) noexcept;
  bool resume() noexcept;

  // [in run() of its predecessor] expect(): step `step`, with step_awaited, will be completed; the run does not end before. unexpect(): it
  // will not be completed after all, and the predecessor fails.
  void expect(uint32_t step) noexcept { engine_->expect(step); }
  void unexpect() noexcept { engine_->unexpect(); }

  // [any thread] Completes step `step`: one with step_async that the current run has started, exactly once for each whose function returned
  // HEDDLE_OK, possibly before it did; or one that is expected. With HEDDLE_PENDING: one with step_suspends must be run again.
  void complete(uint32_t step, heddle_status status) noexcept {
    if (observed_) return awaited_->complete(status);
    engine_->complete(step, status);
  }
  // [any thread] Wakes the sleeping caller of run(), so that it reads control.stop. Call it after setting that from outside.
  void wake() noexcept {
    if (engine_) engine_->wake_caller();
  }
  // [any thread] Returns which executing thread of the run the calling thread is; no_worker: none.
  uint32_t worker_here() const noexcept { return worker_index(standing_for()); }
  // Makes the calling thread the only executing thread, for running the steps without run().
  WorkerScope alone() const noexcept { return {0, standing_for()}; }
  // Whether all asynchronous steps that the last run of the engine gave up have completed. No run may begin before that. Of an observed run
  // PendingSteps knows it.
  bool answered() noexcept { return !engine_ || engine_->answered(); }

  // Whether every step of the last run ran and none failed. (A cancellation that came too late changes nothing.)
  bool last_run_complete() const { return last_complete_; }
  // Whether asynchronous steps of it were given up because they did not complete in time.
  bool last_run_given_up() const { return last_given_up_; }
  bool last_run_parallel() const { return last_parallel_; }
  // Returns the number of threads that executed something in the last run.
  uint32_t last_run_threads() const { return last_parallel_ ? engine_->executing_threads() : 1; }
  uint32_t max_threads() const { return threads_; }
  const SchedulerOptions& options() const { return options_; }
  // Returns single-threaded nanoseconds by step: measured, or declared while nothing was measured; 0: unknown.
  const std::vector<float>& cost_ns() const { return run_mode_ ? run_mode_->cost_ns() : graph_.cost_ns; }

 private:
  // For worker.h.
  const void* standing_for() const noexcept { return engine_ ? static_cast<const void*>(engine_.get()) : this; }
  void prepare_engine(const Step* steps);
  ParallelEngine* outer_engine() const noexcept;
  // Returns which worker of the outer engine the calling thread is, before it becomes one of this run; no_worker: none.
  uint32_t worker_of_outer() const noexcept;
  // Chooses how this run is executed. REQUIRES: there is an engine.
  RunMode::Choice choose(const Step* steps) noexcept;
  // Notes how a run of the engine that may leave its thread has ended. Returns true.
  bool note_end() noexcept;
  void learn(const RunMode::Choice& choice, const Step* steps, double duration_ns) noexcept;

  const StepGraph& graph_;
  const SchedulerOptions options_;
  Scheduler* const outer_;
  uint32_t threads_ = 1;
  bool hosts_ = false;  // its steps host other runs, on several threads
  bool prepared_ = false;
  bool observed_ = false;  // the run that is under way is observed
  bool last_complete_ = false;
  bool last_given_up_ = false;
  bool last_parallel_ = false;
  std::shared_ptr<ParallelEngine> engine_;  // null: only the serial loop is used
  std::unique_ptr<AwaitedStep> awaited_;    // for observed runs; null: there are no asynchronous steps
  std::unique_ptr<RunMode> run_mode_;       // null: the mode is fixed and nothing is measured
};

}  // namespace heddle
