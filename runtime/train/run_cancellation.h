// RunCancellation: the cancellation of runs by another thread.
#pragma once

#include <atomic>

#include "base/threads/mutex.h"
#include "heddle/session.h"

namespace heddle {

// Lets another thread end a run whose context it does not know.
class RunCancellation {
 public:
  // [any thread] Ends the run in progress, else the next one. `at_once` false: a run in progress is completed, and the one after it ends.
  void cancel(bool at_once);
  // Returns Code::cancelled once for each cancel().
  Status take();
  // Runs the context, unless it was cancelled before.
  Status run(Context& context, const RunOptions& options);

 private:
  std::atomic<bool> cancelled_{false};
  Mutex mutex_;
  Context* running_ HEDDLE_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace heddle
