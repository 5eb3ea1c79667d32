// Filling memory with one element.
#pragma once

#include <algorithm>
#include <cstdint>

#include "shared/tile_cap.h"
#include "support/moved_block.h"

namespace heddle::cpu {

// Writes `count` copies of the element of `width` (1, 2, 4 or 8) bytes at `value`.
inline void fill_elements(void* target, int64_t width, const void* value, int64_t count) {
  if (count > 0) isa_moves().repeat[width_index(width)](target, value, count);
}
// May be gigabytes: unfinished when `poll` stops.
inline void fill_elements(void* target, int64_t width, const void* value, int64_t count, operators::CancellationPoll& poll) {
  constexpr int64_t between = operators::CancellationPoll::between;
  for (int64_t first = 0; first < count; first += between) {
    const int64_t n = std::min(between, count - first);
    if (poll.stops(n / 4)) return;
    fill_elements(static_cast<char*>(target) + first * width, width, value, n);
  }
}

}  // namespace heddle::cpu
