#include "memory/offsets/offsets_space.h"

#include <algorithm>

namespace heddle::offsets {
namespace {

// The largest part whose cliques are extended beyond the serial order.
constexpr size_t max_extended = 384;

std::vector<std::vector<uint32_t>> interval_cliques(const Items& items) {
  std::vector<std::vector<uint32_t>> cliques;
  std::vector<uint32_t> active;
  bool grown = false;
  for (uint32_t i = 0; i < items.size(); ++i) {
    const int64_t now = items.buffers[i].first;
    const auto dead = [&](uint32_t other) { return items.buffers[other].last <= now; };
    if (std::any_of(active.begin(), active.end(), dead)) {
      if (grown) cliques.push_back(active);
      std::erase_if(active, dead);
    }
    active.push_back(i);
    grown = true;
  }
  if (grown) cliques.push_back(active);
  return cliques;
}

// Adds the items that interfere with all members, the largest first.
void extend_clique(const SearchSpace& space, std::vector<uint32_t>* clique) {
  std::vector<uint32_t> seen(space.items->size(), 0);
  for (const uint32_t member : *clique)
    for (const uint32_t other : space.conflicts->of(member)) ++seen[other];
  while (true) {
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < seen.size(); ++i)
      if (seen[i] == clique->size() && (best == UINT32_MAX || space.items->buffers[i].bytes > space.items->buffers[best].bytes)) best = i;
    if (best == UINT32_MAX) break;
    clique->push_back(best);
    for (const uint32_t other : space.conflicts->of(best)) ++seen[other];
  }
  std::sort(clique->begin(), clique->end());
}

}  // namespace

SearchSpace make_search_space(const Items& items, const Conflicts& conflicts) {
  SearchSpace space{&items, &conflicts, interval_cliques(items), 0};
  // Serial cliques suffice for a correct result; extending them costs the cube of the size.
  if (items.interference != nullptr && items.size() <= max_extended) {
    for (uint32_t i = 0; i < items.size(); ++i) space.cliques.push_back({i});
    for (std::vector<uint32_t>& clique : space.cliques) extend_clique(space, &clique);
    std::sort(space.cliques.begin(), space.cliques.end());
    space.cliques.erase(std::unique(space.cliques.begin(), space.cliques.end()), space.cliques.end());
  }
  for (const std::vector<uint32_t>& clique : space.cliques) {
    int64_t bytes = 0;
    for (const uint32_t i : clique) bytes += items.buffers[i].bytes;
    space.clique_bytes = std::max(space.clique_bytes, bytes);
  }
  return space;
}

Ranking Rankings::next(double spread) {
  const size_t kind = made_++ % kinds;  // longest life; heaviest clique, then area; heaviest clique, then life
  Ranking ranking{kind != 0, {}};
  for (size_t i = 0; i < items_.size(); ++i) {
    const double life = static_cast<double>(items_.settled[i]) - static_cast<double>(items_.buffers[i].first);
    const double size = kind == 1 ? static_cast<double>(items_.buffers[i].bytes) : 1;
    ranking.weight.push_back(life * size * dice_.around_one(spread));
  }
  return ranking;
}

}  // namespace heddle::offsets
