#include "run/run_scope.h"

#include "base/threads/clock.h"
#include "schedule/run_stop.h"

namespace heddle {

RunScope::RunScope(const StepGraph& graph, RunScope* outer, uint32_t outer_step) : graph_(graph), outer_(outer), outer_step_(outer_step) {}

// A caller that cancels sets the flag and then the stop word. All four accesses are in one total order, so at least one of the two is seen
// here. (No fence: ThreadSanitizer knows none.)
void RunScope::heed(const std::atomic<bool>& cancelled) {
  control_.stop.store(0, std::memory_order_seq_cst);
  if (cancelled.load(std::memory_order_seq_cst)) request_stop(control_.stop, stop_cancelled);
}

void RunScope::look_at_deadline() {
  if (ticks() >= control_.deadline_ticks) request_stop(control_.stop, stop_deadline);
}

bool RunScope::should_stop(uint32_t step) {
  bool stop = false;
  for (RunScope* scope = this; scope; step = scope->outer_step_, scope = scope->outer_) {
    if (step >= scope->graph_.tail_begin) return false;
    stop = scope->stop_requested() || stop;
  }
  return stop;
}

int64_t RunScope::count_subnet_run() {
  RunScope* outermost = this;
  while (outermost->outer_) outermost = outermost->outer_;
  return outermost->subnet_runs_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace heddle
