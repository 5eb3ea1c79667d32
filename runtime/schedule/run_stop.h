// How a run is stopped: who requested it, and how long asynchronous steps then have.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/threads/clock.h"
#include "base/threads/interruption.h"
#include "base/threads/patience.h"
#include "schedule/run_control.h"

namespace heddle {

// Requests a run to stop; the first reason is kept.
inline void request_stop(std::atomic<uint32_t>& stop, uint32_t reason) noexcept {
  uint32_t running = 0;
  stop.compare_exchange_strong(running, reason, std::memory_order_relaxed);
}

// Whether the run was requested to stop: by `stop`, by its outer run, or because its deadline has passed.
inline bool stop_requested(RunControl& control) noexcept {
  if (control.stop.load() != 0) return true;
  if (control.outer_stops && control.outer_stops(control.user)) {
    request_stop(control.stop, stop_cancelled);
    return true;
  }
  if (control.deadline_ticks == 0 || ticks() < control.deadline_ticks) return false;
  request_stop(control.stop, stop_deadline);
  return true;
}

// Decides whether the update phase begins. Call it when all steps before that are done.
inline bool update_phase_begins(RunControl& control) noexcept {
  return control.tail_begins ? control.tail_begins(control.user) : !stop_requested(control);
}

// For a wait for asynchronous steps: signals them to end if that is due, and returns true if they are to be given up. `ends`: whether
// the run was requested to stop. In the update phase (`tail`) variables are at stake, and a failed step is no evidence against the steps
// that still run: they have more time, and are signalled last.
inline bool tell_or_give_up(Patience& patience, RunControl& control, bool ends, bool tail) noexcept {
  if (tail && control.updating) {
    const bool updating = control.updating(control.user);
    if (updating) patience.begin_again();
    tail = updating;
  }
  const bool patient = tail || control.stop.load(std::memory_order_relaxed) == stop_failed;
  const Patience::Limits limits = {patient ? answer_after_failure_ns : answer_after_stop_ns, tail ? answer_after_stop_ns : 0};
  for (;;) {
    const Patience::Act act = patience.look(ticks(), ends, limits);
    if (act == Patience::Act::wait || act == Patience::Act::give_up) return act == Patience::Act::give_up;
    if (control.end_soon) control.end_soon(control.user, act == Patience::Act::tell_all);
  }
}

}  // namespace heddle
