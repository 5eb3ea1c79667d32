// First packings that cost O(n log n): best fit in step order, and skylines. Private to the planner.
#pragma once

#include "memory/offsets/offsets_items.h"

namespace heddle::offsets {

// Places items in the order of their first steps, each in the smallest free piece that holds it, as an allocator would; bytes of a dead
// buffer are free for another only if it is before it. Writes items.size() offsets. Returns the height. Once `effort` is stopped the rest
// are placed on top, each above the other: there is always a packing.
int64_t pack_best_fit(const Items& items, Effort* effort, std::span<int64_t> offsets);

enum class SkylineOrder : uint8_t { longest_life, largest_area };
// Places items in `order`, each on top of all placed that overlap its [first, settled) and never below. Returns the height, INT64_MAX when
// `effort` was stopped meanwhile.
int64_t pack_skyline(const Items& items, SkylineOrder order, Effort* effort, std::span<int64_t> offsets);

}  // namespace heddle::offsets
