// Calls of foreign code: the only place of the scheduler where an exception can arrive. Costs nothing when none does.
#pragma once

#include <new>
#include <string_view>

#include "heddle/abi.h"
#include "schedule/run_control.h"

namespace heddle {

// Call it in a catch block. Leaves the reason with the step, as a kernel that returns a status would, and returns the status.
inline heddle_status say_threw(const heddle_run_context* context) noexcept {
  heddle_status status = HEDDLE_ERROR_INTERNAL;
  std::string_view text = "threw an exception across the plugin boundary";
  try {
    throw;
  } catch (const std::bad_alloc&) {  // the plugin's own, or in a host function that it called
    status = HEDDLE_ERROR_OUT_OF_MEMORY;
    text = "out of memory";
  } catch (...) {
    // The default status and text are kept.
  }
  if (context->host) context->host->set_error(context->call, status, text.data(), text.size());
  return status;
}

inline heddle_status call_run(const Step& step, int64_t begin, int64_t end) noexcept {
  try {
    return step.run(step.context, begin, end);
  } catch (...) {
    return say_threw(step.context);
  }
}

// Calls the step's finish function, if it has one.
inline heddle_status call_finish(const StepGraph& graph, const Step& step, uint32_t index) noexcept {
  if (graph.finish.empty() || !graph.finish[index]) return HEDDLE_OK;
  try {
    return graph.finish[index](step.context);
  } catch (...) {
    return say_threw(step.context);
  }
}

}  // namespace heddle
