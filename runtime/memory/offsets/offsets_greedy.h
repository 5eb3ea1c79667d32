// Greedy packing over explicit conflicts: buffers in a given order, each in the best gap between those placed before; and repair of
// that order by hill climbing. Private to the planner.
#pragma once

#include "memory/offsets/offsets_items.h"

namespace heddle::offsets {

struct Packing {
  std::vector<int64_t> offsets;
  int64_t height = INT64_MAX;
  const char* method = "";
};

enum class Gap : uint8_t { lowest, smallest };

// The orders that are worth trying, best first: "area", "size", "life", "load", "first".
struct NamedOrder {
  const char* name;
  std::vector<uint32_t> items;
};
std::vector<NamedOrder> greedy_orders(const Items& items, const Conflicts& conflicts);

// Keeps the memory that passes reuse. Holds references: items and conflicts must outlive it.
class Greedy {
 public:
  Greedy(const Items& items, const Conflicts& conflicts) : items_(items), conflicts_(conflicts), offsets_(items.size()) {}
  // Places all items in `order` (a permutation). Returns the height; offsets() returns the offsets until the next pass. INT64_MAX when
  // `effort` was stopped meanwhile; nothing is spent.
  int64_t pass(std::span<const uint32_t> order, Gap gap, Effort* effort);
  std::span<const int64_t> offsets() const { return offsets_; }

 private:
  int64_t place(uint32_t item, Gap gap);

  const Items& items_;
  const Conflicts& conflicts_;
  std::vector<int64_t> offsets_;  // -1: not placed
  std::vector<std::pair<int64_t, int64_t>> taken_;
};

// Improves `best` while it is higher than `target` and effort lasts: raises the priority of the topmost items and of those that they rest
// on. Pseudo-random from a constant seed.
void climb(const Items& items, const Conflicts& conflicts, std::vector<uint32_t> order, int64_t target, Effort* effort, Packing* best);

}  // namespace heddle::offsets
