// The judge of every other way to run: steps in plan order on the calling thread. No atomics beyond reading the stop word, no locks, no
// allocation; about 1.2 ns a step.
#pragma once

#include <cstdint>

#include "run/step_graph.h"

namespace heddle {

// What a run wants beside its results. None of it: the plain loop.
struct SerialExtras {
  float* cost_ns = nullptr;  // writes how long each step took, nanoseconds
  StepSpan* profile = nullptr;
  uint64_t deadline_ticks = 0;
};

// Runs steps [begin, end) until one fails, `stop` is set or the deadline passes (which sets it). Reports a failure through control.failed
// and sets `stop`. Returns how many steps finished. The graph has no asynchronous steps.
uint32_t run_serially(const StepGraph& graph, const Step* steps, uint32_t begin, uint32_t end, RunControl& control,
                      std::atomic<uint32_t>& stop, const SerialExtras& extras) noexcept;

}  // namespace heddle
