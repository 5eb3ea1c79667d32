// A bound on how long an operation may take: a deadline, and a flag that cancels it. Compiling a net has that of the run that requested it,
// and so have the waits of the run, for its turn and for copies.
//
// This is the only use of a clock in the stages: it can end a stage, and never changes its result.
#pragma once

#include <atomic>
#include <cstdint>

#include "heddle/status.h"

namespace heddle {

// How long devices and asynchronous steps have to complete once a run is requested to stop, before it ends without them: when its caller
// requested it, and when a step failed or updates of variables have begun.
constexpr double answer_after_stop_ns = 100e6;
constexpr double answer_after_failure_ns = 5e9;

class Interruption {
 public:
  Interruption() = default;  // never interrupts
  // `deadline_ticks` is in ticks of base/threads/clock.h, 0: none. `cancelled` is borrowed, null: it can not be cancelled.
  explicit Interruption(uint64_t deadline_ticks, const std::atomic<bool>* cancelled = nullptr)
      : deadline_ticks_(deadline_ticks), cancelled_(cancelled) {}

  bool cancelled() const { return cancelled_ && cancelled_->load(); }
  // In base/threads/clock.h ticks; 0: none.
  uint64_t deadline_ticks() const { return deadline_ticks_; }
  // For stages, which poll it between their steps, where it costs little; an error discards the work done so far. Errors:
  // deadline_exceeded, cancelled.
  Status status() const;

 private:
  uint64_t deadline_ticks_ = 0;
  const std::atomic<bool>* cancelled_ = nullptr;
};

}  // namespace heddle
