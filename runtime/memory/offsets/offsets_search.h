// The exact search: is there a packing of at most `target` bytes? Depth-first over canonical packings. Private to the planner.
//
// After MiniMalloc (Moffitt, ASPLOS 2023): buffers are placed in ascending (offset, rank), each as low as those placed before let it
// (canonical packings); one is never placed where another that is left out would have fitted below it (dominance); at every node each
// clique of buffers that pairwise interfere must still fit (inference: they are stacked in the order of their lowest offsets, which is
// the least that any order can reach); what falls apart into groups that do not interfere is searched group by group.
#pragma once

#include "memory/offsets/offsets_dice.h"
#include "memory/offsets/offsets_greedy.h"

namespace heddle::offsets {

// What all searches of one part share. `items` and `conflicts` outlive it.
struct SearchSpace {
  const Items* items = nullptr;
  const Conflicts* conflicts = nullptr;
  std::vector<std::vector<uint32_t>> cliques;  // of items that pairwise interfere
  int64_t clique_bytes = 0;                    // of the heaviest: a lower bound
  // At most this many items: adjacency is a bit matrix.
  static constexpr size_t max_items = 2048;
};
SearchSpace make_search_space(const Items& items, const Conflicts& conflicts);

enum class SearchOutcome : uint8_t {
  found,      // best->height <= target
  exhausted,  // there is none
  spent       // out of effort
};
struct SearchResult {
  SearchOutcome outcome = SearchOutcome::spent;
  int64_t proven = 0;  // exhausted: no packing is lower than this (> target)
};
// In which order items are tried at the same offset: those of the heaviest clique first (among what is still to be placed, whenever
// that falls apart), if asked; then by descending weight, which differs from item to item.
struct Ranking {
  bool heaviest_first = false;
  std::vector<double> weight;
};
// Improves `best` when a packing is found.
SearchResult search(const SearchSpace& space, const Ranking& ranking, int64_t target, Effort* effort, Packing* best);

// Rankings to search in, one after the other without end: by life, area and heaviest clique in turn, then the same with noise. The
// time to a packing is heavy-tailed in the ranking, so many short searches find one sooner than a long one.
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
