// Simulates how a graph would run on a number of threads: list scheduling, the ready step with the longest remaining path first. Used to
// choose between serial and parallel (run_mode.h), and as the reference of the scheduler bench. Pure; times in nanoseconds.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle {

// The dependences that a schedule obeys, and the order that it prefers. Borrowed arrays.
struct ScheduleGraph {
  uint32_t count = 0;
  const uint32_t* successor_begin = nullptr;  // count + 1
  const uint32_t* successors = nullptr;
  const uint32_t* predecessor_count = nullptr;
};

// The costs of threads beside the steps themselves. All zero: the ideal machine.
struct ScheduleOverheads {
  float step_ns = 0;      // each step
  float handover_ns = 0;  // a step that starts on another thread than the one that made it ready
  float split_ns = 0;     // a step whose tiles are shared
  float run_ns = 0;       // once, for the helpers to come
  float small_ns = 0;     // steps cheaper than this are never handed over: the thread that made them ready runs them at once
};

// Reused between simulations so that only the first allocates.
struct ScheduleWorkspace {
  struct Event {
    double at = 0;
    uint32_t step = 0;  // the step that ends; no_step: only the thread becomes free
    uint32_t thread = 0;
  };
  std::vector<uint32_t> pending;
  std::vector<uint32_t> ready;       // a heap by remaining path
  std::vector<uint32_t> small;       // a stack
  std::vector<uint32_t> made_ready;  // by step: the thread that did
  std::vector<Event> running;        // a heap by time
  std::vector<uint32_t> idle;        // threads
  void reserve(uint32_t steps, uint32_t threads);
};

// rank[s]: cost of the longest path from the begin of s to the end. Steps are numbered so that successors have larger indices.
void remaining_paths(const ScheduleGraph& graph, const float* cost_ns, float* rank);

// Wall time on `threads` threads. tiles[s] > 1: idle threads may share s (null: none can).
double simulate_schedule(const ScheduleGraph& graph, const float* cost_ns, const float* rank, const int64_t* tiles, uint32_t threads,
                         const ScheduleOverheads& overheads, ScheduleWorkspace& workspace);

}  // namespace heddle
