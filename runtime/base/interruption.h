// Whether work that may take long should go on: compiling a net is under the deadline of the run that asked for it, and under whatever else
// may call it off. Asked between steps, where it costs little; what has been done so far is dropped.
//
// The one use of a clock in the stages: it can end one, and never changes what one makes.
#pragma once

#include <atomic>
#include <cstdint>

#include "heddle/status.h"

namespace heddle {

class Interruption {
 public:
  Interruption() = default;  // never
  // `deadline_ticks` as base/clock.h counts, 0: none. `cancelled` is borrowed, null: it can not be cancelled.
  explicit Interruption(uint64_t deadline_ticks, const std::atomic<bool>* cancelled = nullptr)
      : deadline_ticks_(deadline_ticks), cancelled_(cancelled) {}

  // Errors: deadline_exceeded, cancelled.
  Status status() const;

 private:
  uint64_t deadline_ticks_ = 0;
  const std::atomic<bool>* cancelled_ = nullptr;
};

}  // namespace heddle
