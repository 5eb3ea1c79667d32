// f16 as f32, of numbers and of vectors of them: for the loops of one instruction set level. Stateless; any thread.
#pragma once

#include <stdint.h>

namespace heddle::cpu {

template <class Bits, class T>
static inline Bits bits_of(T value) {
  static_assert(sizeof(Bits) == sizeof(T));
  Bits bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// `half`: the bits of an f16, in integers of 32 bits. F: float, or a vector of as many.
template <class F, class U>
static inline F half_to_float(U half) {
  // Exponent and mantissa shifted into place, then rescaled by 2^112: denormals come out normalised.
  const U magnitude = (half & 0x7fffu) << 13;
  const U finite = bits_of<U>(bits_of<F>(magnitude) * 0x1p112f), special = magnitude + ((255u - 31u) << 23);
  return bits_of<F>((magnitude >= (0x7c00u << 13) ? special : finite) | (half & 0x8000u) << 16);
}

}  // namespace heddle::cpu
