// What the scheduler runs: steps in plan order, their dependences, and how a run is stopped.
//
// Flat arrays, no pointers to chase. A StepGraph is immutable and shared by all run contexts of a plan; the Step array belongs to one run
// context, because each has views and scratch of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "heddle/abi.h"

namespace heddle {

// One step as the inner loop sees it: run(context, 0, tiles). Trampolines of the runtime stand in `run` for anything unusual.
struct Step {
  heddle_run_function run = nullptr;
  const heddle_run_context* context = nullptr;
  int64_t tiles = 1;
};

enum : uint8_t {
  // run() only starts the step; somebody calls Scheduler::complete(step, status) later, from any thread (device notifications).
  step_async = 1,
  // Begins the tail of variable updates: see StepGraph::tail_begin.
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

// Why a run stops. Whoever finds 0 in RunControl::stop writes the reason; the first one stays.
enum : uint32_t { stop_cancelled = 1, stop_failed = 2, stop_deadline = 3 };

// What RunControl::profile points to, one per step. A step that several threads share has one span.
struct StepSpan {
  uint64_t begin = 0;    // ticks; 0: the step did not run
  uint64_t end = 0;      // ticks when its last tile and its finish function were done
  uint64_t workers = 0;  // bit w: worker w took part; workers from 63 on share bit 63
};

// One run's outside world. Reset by the run context before each run.
struct RunControl {
  std::atomic<uint32_t> stop{0};  // non-zero, a stop_*: start nothing new (cancelled, deadline, failure)
  uint64_t deadline_ticks = 0;    // in base/clock.h ticks; 0: none. Checked between steps and tile ranges
  StepSpan* profile = nullptr;    // one per step, written as steps run; null: off
  // Reports a failed step (its text was left with the step's context). Called under no lock, by any executing thread.
  void (*failed)(void* user, uint32_t step, heddle_status status) = nullptr;
  void* user = nullptr;
};

}  // namespace heddle
