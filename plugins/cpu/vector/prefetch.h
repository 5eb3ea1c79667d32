// Fetching rows of tables before their turn: they lie anywhere. For all instruction set levels.
#pragma once

#include <stdint.h>

namespace heddle::cpu {

// What lies so many bytes further on in the order of rows is fetched now.
constexpr int64_t bytes_fetched_ahead = 8192;

// The beginning of a row of so many bytes: behind it the processor has seen where it goes. Into the second cache, also what will be
// written: the first has few places for lines that are on their way, and what is fetched for it alone (as "non-temporal") is often gone
// before its turn.
static inline void prefetch_row(const void* row, int64_t bytes) {
  constexpr int64_t most = 512, line = 64;
  constexpr int for_reading = 0, second_cache = 2;
  const char* const at = static_cast<const char*>(row);
  for (int64_t i = 0; i < bytes && i < most; i += line) __builtin_prefetch(at + i, for_reading, second_cache);
  if (bytes > 0 && bytes <= most) __builtin_prefetch(at + bytes - 1, for_reading, second_cache);
}

}  // namespace heddle::cpu
