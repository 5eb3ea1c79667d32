// Vectors of f32 from 16-bit floats in memory: for the loops of one instruction set level. Stateless; any thread.
#pragma once

#include <stdint.h>

#include "vector/half.h"
#include "vector/simd.h"

namespace heddle::cpu::HEDDLE_ISA {

struct Half {
  uint16_t bits;
};
struct BrainHalf {
  uint16_t bits;
};

// Loads as many elements as a vector of f32 has.
template <class T>
static inline VF load_narrow(const T* x) {
  const VU bits = __builtin_convertvector(load<typename VectorOf<uint16_t, vector_bytes / 2>::type>(x), VU);
  if constexpr (__is_same(T, BrainHalf))
    return cast_bits<VF>(bits << 16);
  else
    return half_to_float<VF>(bits);
}

}  // namespace heddle::cpu::HEDDLE_ISA
