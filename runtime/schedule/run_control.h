// What one run hands to the scheduler beside the graph: the steps to call, and how the run is stopped and watched.
//
// The Step array belongs to one context, because each has views and scratch of its own.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/threads/fair_shared_mutex.h"
#include "base/threads/interruption.h"
#include "heddle/abi.h"
#include "schedule/step_graph.h"

namespace heddle {

// One step as the inner loop sees it: run(context, 0, tiles). Trampolines of the runtime stand in `run` for anything unusual.
struct Step {
  heddle_run_function run = nullptr;
  const heddle_run_context* context = nullptr;
  int64_t tiles = 1;
};

// Why a run stops. Written to RunControl::stop only where that is 0: the first reason stays.
enum : uint32_t { stop_cancelled = 1, stop_failed = 2, stop_deadline = 3 };

// What RunControl::profile points to, one per step. A step that several threads share has one span.
struct StepSpan {
  uint64_t begin = 0;    // ticks; 0: the step did not run
  uint64_t end = 0;      // ticks when its last tile and its finish function were done
  uint64_t workers = 0;  // bit w: worker w took part; workers from 63 on share bit 63
};

// How a run goes on that leaves its thread when all that is left of it is asynchronous: `go_on` is called once, on any thread, each time
// that there is something to do. It returns quickly and arranges one resume() on a thread that may work. Null: the run stays on its thread.
struct RunLeave {
  void (*go_on)(void* user) = nullptr;
  void* user = nullptr;
};

// One run's outside world. Reset by the context before each run.
struct RunControl {
  std::atomic<uint32_t> stop{0};  // non-zero, a stop_*: start nothing new (cancelled, deadline, failure)
  uint64_t deadline_ticks = 0;    // in base/threads/clock.h ticks; 0: none. Checked between steps and tile ranges
  StepSpan* profile = nullptr;    // one per step, written as steps run; null: off
  // Reports a failed step (its text was left with the step's context). Called under no lock, by any executing thread.
  void (*failed)(void* user, uint32_t step, heddle_status status) = nullptr;
  // The run is told to end while asynchronous steps are under way: they are to be told, those of the tail only with `all`, and so are runs
  // inside steps that have left their thread. Called by the thread that waits for them; null: there are none.
  void (*end_soon)(void* user, bool all) = nullptr;
  // All before the tail is done, nothing is under way, and in a moment it is decided whether the tail begins: who was told to end by then
  // has set `stop` before. Null: nobody needs to know.
  void (*tail_begins)(void* user) = nullptr;
  // Asked now and then by the thread that waits for asynchronous steps: whether what they wait for is broken; it then sets `stop`, or
  // completes what has failed without a word. Also when the run has been told to end. Null: nothing breaks.
  void (*look)(void* user) = nullptr;
  // Of a run inside a step of another one: whether that one is to end. Asked between steps, and now and then while it waits on a thread;
  // who ends the outer run wakes those that have left theirs. Null: there is none.
  bool (*outer_stops)(void* user) = nullptr;
  void* user = nullptr;
  // What the thread that called run holds: helpers work in its name.
  FairSharedMutex::Hold* holds = nullptr;
};

}  // namespace heddle
