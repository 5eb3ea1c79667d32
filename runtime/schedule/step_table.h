// StepTable: the data of the parallel scheduler about each step, laid out in the order of reading: a copy of the graph's edges (successors
// sorted by what to do first), predecessor counts, and from the costs the rank of each step and how to treat it.
//
// Built once per context; costs change between runs only. Edges into the update phase from before it are left out: it begins when all steps
// before it are done.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/list_schedule.h"
#include "schedule/ready_list.h"
#include "schedule/run_control.h"

namespace heddle {

class StepTable {
 public:
  enum : uint8_t {
    one_predecessor = 1,  // ready as soon as its one predecessor is done: no counting
    small = 2,            // costs more to hand over than to run: run at once by the thread that made it ready
    lengthy = 4,          // while it runs, nothing else that is ready may be hidden in a thread's own list
    shared = 8,           // its tiles are worth sharing
    asynchronous = 16,
    awaited = 32,    // never run, never made ready by its predecessor
    resolves = 64,   // see step_resolves
    suspends = 128,  // see step_suspends
  };
  struct Entry {
    uint32_t first = 0;  // successors()[first .. last): the steps that the step makes ready
    uint32_t last = 0;
    float rank_ns = 0;  // the longest remaining path, its own cost included
    float cost_ns = 0;
    uint32_t tile_slot = 0;  // with `shared`: 1 + index among the steps that have tiles
    uint8_t flags = 0;
  };

  explicit StepTable(const StepGraph& graph);

  // Sets the costs of single-threaded runs; 0: unknown. `steps` for their tile counts. Allocates on the first call only.
  void set_costs(const Step* steps, const float* cost_ns);

  uint32_t count() const { return static_cast<uint32_t>(entries_.size()); }
  const Entry& operator[](uint32_t step) const { return entries_[step]; }
  const uint32_t* successors() const { return successors_.data(); }
  // The state of the steps at the begin of each run.
  const std::vector<StepNode>& initial_nodes() const { return initial_nodes_; }
  // Steps without predecessors before the update phase, and in it; sorted like successors.
  const std::vector<uint32_t>& roots() const { return roots_; }
  const std::vector<uint32_t>& tail_roots() const { return tail_roots_; }
  uint32_t tiled_steps() const { return tiled_steps_; }
  // Whether any step is asynchronous, awaited, or may suspend.
  bool has_asynchronous() const { return has_asynchronous_; }
  // Returns the least number of tiles that a thread should take, so that a range is not all overhead.
  uint32_t min_tiles(uint32_t step, int64_t units) const;

  ScheduleGraph schedule_graph() const { return {count(), begin_.data(), successors_.data(), predecessor_count_.data()}; }

  // Thresholds, nanoseconds, measured on two cores (hand-over 0.1 to 0.4 us, break-even 0.2 to 0.3 us).
  static constexpr float unknown_cost_ns = 10000;
  static constexpr float small_ns = 250;
  static constexpr float lengthy_ns = 2000;
  static constexpr float shared_ns = 4000;
  static constexpr float min_range_ns = 2500;

 private:
  void sort(std::vector<uint32_t>::iterator first, std::vector<uint32_t>::iterator last);

  std::vector<Entry> entries_;
  std::vector<uint32_t> begin_;
  std::vector<uint32_t> successors_;
  std::vector<uint32_t> predecessor_count_;
  std::vector<StepNode> initial_nodes_;
  std::vector<uint32_t> roots_;
  std::vector<uint32_t> tail_roots_;
  std::vector<float> cost_;
  std::vector<float> rank_;
  uint32_t tiled_steps_ = 0;
  bool numbered_ = false;
  bool has_asynchronous_ = false;
};

}  // namespace heddle
