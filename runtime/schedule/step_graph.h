// StepGraph: the steps of a plan as the scheduler sees them: plan order, dependences, first guesses of cost.
//
// Flat arrays, no pointers to chase. Immutable, shared by all contexts of a plan and safe to read from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/abi.h"

namespace heddle {

enum : uint8_t {
  // run() only starts the step; Scheduler::complete(step, status) is called later, on any thread (device notifications).
  step_async = 1,
  // Not run by the engine: its one predecessor calls Scheduler::expect(step) in its run(), and the device's notify calls complete()
  // later, on any thread. Its successors wait for the work that the predecessor started, while other successors of that continue.
  step_awaited = 2,
  // Its tiles are known only when it is begun: run(context, 0, 0) resolves them before any tile is run. A call that runs all tiles at once
  // needs no such call before it.
  step_resolves = 4,
  // It may run other graphs, whose steps want threads of this run (Scheduler's `outer`).
  step_hosts = 8,
  // Hosts runs with asynchronous steps: run() may return HEDDLE_PENDING when nothing else is left of one. For each such return
  // complete(step, HEDDLE_PENDING) is called once, on any thread, possibly before run() has returned, but not before its kernel has; run()
  // is then called again, possibly on another thread. One tile.
  step_suspends = 16,
};

struct StepGraph {
  uint32_t count = 0;
  // Successors of step s: successors[successor_begin[s] .. successor_begin[s + 1]), all with larger indices.
  std::vector<uint32_t> successor_begin;
  std::vector<uint32_t> successors;
  std::vector<uint32_t> predecessor_count;
  std::vector<float> cost_ns;                  // first guess of one single-threaded run of each step; 0: unknown
  std::vector<uint8_t> flags;                  // step_*
  std::vector<heddle_finish_function> finish;  // called once after all tiles of a step; null: none. May be empty: none at all
  // Steps from here on are variable updates (commit=late): they start when all before are done and none failed, and neither
  // cancellation nor deadline stops them.
  uint32_t tail_begin = 0;  // == count: none
};

}  // namespace heddle
