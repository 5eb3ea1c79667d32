// The state of the subnet run that a step which may suspend has requested: whether it is under way, on which thread, and when the step is
// run again for it (subnet_leave.cc).
#pragma once

#include <array>

#include "base/threads/state_machine.h"

namespace heddle {

struct LeaveRules {
  enum class State : uint8_t {
    none,           // no run of a subnet is under way
    running,        // it works on the step's thread
    running_woken,  // it was woken between its decision to leave the thread and the event `leave`
    left,           // it has left the thread; the step's kernel has not returned yet
    left_woken,     // likewise, and there is something to do for it
    suspended,      // the kernel has returned, and nothing is to do
    due,            // there is something to do: the scheduler is told to run the step again
    recalled,       // the step is run again, and its kernel has not requested the run again yet
    count,
  };
  enum class Event : uint8_t {
    start,            // the kernel requests the run of a subnet
    over,             // the run is over
    leave,            // only asynchronous steps are left of it: it gives its thread back
    wake,             // [any thread] there is something to do for it
    kernel_returned,  // the kernel has returned
    call,             // the scheduler runs the step again
    resume,           // the run continues, on the thread that runs the step now
    count,
  };
  static constexpr const char* name = "subnet run";
  static constexpr std::array<const char*, 8> state_names = {"none",       "running",   "running_woken", "left",
                                                             "left_woken", "suspended", "due",           "recalled"};
  static constexpr std::array<const char*, 7> event_names = {"start", "over", "leave", "wake", "kernel_returned", "call", "resume"};
  static constexpr std::array<Transition<State, Event>, 12> table = {{
      {State::none, Event::start, State::running},
      {State::running, Event::over, State::none},
      {State::running, Event::leave, State::left},
      {State::running, Event::wake, State::running_woken},
      {State::running_woken, Event::leave, State::left_woken},
      {State::left, Event::wake, State::left_woken},
      {State::left, Event::kernel_returned, State::suspended},
      {State::left_woken, Event::kernel_returned, State::due},
      {State::suspended, Event::wake, State::due},
      {State::due, Event::call, State::recalled},
      {State::recalled, Event::resume, State::running},
      // By mistake the kernel has not requested the run again: the step is run once more, without its kernel.
      {State::recalled, Event::kernel_returned, State::due},
  }};
};

class LeaveState final : public StateMachine<LeaveRules> {
 public:
  // Whether the run is not on the thread of the kernel's current call: it has left it, or has not been requested again.
  bool is_away() const noexcept { return has_left() || state() == State::recalled; }
  // Whether the run has left its thread in the current call of the kernel.
  bool has_left() const noexcept { return state() == State::left || state() == State::left_woken; }
};

}  // namespace heddle
