// RunSettings: the caller's settings for one run of an execution.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "base/threads/clock.h"
#include "heddle/caller_stream.h"
#include "heddle/status.h"
#include "schedule/run_control.h"

namespace heddle {

struct RunSettings {
  uint64_t seed = 0;
  int64_t step = 0;             // for random operators, where the net has no step counter of its own
  uint64_t trip = 0;            // for a subnet: heddle_run_state::trip
  int64_t deadline_ns = 0;      // from asked_ticks on; 0: none; negative: it has passed
  uint64_t asked_ticks = 0;     // when the run was requested, in base/threads/clock.h ticks; 0: when it begins
  StepSpan* profile = nullptr;  // one per step; null: off
  RangeTimes* tiles = nullptr;  // only beside `profile`
  // Set before cancel() is called, so that a cancellation counts even if it comes before the run begins. Null: only runs under way are
  // cancelled.
  const std::atomic<bool>* cancelled = nullptr;
  std::span<const CallerStream> streams;  // on which the caller produces the run's inputs; borrowed until the run is over
  uint64_t finite_outputs = 0;            // RunOptions::finite_outputs
  // For dumps, numeric checks and comparisons: the steps run serially and this is called after each; a failing status ends the run.
  const std::function<Status(uint32_t step)>* observer = nullptr;
  // Returns the deadline in ticks; 0: none.
  uint64_t deadline() const {
    if (deadline_ns <= 0) return deadline_ns < 0 ? 1 : 0;
    return (asked_ticks ? asked_ticks : ticks()) + ns_to_ticks(static_cast<double>(deadline_ns));
  }
};

}  // namespace heddle
