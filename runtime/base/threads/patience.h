// Patience: how long to wait for work once an end was requested. The work is signalled to end. If it has not completed in time, it is
// signalled again, together with the work that was spared the first time; then the wait is given up.
//
// It has no clock and does not wait: the thread that waits calls look() with the time of base/threads/clock.h, does what the result says,
// and sleeps until until() at the latest. Used by one thread at a time.
#pragma once

#include <cstdint>

#include "base/threads/clock.h"

namespace heddle {

class Patience {
 public:
  // Names what the caller of look() must do now.
  enum class Act : uint8_t {
    wait,      // nothing
    tell,      // signal the work to end, except what may not be interrupted yet, and look again
    tell_all,  // signal all the work to end, and look again
    give_up,   // stop waiting
  };
  // How long the work has to complete, in nanoseconds: after the first signal and after the second.
  struct Limits {
    double after_tell_ns = 0;
    double after_tell_all_ns = 0;
  };

  // Begins a wait.
  void begin() { *this = Patience(); }
  // Begins anew, once in each wait: the work has come to a part that has more time.
  void begin_again() {
    if (again_) return;
    *this = Patience();
    again_ = true;
  }
  // `ends`: whether an end was requested. `limits` sets the limit of a signal that is due now; limits of earlier signals stay.
  Act look(uint64_t now, bool ends, const Limits& limits) {
    if (state_ == State::waiting) {
      if (!ends) return Act::wait;
      state_ = State::told;
      until_ = now + ns_to_ticks(limits.after_tell_ns);
      return Act::tell;
    }
    if (now < until_) return Act::wait;
    if (state_ == State::told_all) return Act::give_up;
    state_ = State::told_all;
    until_ = now + ns_to_ticks(limits.after_tell_all_ns);
    return Act::tell_all;
  }
  // For work that cannot be signalled: looks, and returns whether to stop waiting. `after_request_ns`: how long the work has to complete.
  bool is_over(uint64_t now, bool ends, double after_request_ns) {
    Act act = Act::tell;
    while (act == Act::tell || act == Act::tell_all) act = look(now, ends, {after_request_ns, 0});
    return act == Act::give_up;
  }
  // Whether an end was requested at an earlier look.
  bool told() const { return state_ != State::waiting; }
  // In ticks: when the next limit passes; 0: nothing limits the wait yet.
  uint64_t until() const { return until_; }

 private:
  enum class State : uint8_t { waiting, told, told_all };
  State state_ = State::waiting;
  bool again_ = false;
  uint64_t until_ = 0;
};

}  // namespace heddle
