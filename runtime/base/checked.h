// Size arithmetic on untrusted numbers: 64-bit, signed, and never wrapping silently.
#pragma once

#include <cstdint>

namespace heddle {

inline bool checked_add(int64_t a, int64_t b, int64_t* sum) {
  return !__builtin_add_overflow(a, b, sum);
}
inline bool checked_multiply(int64_t a, int64_t b, int64_t* product) {
  return !__builtin_mul_overflow(a, b, product);
}
// Returns the next multiple of `alignment` (a power of two); saturates at INT64_MAX rounded down.
inline int64_t align_up(int64_t n, int64_t alignment) {
  int64_t sum = 0;
  if (!checked_add(n, alignment - 1, &sum)) return INT64_MAX & ~(alignment - 1);
  return sum & ~(alignment - 1);
}

}  // namespace heddle
