#include "schedule/serial_run.h"

#include <algorithm>
#include <chrono>

#include "base/threads/clock.h"
#include "schedule/run_stop.h"
#include "schedule/step_call.h"

namespace heddle {
namespace {

// The extras that a run requests beside its results; without any, the plain loop is used.
struct SerialExtras {
  RunControl& control;
  float* cost_ns = nullptr;               // set to how long each step took, nanoseconds
  SerialRun::Awaited* awaited = nullptr;  // null: the run is not observed, or has no asynchronous steps
  uint64_t deadline_ticks = 0;
  bool tail = false;      // in the update phase
  bool given_up = false;  // set when an asynchronous step was given up
  bool timed() const { return cost_ns || control.profile || deadline_ticks != 0; }
  bool none() const { return !timed() && !control.outer_stops && !control.seen; }
};

// Runs steps [s, end) until one fails or `stop` is set. `s` belongs to the caller, so that it is the current step when a step throws.
using SerialLoop = heddle_status (*)(const StepGraph&, const Step*, uint32_t& s, uint32_t end, std::atomic<uint32_t>& stop, SerialExtras&);

// No atomics beyond reading the stop word, no locks, no allocation. The checks of a loop are decided once per run: each combination is a
// loop of its own.
template <bool finishes>
heddle_status plain_loop(const StepGraph& graph, const Step* steps, uint32_t& s, uint32_t end, std::atomic<uint32_t>& stop, SerialExtras&) {
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

// Waits until the asynchronous step is done, or has not completed in time after the run was requested to stop.
heddle_status wait_for(SerialExtras& extras) {
  constexpr std::chrono::milliseconds look_again(2);
  SerialRun::Awaited& awaited = *extras.awaited;
  RunControl& control = extras.control;
  Patience patience;
  MutexLock lock(awaited.mutex);
  while (!awaited.over) {
    if (awaited.changed.wait_for(awaited.mutex, look_again)) continue;
    lock.unlock();  // plugins are called, which may complete the step
    if (control.look) control.look(control.user);
    const bool given_up = is_out_of_patience(patience, control, told_to_end(control), extras.tail);
    lock.lock();
    if (!given_up || awaited.over) continue;
    extras.given_up = true;
    return HEDDLE_ERROR_CANCELLED;
  }
  return awaited.status;
}

void begin_wait(SerialRun::Awaited& awaited) {
  const MutexLock lock(awaited.mutex);
  awaited.over = false;
}

heddle_status run_step(const StepGraph& graph, const Step* steps, uint32_t s, SerialExtras& extras) {
  const bool waits = extras.awaited && (graph.flags[s] & step_async) != 0;
  if (waits) begin_wait(*extras.awaited);
  heddle_status status = steps[s].run(steps[s].context, 0, steps[s].tiles);
  if (status == HEDDLE_OK && waits) status = wait_for(extras);
  if (status == HEDDLE_OK && !graph.finish.empty() && graph.finish[s]) status = graph.finish[s](steps[s].context);
  return status;
}

heddle_status watched_loop(const StepGraph& graph, const Step* steps, uint32_t& s, uint32_t end, std::atomic<uint32_t>& stop,
                           SerialExtras& extras) {
  const double scale = ns_per_tick();
  RunControl& control = extras.control;
  const bool timed = extras.timed();
  uint64_t before = timed ? ticks() : 0;
  for (; s < end; ++s) {
    if (control.outer_stops && control.outer_stops(control.user)) request_stop(stop, stop_cancelled);
    if (extras.deadline_ticks != 0 && before >= extras.deadline_ticks) request_stop(stop, stop_deadline);
    if (stop.load(std::memory_order_relaxed) != 0) return HEDDLE_OK;
    const heddle_status status = run_step(graph, steps, s, extras);
    uint64_t after = timed ? ticks() : 0;
    if (control.profile) control.profile[s] = {before, after, 1};
    if (status != HEDDLE_OK) return status;
    if (extras.cost_ns) extras.cost_ns[s] = static_cast<float>(static_cast<double>(after - before) * scale);
    if (control.seen) {
      if (!control.seen(control.user, s) && !extras.tail) return HEDDLE_OK;
      after = timed ? ticks() : 0;  // the observer's time is no step's
    }
    before = after;
  }
  return HEDDLE_OK;
}

}  // namespace

SerialRun::SerialRun(const StepGraph& graph) : graph_(graph) {
  const auto is_asynchronous = [](uint8_t flags) { return (flags & step_async) != 0; };
  if (std::any_of(graph.flags.begin(), graph.flags.end(), is_asynchronous)) awaited_ = std::make_unique<Awaited>();
}

SerialRun::End SerialRun::run(const Step* steps, RunControl& control, float* cost_ns) noexcept {
  SerialExtras extras = {control, cost_ns, awaited_.get(), control.deadline_ticks};
  const SerialLoop loop = !extras.none() ? watched_loop : graph_.finish.empty() ? plain_loop<false> : plain_loop<true>;
  uint32_t s = 0;
  heddle_status status = HEDDLE_OK;
  try {
    status = loop(graph_, steps, s, graph_.tail_begin, control.stop, extras);
    if (s < graph_.count && s == graph_.tail_begin && update_phase_begins(control)) {
      // From here on neither cancellation nor deadline stops the updates of variables.
      extras.deadline_ticks = 0;
      extras.tail = true;
      std::atomic<uint32_t> tail_stop{0};
      status = loop(graph_, steps, s, graph_.count, tail_stop, extras);
    }
  } catch (...) {
    status = say_threw(steps[s].context);
  }
  if (status != HEDDLE_OK) {
    if (control.failed) control.failed(control.user, s, status);
    request_stop(control.stop, stop_failed);
  }
  return {s == graph_.count, extras.given_up};
}

void SerialRun::complete(heddle_status status) noexcept {
  const MutexLock lock(awaited_->mutex);
  awaited_->over = true;
  awaited_->status = status;
  awaited_->changed.notify_all();  // under the lock: after it this object may be destroyed
}

}  // namespace heddle
