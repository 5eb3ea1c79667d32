// AwaitedStep: the asynchronous step that an observed run waits for, on the thread that runs it.
//
// Threads: begin() and wait() are called by the thread that runs, complete() by any thread between them.
#pragma once

#include "base/threads/mutex.h"
#include "heddle/abi.h"
#include "schedule/run_control.h"

namespace heddle {

class AwaitedStep {
 public:
  // Call it before the step is started.
  void begin();
  // Waits until the step has completed, and returns its status. If it has not completed in time after the run was requested to stop,
  // returns HEDDLE_ERROR_CANCELLED and sets `given_up`. `tail`: the step is of the update phase.
  heddle_status wait(RunControl& control, bool tail, bool* given_up);
  // [any thread] The step has completed. After it this object may be destroyed.
  void complete(heddle_status status) noexcept;

 private:
  Mutex mutex_;
  Condition changed_;
  bool over_ HEDDLE_GUARDED_BY(mutex_) = false;
  heddle_status status_ HEDDLE_GUARDED_BY(mutex_) = HEDDLE_OK;
};

}  // namespace heddle
