// Numbers as unsigned integers in the same order: compared by one instruction, and sorted digit by digit.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "shared/scalar.h"

namespace heddle::cpu {

// The integer of as many bits as T computes in. NaN counts as one number above all others, and the zeros are equal, as in ordered_less().
template <class T>
auto ordered_key(T value) {
  using A = operators::wide_t<T>;
  const A x = operators::to_arithmetic(value);
  if constexpr (std::is_floating_point_v<A>) {
    using Key = std::conditional_t<sizeof(A) == 8, uint64_t, uint32_t>;
    constexpr Key sign = Key{1} << (8 * sizeof(Key) - 1);
    Key bits;
    std::memcpy(&bits, &x, sizeof(bits));
    if (x == 0) bits = 0;
    const Key key = bits & sign ? static_cast<Key>(~bits) : bits | sign;
    return x != x ? std::numeric_limits<Key>::max() : key;
  } else {
    using Key = std::make_unsigned_t<A>;
    return static_cast<Key>(static_cast<Key>(x) ^ (std::is_signed_v<A> ? static_cast<Key>(Key{1} << (8 * sizeof(Key) - 1)) : Key{0}));
  }
}
template <class T>
using OrderedKey = decltype(ordered_key(T{}));

}  // namespace heddle::cpu
