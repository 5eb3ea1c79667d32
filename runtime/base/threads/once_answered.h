// A run that was requested to stop may leave work, which ends soon after it: until then variables are busy.
#pragma once

#include <chrono>
#include <thread>

#include "base/threads/clock.h"
#include "base/threads/interruption.h"
#include "heddle/status.h"

namespace heddle {

// Calls `act` until it is not answered with busy, for answer_after_failure_ns at most, and returns what it answered last.
template <class Act>
Status once_answered(const Act& act) {
  const uint64_t until = ticks() + ns_to_ticks(answer_after_failure_ns);
  for (;;) {
    Status status = act();
    if (status.code() != Code::busy || ticks() >= until) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace heddle
