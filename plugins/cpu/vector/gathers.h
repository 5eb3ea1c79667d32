// Vectors of numbers from anywhere in memory: for the loops of one instruction set level. Stateless; any thread.
#pragma once

#include "vector/simd.h"

namespace heddle::cpu::HEDDLE_ISA {

// Loads base[positions[i]] for each lane i.
static inline VF gathered(const float* base, const int32_t* positions) {
#if defined(__AVX512F__)
  return (VF)_mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xffff, load<__m512i>(positions), base, 4);
#elif defined(__AVX2__)
  return (VF)_mm256_mask_i32gather_ps(_mm256_setzero_ps(), base, load<__m256i>(positions), _mm256_castsi256_ps(_mm256_set1_epi32(-1)), 4);
#else
  return VF{base[positions[0]], base[positions[1]], base[positions[2]], base[positions[3]]};
#endif
}
static inline VD gathered(const double* base, const int32_t* positions) {
#if defined(__AVX512F__)
  return (VD)_mm512_mask_i32gather_pd(_mm512_setzero_pd(), 0xff, load<__m256i>(positions), base, 8);
#elif defined(__AVX2__)
  return (VD)_mm256_mask_i32gather_pd(_mm256_setzero_pd(), base, load<__m128i>(positions), _mm256_castsi256_pd(_mm256_set1_epi64x(-1)), 8);
#else
  return VD{base[positions[0]], base[positions[1]]};
#endif
}

}  // namespace heddle::cpu::HEDDLE_ISA
