#include "schedule/awaited_step.h"

#include <chrono>

#include "base/threads/patience.h"
#include "schedule/run_stop.h"

namespace heddle {

void AwaitedStep::begin() {
  const MutexLock lock(mutex_);
  over_ = false;
}

heddle_status AwaitedStep::wait(RunControl& control, bool tail, bool* given_up) {
  constexpr std::chrono::milliseconds look_again(2);
  Patience patience;
  MutexLock lock(mutex_);
  while (!over_) {
    if (changed_.wait_for(mutex_, look_again)) continue;
    lock.unlock();  // plugins are called, which may complete the step
    if (control.look) control.look(control.user);
    const bool is_over = tell_or_give_up(patience, control, stop_requested(control), tail);
    lock.lock();
    if (!is_over || over_) continue;
    *given_up = true;
    return HEDDLE_ERROR_CANCELLED;
  }
  return status_;
}

void AwaitedStep::complete(heddle_status status) noexcept {
  const MutexLock lock(mutex_);
  over_ = true;
  status_ = status;
  changed_.notify_all();  // under the lock: after it this object may be destroyed
}

}  // namespace heddle
