// Prefetching rows of tables, which lie anywhere. For all instruction set levels.
#pragma once

#include <stdint.h>

namespace heddle::cpu {

// The distance of prefetches: the row so many bytes later in the order of rows.
constexpr int64_t bytes_fetched_ahead = 8192;

// Prefetches the beginning of a row of `bytes` bytes: after that the processor has recognised the access pattern. Prefetches into the
// second cache, also data that will be written: the first has few places for lines that are on their way, and lines prefetched into it
// alone (as "non-temporal") are often evicted before their use.
static inline void prefetch_row(const void* row, int64_t bytes) {
  constexpr int64_t most = 512, line = 64;
  constexpr int for_reading = 0, second_cache = 2;
  const char* const at = static_cast<const char*>(row);
  for (int64_t i = 0; i < bytes && i < most; i += line) __builtin_prefetch(at + i, for_reading, second_cache);
  if (bytes > 0 && bytes <= most) __builtin_prefetch(at + bytes - 1, for_reading, second_cache);
}

}  // namespace heddle::cpu
