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
#if defined(__AVX512F__)
  if constexpr (__is_same(T, Half)) return (VF)_mm512_maskz_cvtph_ps(0xffff, load<__m256i>(x));
  const VU bits = (VU)_mm512_maskz_cvtepu16_epi32(0xffff, load<__m256i>(x));
#elif defined(__AVX2__)
  if constexpr (__is_same(T, Half)) return (VF)_mm256_cvtph_ps(load<__m128i>(x));
  const VU bits = (VU)_mm256_cvtepu16_epi32(load<__m128i>(x));
#else
  const VU bits = __builtin_convertvector(load<typename VectorOf<uint16_t, vector_bytes / 2>::type>(x), VU);
#endif
  if constexpr (__is_same(T, BrainHalf))
    return cast_bits<VF>(bits << 16);
  else
    return half_to_float<VF>(bits);
}

// A vector of f32 from any of the three types.
static inline VF load_floats(const float* x) {
  return load<VF>(x);
}
template <class T>
static inline VF load_floats(const T* x) {
  return load_narrow(x);
}
// The first `count` lanes, fewer than a vector has, and those of `filler`.
static inline VF load_floats_part(const float* x, int64_t count, VF filler) {
  return load_part(x, count, filler);
}
template <class T>
static inline VF load_floats_part(const T* x, int64_t count, VF filler) {
  T narrow[lanes<float>] = {};
  __builtin_memcpy(narrow, x, static_cast<size_t>(count) * sizeof(T));
  float wide[lanes<float>];
  store(wide, load_narrow(narrow));
  return load_part(wide, count, filler);
}

}  // namespace heddle::cpu::HEDDLE_ISA
