// Runs of subnets that give their thread back while nothing but asynchronous steps is left of them.
//
// The step whose kernel asked for the run is pending meanwhile. Whoever has something for the run to do has the scheduler run the step
// again: its kernel asks for the same run once more, and the run goes on there, on that thread, helped by others as before.
#include <utility>

#include "base/alarm.h"
#include "run/execution.h"
#include "run/subnets.h"

namespace heddle {

void Subnets::begin(bool may_leave) {
  may_leave_ = may_leave && Alarm::prepare();
}

// The lock is for tell(): everything else is the step's own.
bool Subnets::start(Leave& leave, Execution& execution, const RunSettings& settings, Status* status) {
  const auto woken = [](void* user) {
    auto& l = *static_cast<Leave*>(user);
    if ((l.state.fetch_or(Leave::woken) & Leave::returned) != 0) l.all.scheduler_.complete(l.step, HEDDLE_PENDING);
  };
  leave.state.store(0);
  {
    const std::lock_guard lock(telling_);
    leave.running = &execution;
  }
  leave.left = !execution.start(settings, {woken, &leave}, status);
  if (leave.left) return false;
  const std::lock_guard lock(telling_);
  leave.running = nullptr;
  return true;
}

bool Subnets::resume(Leave& leave, Status* status) {
  leave.state.store(0);
  if (!leave.running->resume(status)) return false;
  leave.left = false;
  const std::lock_guard lock(telling_);
  leave.running = nullptr;
  return true;
}

heddle_status Subnets::call(uint32_t step, heddle_status (*kernel)(const heddle_run_context* context, bool resumed),
                            const heddle_run_context* context) {
  Leave& leave = *steps_[step].leave;
  if (leave.broken == HEDDLE_OK) return settle(leave, kernel(context, leave.left));
  Status ignored;
  if (!resume(leave, &ignored)) return settle(leave, HEDDLE_PENDING);
  return std::exchange(leave.broken, HEDDLE_OK);
}

// What the kernel's answer means for the step.
heddle_status Subnets::settle(Leave& leave, heddle_status answer) {
  if (!leave.left) {
    if (answer != HEDDLE_PENDING) return answer;
    failures_.note(leave.step, HEDDLE_ERROR_INTERNAL, "is pending, and no subnet of it is under way");
    return HEDDLE_ERROR_INTERNAL;
  }
  if (answer != HEDDLE_PENDING) {
    leave.broken = answer == HEDDLE_OK ? HEDDLE_ERROR_INTERNAL : answer;
    if (answer == HEDDLE_OK) failures_.note(leave.step, HEDDLE_ERROR_INTERNAL, "is done, and a subnet of it is under way");
  }
  if ((leave.state.fetch_or(Leave::returned) & Leave::woken) != 0) scheduler_.complete(leave.step, HEDDLE_PENDING);
  return HEDDLE_PENDING;
}

void Subnets::tell() {
  const std::lock_guard lock(telling_);
  for (const OfStep& of : steps_)
    if (of.leave && of.leave->running) of.leave->running->end_with_outer();
}

}  // namespace heddle
