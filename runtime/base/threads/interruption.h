// Until when something may take: a deadline, and a flag that calls it off. Compiling a net is under that of the run that asked for it, and
// so are the waits of the run, for its turn and for copies.
//
// The one use of a clock in the stages: it can end one, and never changes what one makes.
#pragma once

#include <atomic>
#include <cstdint>

#include "heddle/status.h"

namespace heddle {

// How long devices and asynchronous steps have to answer once a run is told to end, before it ends without them: when its caller wants it
// to, and when a step failed or updates of variables have begun.
constexpr double answer_after_stop_ns = 100e6;
constexpr double answer_after_failure_ns = 5e9;

class Interruption {
 public:
  Interruption() = default;  // never
  // `deadline_ticks` as base/threads/clock.h counts, 0: none. `cancelled` is borrowed, null: it can not be cancelled.
  explicit Interruption(uint64_t deadline_ticks, const std::atomic<bool>* cancelled = nullptr)
      : deadline_ticks_(deadline_ticks), cancelled_(cancelled) {}

  bool cancelled() const { return cancelled_ && cancelled_->load(); }
  // In base/threads/clock.h ticks; 0: none.
  uint64_t deadline_ticks() const { return deadline_ticks_; }
  // For stages, which ask between their steps, where it costs little; what has been done so far is dropped. Errors: deadline_exceeded,
  // cancelled.
  Status status() const;

 private:
  uint64_t deadline_ticks_ = 0;
  const std::atomic<bool>* cancelled_ = nullptr;
};

}  // namespace heddle
