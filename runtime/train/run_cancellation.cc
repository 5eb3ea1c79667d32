#include "train/run_cancellation.h"

namespace heddle {

void RunCancellation::cancel(bool at_once) {
  cancelled_.store(true);
  if (!at_once) return;
  const MutexLock lock(mutex_);
  if (running_) running_->cancel();
}

Status RunCancellation::take() {
  return cancelled_.exchange(false) ? Status(Code::cancelled, "the training was cancelled") : Status();
}

Status RunCancellation::run(Context& context, const RunOptions& options) {
  HEDDLE_CHECK(take());
  {
    const MutexLock lock(mutex_);
    running_ = &context;
  }
  Status status = context.run(options);
  const MutexLock lock(mutex_);
  running_ = nullptr;
  if (status.code() == Code::cancelled) cancelled_.store(false);  // this was the answer to it
  return status;
}

}  // namespace heddle
