#include "memory/offsets/offsets_improve.h"

#include <algorithm>
#include <bit>

namespace heddle::offsets {
namespace {

constexpr int64_t whole_gap = 1024;
constexpr int64_t half_gap = whole_gap / 2;

// The sequence 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ... (Luby, Sinclair, Zuckerman 1993), from i = 1
int64_t luby(uint64_t i) {
  while (true) {
    const auto width = static_cast<unsigned>(std::bit_width(i));
    if (i == (uint64_t{1} << width) - 1) return int64_t{1} << (width - 1);
    i -= (uint64_t{1} << (width - 1)) - 1;
  }
}

}  // namespace

bool Improver::step(int64_t target, Effort* effort) {
  target = std::max(target, proven_);
  switch (steps_++) {
    case 0:
      if (!prepare(effort)) return false;
      try_greedy(target, effort);
      return true;
    case 1:
      climb_for(target, std::min(effort->left() / 4, 32 * slice()), effort);
      return true;
    default:
      if (items_.size() > SearchSpace::max_items || steps_ % 64 == 0)
        climb_for(target, 4 * slice(), effort);
      else
        search_next(target, effort);
      return true;
  }
}

bool Improver::prepare(Effort* effort) {
  // Finding conflicts costs four operations a pair; its memory is bounded by the effort that is left.
  if (!find_conflicts(items_, effort->left() / 8, effort, &conflicts_)) return false;
  if (!effort->spend(4 * static_cast<int64_t>(items_.size() + conflicts_.list.size()))) return false;
  if (items_.size() > SearchSpace::max_items) return true;
  space_ = make_search_space(items_, conflicts_);
  proven_ = space_->clique_bytes;
  return true;
}

void Improver::try_greedy(int64_t target, Effort* effort) {
  Greedy greedy(items_, conflicts_);
  const int64_t cost = 12 * static_cast<int64_t>(items_.size() + conflicts_.list.size());
  const std::vector<NamedOrder> orders = greedy_orders(items_, conflicts_);
  start_ = orders[0].items;
  int64_t lowest = INT64_MAX;
  for (const Gap gap : {Gap::smallest, Gap::lowest}) {
    for (const NamedOrder& order : orders) {
      if (best_.height <= target || !effort->spend(cost)) return;
      const int64_t height = greedy.pass(order.items, gap, effort);
      if (height < lowest) {
        lowest = height;
        start_ = order.items;
      }
      if (height >= best_.height) continue;
      best_.height = height;
      best_.offsets.assign(greedy.offsets().begin(), greedy.offsets().end());
      best_.method = order.name;
    }
  }
}

void Improver::climb_for(int64_t target, int64_t units, Effort* effort) {
  effort->share(units, [&](Effort& part) {
    climb(items_, conflicts_, start_, target, &part, &best_);
    return 0;
  });
}

// Runs many short searches and a few longer ones, the same length in each kind of ranking; every other one at the target, the rest at a
// height between target and best that moves towards the heights that succeed.
void Improver::search_next(int64_t target, Effort* effort) {
  constexpr uint64_t max_growth = 8;
  if (!rankings_) {
    rankings_.emplace(items_);
    aim_ = half_gap;
  }
  const uint64_t run = steps_ - 2;
  const uint64_t round = (run - 1) / Rankings::kinds + 1;
  // A ranking without noise is the likeliest to lead to a packing: the longest searches so far are made in those.
  const double spread = std::has_single_bit(round + 1) ? 0 : Rankings::spreads[round % std::size(Rankings::spreads)];
  const int64_t units = slice() * luby(round) * static_cast<int64_t>(std::min(max_growth, round));
  if (run % 2 == 1) {
    try_search(target, spread, units, effort);
    return;
  }
  const auto gap = static_cast<double>(best_.height - target);
  const auto above = static_cast<int64_t>(gap * static_cast<double>(aim_) / static_cast<double>(whole_gap));
  aim_ = try_search(target + above, spread, units, effort) ? half_gap : aim_ + (whole_gap - aim_) / 4;
}

bool Improver::try_search(int64_t height, double spread, int64_t units, Effort* effort) {
  const Ranking ranking = rankings_->next(spread);
  const int64_t aim = std::min(height, best_.height - 1);
  const SearchResult result = effort->share(units, [&](Effort& part) { return search(*space_, ranking, aim, &part, &best_); });
  if (result.outcome == SearchOutcome::exhausted) proven_ = std::max(proven_, std::min(result.proven, best_.height));
  return result.outcome == SearchOutcome::found;
}

}  // namespace heddle::offsets
