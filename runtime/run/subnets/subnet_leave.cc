// Runs of subnets that give their thread back while only asynchronous steps are left of them.
//
// The step whose kernel requested the run is suspended meanwhile. The thread that has something for the run to do makes the scheduler run
// the step again: its kernel requests the same run once more, and the run continues on that thread, helped by others as before.
#include <thread>
#include <utility>

#include "base/threads/alarm.h"
#include "run/execution.h"
#include "run/subnets/subnets.h"

namespace heddle {

void Subnets::begin(bool may_leave) {
  if (!any_leave_) return;
  may_leave_ = may_leave && Alarm::prepare();
  told_.store(Told::nothing);
}

bool Subnets::start(Leave& leave, const RunSettings& settings, Status* status) {
  const auto woken = [](void* user) {
    auto& l = *static_cast<Leave*>(user);
    if (l.state.on(LeaveRules::Event::wake) == LeaveState::State::due) l.all.scheduler_.complete(l.step, HEDDLE_PENDING);
  };
  leave.state.on(LeaveRules::Event::start);
  bool over = true;
  try {
    over = leave.execution->start(settings, {woken, &leave}, status);
  } catch (...) {  // without memory to open the run, which has not begun
    end(leave);
    throw;
  }
  return over ? end(leave) : leave_thread(leave);
}

bool Subnets::resume(Leave& leave, Status* status) {
  leave.state.on(LeaveRules::Event::resume);
  return leave.execution->resume(status) ? end(leave) : leave_thread(leave);
}

// Marks the run as suspended. It does not continue before the kernel has returned.
bool Subnets::leave_thread(Leave& leave) {
  leave.state.on(LeaveRules::Event::leave);
  // The run may have begun after tell(), which then has not seen it.
  if (const Told told = told_.load(); told != Told::nothing) leave.execution->end_with_outer(told == Told::to_end_updates);
  return false;
}

// Changes the state first and looks at the tellers second; tell() counts itself first and looks at the state second.
bool Subnets::end(Leave& leave) {
  leave.state.on(LeaveRules::Event::over);
  while (leave.tellers.load() != 0) std::this_thread::yield();
  return true;
}

heddle_status Subnets::call(uint32_t step, heddle_status (*kernel)(const heddle_run_context* context, bool resumed),
                            const heddle_run_context* context) {
  Leave& leave = *steps_[step].leave;
  const bool recalled = leave.state.state() == LeaveState::State::due;
  if (recalled) leave.state.on(LeaveRules::Event::call);
  if (leave.mistake == HEDDLE_OK) return settle(leave, kernel(context, recalled));
  Status ignored;
  if (!resume(leave, &ignored)) return settle(leave, HEDDLE_PENDING);
  if (leave.execution->left_work()) left_work_.store(true);
  return std::exchange(leave.mistake, HEDDLE_OK);
}

// Returns the status of the step for the status that the kernel returned.
heddle_status Subnets::settle(Leave& leave, heddle_status answer) {
  const auto wrong = [&](const char* what) {
    failures_.note(leave.step, HEDDLE_ERROR_INTERNAL, what);
    return HEDDLE_ERROR_INTERNAL;
  };
  if (!leave.state.is_away()) return answer == HEDDLE_PENDING ? wrong("is pending, and waits for no subnet") : answer;
  if (answer == HEDDLE_OK) answer = wrong("is done, and a subnet of it is under way");
  if (answer == HEDDLE_PENDING && !leave.state.has_left()) answer = wrong("is pending, and has not asked for its subnet again");
  if (answer != HEDDLE_PENDING) leave.mistake = answer;
  if (leave.state.on(LeaveRules::Event::kernel_returned) == LeaveState::State::due) scheduler_.complete(leave.step, HEDDLE_PENDING);
  return HEDDLE_PENDING;
}

// Signals without a lock: plugins are called, which may do anything.
void Subnets::tell(bool all) {
  if (!any_leave_) return;
  const Told level = all ? Told::to_end_updates : Told::to_end;
  Told before = told_.load();
  do {
    if (before >= level) return;
  } while (!told_.compare_exchange_weak(before, level));
  for (const OfStep& of : steps_) {
    if (!of.leave) continue;
    Leave& leave = *of.leave;
    leave.tellers.fetch_add(1);
    if (leave.state.state() != LeaveState::State::none) leave.execution->end_with_outer(all);
    leave.tellers.fetch_sub(1);
  }
}

}  // namespace heddle
