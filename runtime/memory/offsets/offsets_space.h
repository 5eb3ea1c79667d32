// The data that the searches of one part share, and the orders they are made in. Private to the planner.
#pragma once

#include "memory/offsets/offsets_dice.h"
#include "memory/offsets/offsets_items.h"

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

// The order in which items are tried at the same offset: if heaviest_first, those of the heaviest clique first (among the items still to be
// placed, whenever they fall apart into groups); then by descending weight, which differs from item to item.
struct Ranking {
  bool heaviest_first = false;
  std::vector<double> weight;
};
// An endless sequence of rankings to search in: by life, area and heaviest clique in turn, with or without noise. The time to a packing is
// heavy-tailed in the ranking, so many short searches find one sooner than a long one.
class Rankings {
 public:
  static constexpr size_t kinds = 3;
  static constexpr double spreads[] = {0.15, 0.3, 0.15, 0.6};  // of the noise, worth trying in turn
  explicit Rankings(const Items& items) : items_(items) {}
  Ranking next(double spread);

 private:
  const Items& items_;
  Dice dice_;
  size_t made_ = 0;
};

}  // namespace heddle::offsets
