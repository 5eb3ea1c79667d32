// The serial loop: the steps of a plan in plan order on the calling thread. It is the reference for every other way to run, and the only
// way to run a plan that is observed.
//
// Threads: run() is called by one thread at a time; complete() by any thread during an observed run.
#pragma once

#include <memory>

#include "base/threads/mutex.h"
#include "schedule/run_control.h"
#include "schedule/step_graph.h"

namespace heddle {

class SerialRun {
 public:
  // `graph` must outlive it.
  explicit SerialRun(const StepGraph& graph);

  // How a run ended.
  struct End {
    bool complete = false;  // all steps ran and none failed
    bool given_up = false;  // an asynchronous step did not complete in time
  };
  // Runs the steps, as Scheduler::run says. Only an observed run (control.seen) may have asynchronous steps; it waits for each of them.
  // `cost_ns`: null, or by step: set to its duration in nanoseconds.
  End run(const Step* steps, RunControl& control, float* cost_ns) noexcept;
  // [any thread] Completes the asynchronous step that an observed run waits for.
  void complete(heddle_status status) noexcept;

  // The asynchronous step that is under way.
  struct Awaited {
    Mutex mutex;
    Condition changed;
    bool over HEDDLE_GUARDED_BY(mutex) = false;
    heddle_status status HEDDLE_GUARDED_BY(mutex) = HEDDLE_OK;
  };

 private:
  const StepGraph& graph_;
  std::unique_ptr<Awaited> awaited_;  // null: the graph has no asynchronous steps
};

}  // namespace heddle
