// Lowering one part's packing, a step at a time. Private to the planner.
#pragma once

#include <optional>

#include "memory/offsets/offsets_search.h"

namespace heddle::offsets {

// Starts from a packing of `items` and lowers it: greedy orders first, then a hill climb, then exact searches in many orders.
// `items` point into Parts that outlive it. Not movable: its members refer to each other.
class Improver {
 public:
  Improver(const Items& items, Packing first) : items_(items), best_(std::move(first)) {}
  Improver(const Improver&) = delete;
  Improver& operator=(const Improver&) = delete;

  // Does the next step: aims at `target`, need not go below it. Returns false when there is no next step (too large for the effort left).
  bool step(int64_t target, Effort* effort);
  const Packing& best() const { return best_; }
  // Returns a proven lower bound of this part's height; 0 when none is known.
  int64_t proven() const { return proven_; }

 private:
  // Effort of the shortest search.
  int64_t slice() const { return 4000 * static_cast<int64_t>(items_.size() + 50); }
  bool prepare(Effort* effort);
  void try_greedy(int64_t target, Effort* effort);
  void climb_for(int64_t target, int64_t units, Effort* effort);
  void search_next(int64_t target, Effort* effort);
  bool try_search(int64_t height, double spread, int64_t units, Effort* effort);

  const Items items_;
  Packing best_;
  int64_t proven_ = 0;
  Conflicts conflicts_;
  std::vector<uint32_t> start_;  // the greedy order that packed lowest
  std::optional<SearchSpace> space_;
  std::optional<Rankings> rankings_;
  uint64_t steps_ = 0;
  int64_t aim_ = 0;  // position in the gap between target and best, in 1/1024
};

}  // namespace heddle::offsets
