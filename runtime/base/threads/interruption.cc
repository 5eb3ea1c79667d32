#include "base/threads/interruption.h"

#include "base/threads/clock.h"

namespace heddle {

Status Interruption::status() const {
  if (cancelled()) return {Code::cancelled, "the run was cancelled while its net was prepared"};
  if (deadline_ticks_ != 0 && ticks() >= deadline_ticks_)
    return {Code::deadline_exceeded, "the deadline passed while the net was prepared",
            "prepare the context before the run, or allow more time"};
  return {};
}

}  // namespace heddle
