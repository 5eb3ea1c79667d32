// The exact search: is there a packing of at most `target` bytes? Depth-first over canonical packings. Private to the planner.
//
// Follows MiniMalloc (Moffitt, ASPLOS 2023): buffers are placed in ascending (offset, rank), each as low as those placed before let it
// (canonical packings); one is never placed where another that is left out would have fitted below it (dominance); at every node each
// clique of buffers that pairwise interfere must still fit (inference: they are stacked in the order of their lowest offsets, which is the
// least that any order can reach); a problem that falls apart into groups that do not interfere is searched group by group.
#pragma once

#include "memory/offsets/offsets_dice.h"
#include "memory/offsets/offsets_greedy.h"

namespace heddle::offsets {

// The data that all searches of one part share. `items` and `conflicts` must outlive it.
struct SearchSpace {
  const Items* items = nullptr;
  const Conflicts* conflicts = nullptr;
  std::vector<std::vector<uint32_t>> cliques;  // cliques of items that pairwise interfere
  int64_t clique_bytes = 0;                    // bytes of the heaviest clique: a lower bound
  // The maximum number of items: adjacency is a bit matrix.
  static constexpr size_t max_items = 2048;
};
SearchSpace make_search_space(const Items& items, const Conflicts& conflicts);

enum class SearchOutcome : uint8_t {
  found,      // best->height <= target
  exhausted,  // there is no such packing
  spent       // out of effort
};
struct SearchResult {
  SearchOutcome outcome = SearchOutcome::spent;
  int64_t proven = 0;  // exhausted: no packing is lower than this (> target)
};
// The order in which items are tried at the same offset: if heaviest_first, those of the heaviest clique first (among the items still to be
// placed, whenever they fall apart into groups); then by descending weight, which differs from item to item.
struct Ranking {
  bool heaviest_first = false;
  std::vector<double> weight;
};
// Improves `best` when a packing is found.
SearchResult search(const SearchSpace& space, const Ranking& ranking, int64_t target, Effort* effort, Packing* best);

// An endless sequence of rankings to search in: by life, area and heaviest clique in turn, then the same with noise. The time to a packing
// is heavy-tailed in the ranking, so many short searches find one sooner than a long one.
class Rankings {
 public:
  explicit Rankings(const Items& items) : items_(items) {}
  Ranking next();

 private:
  const Items& items_;
  Dice dice_;
  size_t made_ = 0;
};

}  // namespace heddle::offsets
