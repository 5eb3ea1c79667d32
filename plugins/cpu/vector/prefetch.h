// Fetching rows of tables before their turn: they lie anywhere. For all instruction set levels.
#pragma once

#include <stdint.h>

namespace heddle::cpu {

// What lies so many bytes further on in the order of rows is fetched now.
constexpr int64_t bytes_fetched_ahead = 4096;

// The beginning of a row of so many bytes: behind it the processor has seen where it goes. `writes`: it will be written,
// and not asked for again soon.
template <bool writes = false>
static inline void prefetch_row(const void* row, int64_t bytes) {
  constexpr int64_t most = 512, line = 64;
  constexpr int locality = writes ? 0 : 3;
  const char* const at = static_cast<const char*>(row);
  for (int64_t i = 0; i < bytes && i < most; i += line) __builtin_prefetch(at + i, writes, locality);
  if (bytes > 0 && bytes <= most) __builtin_prefetch(at + bytes - 1, writes, locality);
}

}  // namespace heddle::cpu
