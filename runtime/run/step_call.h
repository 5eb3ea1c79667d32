// Calling foreign code: the only place of the scheduler where an exception can arrive. Costs nothing when none does.
#pragma once

#include "heddle/abi.h"
#include "run/step_graph.h"

namespace heddle {

inline heddle_status call_run(const Step& step, int64_t begin, int64_t end) noexcept {
  try {
    return step.run(step.context, begin, end);
  } catch (...) {
    return HEDDLE_ERROR_INTERNAL;
  }
}

// The step's finish function, if it has one.
inline heddle_status call_finish(const StepGraph& graph, const Step& step, uint32_t index) noexcept {
  if (graph.finish.empty() || !graph.finish[index]) return HEDDLE_OK;
  try {
    return graph.finish[index](step.context);
  } catch (...) {
    return HEDDLE_ERROR_INTERNAL;
  }
}

// The first reason stays.
inline void request_stop(std::atomic<uint32_t>& stop, uint32_t reason) noexcept {
  uint32_t running = 0;
  stop.compare_exchange_strong(running, reason, std::memory_order_relaxed);
}

}  // namespace heddle
