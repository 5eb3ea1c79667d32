#include "run/serial_loop.h"

#include "base/clock.h"
#include "run/step_call.h"

namespace heddle {
namespace {

// What a loop checks is decided once per run: each combination is a loop of its own. `s` belongs to the caller, so that it still says
// where we are when a step throws.
template <bool finishes>
heddle_status plain_loop(const StepGraph& graph, const Step* steps, uint32_t& s, uint32_t end, const std::atomic<uint32_t>& stop) {
  uint32_t i = s;
  heddle_status status = HEDDLE_OK;
  for (; i < end; ++i) {
    s = i;
    if (stop.load(std::memory_order_relaxed) != 0) [[unlikely]]
      return HEDDLE_OK;
    status = steps[i].run(steps[i].context, 0, steps[i].tiles);
    if (status != HEDDLE_OK) [[unlikely]]
      return status;
    if constexpr (finishes) {
      if (graph.finish[i]) status = graph.finish[i](steps[i].context);
      if (status != HEDDLE_OK) [[unlikely]]
        return status;
    }
  }
  s = end;
  return HEDDLE_OK;
}

heddle_status watched_loop(const StepGraph& graph, const Step* steps, uint32_t& s, uint32_t end, std::atomic<uint32_t>& stop,
                           const SerialExtras& extras) {
  const double scale = ns_per_tick();
  uint64_t before = ticks();
  for (; s < end; ++s) {
    if (extras.deadline_ticks != 0 && before >= extras.deadline_ticks) request_stop(stop, stop_deadline);
    if (stop.load(std::memory_order_relaxed) != 0) return HEDDLE_OK;
    heddle_status status = steps[s].run(steps[s].context, 0, steps[s].tiles);
    if (status == HEDDLE_OK && !graph.finish.empty() && graph.finish[s]) status = graph.finish[s](steps[s].context);
    const uint64_t after = ticks();
    if (extras.profile) extras.profile[s] = {before, after, 1};
    if (status != HEDDLE_OK) return status;
    if (extras.cost_ns) extras.cost_ns[s] = static_cast<float>(static_cast<double>(after - before) * scale);
    before = after;
  }
  return HEDDLE_OK;
}

}  // namespace

uint32_t run_serially(const StepGraph& graph, const Step* steps, uint32_t begin, uint32_t end, RunControl& control,
                      std::atomic<uint32_t>& stop, const SerialExtras& extras) noexcept {
  uint32_t s = begin;
  heddle_status status = HEDDLE_OK;
  try {
    if (extras.cost_ns || extras.profile || extras.deadline_ticks != 0)
      status = watched_loop(graph, steps, s, end, stop, extras);
    else if (graph.finish.empty())
      status = plain_loop<false>(graph, steps, s, end, stop);
    else
      status = plain_loop<true>(graph, steps, s, end, stop);
  } catch (...) {
    status = say_threw(steps[s].context);
  }
  if (status != HEDDLE_OK) {
    if (control.failed) control.failed(control.user, s, status);
    request_stop(stop, stop_failed);
  }
  return s - begin;
}

}  // namespace heddle
