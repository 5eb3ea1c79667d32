// The arguments of one run of the scheduler beside the graph: the steps to call, and how the run is stopped and watched.
//
// The Step array belongs to one context, because each context has views and scratch of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/threads/fair_shared_mutex.h"
#include "base/threads/interruption.h"
#include "heddle/abi.h"
#include "schedule/step_graph.h"

namespace heddle {

// One step as the inner loop sees it: run(context, 0, tiles). For unusual steps `run` is a trampoline of the runtime.
struct Step {
  heddle_run_function run = nullptr;
  const heddle_run_context* context = nullptr;
  int64_t tiles = 1;
};

// Why a run stops. Written to RunControl::stop only if that is 0: the first reason is kept.
enum : uint32_t { stop_cancelled = 1, stop_failed = 2, stop_deadline = 3 };

// The times of a step, one per step in RunControl::profile. A step that several threads share has one span.
struct StepSpan {
  uint64_t begin = 0;    // ticks; 0: the step did not run
  uint64_t end = 0;      // ticks when its last tile and its finish function were done
  uint64_t workers = 0;  // bit w: worker w took part; workers from 63 on share bit 63
};

// A range of tiles of a step that one thread did in one call.
struct RangeTime {
  uint64_t begin = 0, end = 0;  // ticks
  uint32_t step = 0, worker = 0;
  int64_t first = 0, tiles = 0;
};

// Receives the ranges of tiles of a run, in no order, until it is full.
struct RangeTimes {
  std::span<RangeTime> spans;
  std::atomic<size_t> offered{0};  // may exceed the size of `spans`: the rest was left out
  void add(const RangeTime& span) noexcept {
    if (const size_t at = offered.fetch_add(1, std::memory_order_relaxed); at < spans.size()) spans[at] = span;
  }
};

// How a run continues that leaves its thread when only asynchronous steps are left: `go_on` is called once, on any thread, each time that
// there is something to do. It must return quickly and arrange one resume() on a thread that may work. Null: the run stays on its thread.
struct RunLeave {
  void (*go_on)(void* user) = nullptr;
  void* user = nullptr;
};

// Connects one run to its caller. Reset by the context before each run.
struct RunControl {
  std::atomic<uint32_t> stop{0};  // non-zero, a stop_*: start nothing new (cancelled, deadline, failure)
  uint64_t deadline_ticks = 0;    // in base/threads/clock.h ticks; 0: none. Checked between steps and tile ranges
  StepSpan* profile = nullptr;    // one per step, written as steps run; null: off
  RangeTimes* tiles = nullptr;    // only beside `profile`; null: off
  // Reports a failed step (its text was left with the step's context). Called by any executing thread, which holds no lock.
  void (*failed)(void* user, uint32_t step, heddle_status status) = nullptr;
  // Signals asynchronous steps under way, suspended runs inside steps, and devices to end, because the run was requested to stop; those of
  // the update phase only with `all`. Called by the thread that waits for them; null: there is nothing to signal.
  void (*end_soon)(void* user, bool all) = nullptr;
  // Decides whether the update phase begins. Called when all steps before it are done and nothing is under way. Null: it begins unless the
  // run was requested to stop.
  bool (*tail_begins)(void* user) = nullptr;
  // Whether updates may have begun, called in the update phase: those of a plan whose update phase joins on devices may still be held.
  // Null: they have.
  bool (*updating)(void* user) = nullptr;
  // Not null: the run is observed. Its steps run one after the other on the calling thread, which waits for each asynchronous step, and
  // this is called after each step. False: the run ends there, unless the update phase has begun.
  bool (*observe)(void* user, uint32_t step) = nullptr;
  // Called now and then by the thread that waits for asynchronous steps or for a device: checks whether what they wait for is broken, and
  // then sets `stop`, or completes steps whose failure was not reported. Also called when the run was requested to stop. Null: nothing can
  // break.
  void (*look)(void* user) = nullptr;
  // For a run inside a step of an outer run: whether the outer run was requested to stop. Called between steps, and now and then while it
  // waits on a thread; runs that have left their thread are woken by whatever stops the outer run. Null: there is no outer run.
  bool (*outer_stops)(void* user) = nullptr;
  void* user = nullptr;
  // The hold of the thread that called run(): helpers work on its behalf.
  FairSharedMutex::Hold* holds = nullptr;
};

}  // namespace heddle
