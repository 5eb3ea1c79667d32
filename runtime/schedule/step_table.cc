#include "schedule/step_table.h"

#include <algorithm>

namespace heddle {

StepTable::StepTable(const StepGraph& graph)
    : entries_(graph.count), begin_(graph.count + 1), predecessor_count_(graph.count), cost_(graph.count), rank_(graph.count) {
  initial_nodes_.reserve(graph.count);
  successors_.reserve(graph.successors.size());
  for (uint32_t s = 0; s < graph.count; ++s) {
    begin_[s] = static_cast<uint32_t>(successors_.size());
    for (uint32_t e = graph.successor_begin[s]; e < graph.successor_begin[s + 1]; ++e) {
      const uint32_t next = graph.successors[e];
      if (s < graph.tail_begin && next >= graph.tail_begin) continue;
      successors_.push_back(next);
      ++predecessor_count_[next];
    }
    entries_[s].first = begin_[s];
  }
  begin_[graph.count] = static_cast<uint32_t>(successors_.size());
  for (uint32_t s = 0; s < graph.count; ++s) {
    initial_nodes_.push_back({predecessor_count_[s], no_step});
    if (predecessor_count_[s] == 0) (s < graph.tail_begin ? roots_ : tail_roots_).push_back(s);
    if (predecessor_count_[s] == 1) entries_[s].flags |= one_predecessor;
    if (!graph.flags.empty() && (graph.flags[s] & step_async) != 0) entries_[s].flags |= asynchronous;
    if (!graph.flags.empty() && (graph.flags[s] & step_awaited) != 0) entries_[s].flags |= asynchronous | awaited;
    if (!graph.flags.empty() && (graph.flags[s] & step_resolves) != 0) entries_[s].flags |= resolves;
    if (!graph.flags.empty() && (graph.flags[s] & step_suspends) != 0) entries_[s].flags |= suspends;
    if ((entries_[s].flags & (asynchronous | suspends)) != 0) has_asynchronous_ = true;
  }
  // Awaited successors count for the cost of the path after a step; sort() puts them after the successors that the step makes ready.
  const auto is_awaited = [this](uint32_t next) { return (entries_[next].flags & awaited) != 0; };
  for (uint32_t s = 0; s < graph.count; ++s) {
    const auto first = successors_.begin() + begin_[s], last = successors_.begin() + begin_[s + 1];
    entries_[s].last = begin_[s + 1] - static_cast<uint32_t>(std::count_if(first, last, is_awaited));
  }
}

void StepTable::set_costs(const Step* steps, const float* cost_ns) {
  for (uint32_t s = 0; s < count(); ++s) {
    Entry& entry = entries_[s];
    if (!numbered_ && steps[s].tiles > 1) entry.tile_slot = ++tiled_steps_;
    entry.cost_ns = cost_[s] = cost_ns[s] > 0 ? cost_ns[s] : unknown_cost_ns;
    entry.flags &= one_predecessor | asynchronous | awaited | resolves | suspends;
    // To start an asynchronous step is little work, and the work that it starts should begin early.
    if (entry.cost_ns < small_ns || (entry.flags & asynchronous) != 0) entry.flags |= small;
    if (entry.cost_ns >= lengthy_ns && (entry.flags & asynchronous) == 0) entry.flags |= lengthy;
    if (entry.cost_ns >= shared_ns && entry.tile_slot != 0 && (entry.flags & asynchronous) == 0) entry.flags |= shared;
  }
  numbered_ = true;
  remaining_paths(schedule_graph(), cost_.data(), rank_.data());
  for (uint32_t s = 0; s < count(); ++s) entries_[s].rank_ns = rank_[s];
  for (uint32_t s = 0; s < count(); ++s) sort(successors_.begin() + begin_[s], successors_.begin() + begin_[s + 1]);
  sort(roots_.begin(), roots_.end());
  sort(tail_roots_.begin(), tail_roots_.end());
}

// Sorts awaited steps last; small steps first, for the steps that they make ready; then by remaining path; then by plan order, which makes
// the order total.
void StepTable::sort(std::vector<uint32_t>::iterator first, std::vector<uint32_t>::iterator last) {
  std::sort(first, last, [this](uint32_t a, uint32_t b) {
    const int awaited_a = entries_[a].flags & awaited;
    const int awaited_b = entries_[b].flags & awaited;
    if (awaited_a != awaited_b) return awaited_a < awaited_b;
    const int small_a = entries_[a].flags & small;
    const int small_b = entries_[b].flags & small;
    if (small_a != small_b) return small_a > small_b;
    if (entries_[a].rank_ns != entries_[b].rank_ns) return entries_[a].rank_ns > entries_[b].rank_ns;
    return a < b;
  });
}

uint32_t StepTable::min_tiles(uint32_t step, int64_t units) const {
  const double share = min_range_ns / entries_[step].cost_ns * static_cast<double>(units);
  return static_cast<uint32_t>(std::clamp(share, 1.0, static_cast<double>(units)));
}

}  // namespace heddle
