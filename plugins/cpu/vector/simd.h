// Vectors of one instruction set level, for files compiled with heddle_isa_sources: GCC/Clang vector types for arithmetic, comparison
// and selection (`mask ? a : b`), and the few instructions those types have no operator for.
//
// Everything lives in the namespace of its level or is static; nothing here may be included by a file compiled once.
#pragma once

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include <utility>

namespace heddle::cpu::HEDDLE_ISA {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

template <class T, int bytes = vector_bytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(bytes)));
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));

using VF = Vector<float>;
using VI = Vector<int32_t>;
using VU = Vector<uint32_t>;
using VD = Vector<double>;
using VL = Vector<int64_t>;
// A vector with as many floats as a vector has doubles.
using HF = VectorOf<float, vector_bytes / 2>::type;
using HI = VectorOf<int32_t, vector_bytes / 2>::type;

// The integer vector that comparisons of T vectors give.
template <class T>
struct MaskOf;
template <>
struct MaskOf<float> {
  using type = VI;
};
template <>
struct MaskOf<double> {
  using type = VL;
};
template <>
struct MaskOf<int32_t> {
  using type = VI;
};
template <>
struct MaskOf<int64_t> {
  using type = VL;
};
template <>
struct MaskOf<uint64_t> {
  using type = VL;
};
template <>
struct MaskOf<uint8_t> {
  using type = Vector<int8_t>;
};
template <class T>
using Mask = typename MaskOf<T>::type;

template <class V>
static inline V load(const void* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
template <class V>
static inline void store(void* p, V v) {
  __builtin_memcpy(p, &v, sizeof(v));
}
template <class To, class From>
static inline To cast_bits(From v) {
  static_assert(sizeof(To) == sizeof(From));
  return (To)v;
}
// The first `count` lanes, fewer than a vector has, from memory of which no more is read; the others are those of `filler`.
static inline VF load_part(const float* p, int64_t count, VF filler) {
#if defined(__AVX512F__)
  return (VF)_mm512_mask_loadu_ps((__m512)filler, static_cast<__mmask16>((1u << count) - 1), p);
#elif defined(__AVX2__)
  const __m256i wanted = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  return (VF)_mm256_blendv_ps((__m256)filler, _mm256_maskload_ps(p, wanted), _mm256_castsi256_ps(wanted));
#else
  for (int i = 0; i < 3; ++i)
    if (i < count) filler[i] = p[i];
  return filler;
#endif
}
// Writes the first `count` lanes, fewer than a vector has.
static inline void store_part(float* p, VF v, int64_t count) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), (__m512)v);
#elif defined(__AVX2__)
  _mm256_maskstore_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
                      (__m256)v);
#else
  for (int i = 0; i < 3; ++i)
    if (i < count) p[i] = v[i];
#endif
}

// The same number in all lanes. Uses a list, from which GCC makes one broadcast: setting lanes one by one gives a chain of inserts.
template <class V, class T, size_t... lane>
static inline V splat_lanes(T value, std::index_sequence<lane...>) {
  return V{(static_cast<void>(lane), value)...};
}
template <class V, class T>
static inline V splat(T value) {
  return splat_lanes<V>(value, std::make_index_sequence<sizeof(V) / sizeof(T)>());
}

// The number at p, in all lanes, by one instruction: splat() is for numbers that loops do not change.
static inline VF splat_from(const float* p) {
#if defined(__AVX512F__)
  return (VF)_mm512_set1_ps(*p);
#elif defined(__AVX2__)
  return (VF)_mm256_broadcast_ss(p);
#else
  return (VF)_mm_set1_ps(*p);
#endif
}
static inline VD splat_from(const double* p) {
#if defined(__AVX512F__)
  return (VD)_mm512_set1_pd(*p);
#elif defined(__AVX2__)
  return (VD)_mm256_broadcast_sd(p);
#else
  return (VD)_mm_set1_pd(*p);
#endif
}

// a * b + c, fused where the level has the instruction.
static inline VF fma(VF a, VF b, VF c) {
#if defined(__AVX512F__)
  return (VF)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (VF)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}
static inline VD fma(VD a, VD b, VD c) {
#if defined(__AVX512F__)
  return (VD)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__)
  return (VD)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
  return a * b + c;
#endif
}
static inline VF fma(VF a, VF b, float c) {
  return fma(a, b, splat<VF>(c));
}
static inline VD fma(VD a, VD b, double c) {
  return fma(a, b, splat<VD>(c));
}

// Square root and rounding; `round` to nearest, halves to even.
#if defined(__AVX512F__)
static inline VF sqrt(VF x) {
  return (VF)_mm512_maskz_sqrt_ps(0xffff, (__m512)x);
}
static inline VD sqrt(VD x) {
  return (VD)_mm512_maskz_sqrt_pd(0xff, (__m512d)x);
}
#define HEDDLE_ROUNDING_(name, mode)                                                    \
  static inline VF name(VF x) {                                                         \
    return (VF)_mm512_maskz_roundscale_ps(0xffff, (__m512)x, mode | _MM_FROUND_NO_EXC); \
  }                                                                                     \
  static inline VD name(VD x) {                                                         \
    return (VD)_mm512_maskz_roundscale_pd(0xff, (__m512d)x, mode | _MM_FROUND_NO_EXC);  \
  }
#elif defined(__AVX2__)
static inline VF sqrt(VF x) {
  return (VF)_mm256_sqrt_ps((__m256)x);
}
static inline VD sqrt(VD x) {
  return (VD)_mm256_sqrt_pd((__m256d)x);
}
#define HEDDLE_ROUNDING_(name, mode)                                  \
  static inline VF name(VF x) {                                       \
    return (VF)_mm256_round_ps((__m256)x, mode | _MM_FROUND_NO_EXC);  \
  }                                                                   \
  static inline VD name(VD x) {                                       \
    return (VD)_mm256_round_pd((__m256d)x, mode | _MM_FROUND_NO_EXC); \
  }
#else
static inline VF sqrt(VF x) {
  return (VF)_mm_sqrt_ps((__m128)x);
}
static inline VD sqrt(VD x) {
  return (VD)_mm_sqrt_pd((__m128d)x);
}
#define HEDDLE_ROUNDING_(name, mode)                               \
  static inline VF name(VF x) {                                    \
    return (VF)_mm_round_ps((__m128)x, mode | _MM_FROUND_NO_EXC);  \
  }                                                                \
  static inline VD name(VD x) {                                    \
    return (VD)_mm_round_pd((__m128d)x, mode | _MM_FROUND_NO_EXC); \
  }
#endif
HEDDLE_ROUNDING_(floor, _MM_FROUND_TO_NEG_INF)
HEDDLE_ROUNDING_(ceil, _MM_FROUND_TO_POS_INF)
HEDDLE_ROUNDING_(round, _MM_FROUND_TO_NEAREST_INT)
#undef HEDDLE_ROUNDING_

static inline VF abs(VF x) {
  return cast_bits<VF>(cast_bits<VI>(x) & 0x7fffffff);
}
static inline VD abs(VD x) {
  return cast_bits<VD>(cast_bits<VL>(x) & 0x7fffffffffffffff);
}
// |magnitude| with the sign of `sign`.
static inline VF copy_sign(VF magnitude, VF sign) {
  return cast_bits<VF>((cast_bits<VI>(magnitude) & 0x7fffffff) | (cast_bits<VI>(sign) & static_cast<int32_t>(0x80000000)));
}
// The instructions of minima and maxima, of numbers and of vectors of any width that the level has: where either side is a NaN, or both are
// equal, the result is `b`.
#define HEDDLE_EXTREME_(name, instruction, compare)                                                             \
  template <class V>                                                                                            \
  static inline V name(V a, V b) {                                                                              \
    if constexpr (sizeof(V) <= sizeof(double)) {                                                                \
      return a compare b ? a : b;                                                                               \
    } else if constexpr (sizeof(V) == 16) {                                                                     \
      if constexpr (sizeof(V{}[0]) == sizeof(float)) return (V)_mm_##instruction##_ps((__m128)a, (__m128)b);    \
      if constexpr (sizeof(V{}[0]) == sizeof(double)) return (V)_mm_##instruction##_pd((__m128d)a, (__m128d)b); \
    } else {                                                                                                    \
      HEDDLE_WIDE_EXTREME_(instruction)                                                                         \
    }                                                                                                           \
  }
#if defined(__AVX512F__)
#define HEDDLE_WIDE_EXTREME_(instruction)                                                                                    \
  if constexpr (sizeof(V) == 32) {                                                                                           \
    if constexpr (sizeof(V{}[0]) == sizeof(float)) return (V)_mm256_##instruction##_ps((__m256)a, (__m256)b);                \
    if constexpr (sizeof(V{}[0]) == sizeof(double)) return (V)_mm256_##instruction##_pd((__m256d)a, (__m256d)b);             \
  } else {                                                                                                                   \
    if constexpr (sizeof(V{}[0]) == sizeof(float)) return (V)_mm512_maskz_##instruction##_ps(0xffff, (__m512)a, (__m512)b);  \
    if constexpr (sizeof(V{}[0]) == sizeof(double)) return (V)_mm512_maskz_##instruction##_pd(0xff, (__m512d)a, (__m512d)b); \
  }
#elif defined(__AVX2__)
#define HEDDLE_WIDE_EXTREME_(instruction)                                                                   \
  if constexpr (sizeof(V{}[0]) == sizeof(float)) return (V)_mm256_##instruction##_ps((__m256)a, (__m256)b); \
  if constexpr (sizeof(V{}[0]) == sizeof(double)) return (V)_mm256_##instruction##_pd((__m256d)a, (__m256d)b);
#else
#define HEDDLE_WIDE_EXTREME_(instruction) return b;
#endif
HEDDLE_EXTREME_(smaller_or_second, min, <)
HEDDLE_EXTREME_(larger_or_second, max, >)
#undef HEDDLE_EXTREME_
#undef HEDDLE_WIDE_EXTREME_

// NumPy's minimum and maximum: a NaN on either side is the result.
template <class V>
static inline V smaller(V a, V b) {
  return a != a ? a : smaller_or_second(a, b);
}
template <class V>
static inline V larger(V a, V b) {
  return a != a ? a : larger_or_second(a, b);
}
// True if any lane of a comparison is true.
static inline bool any(VI mask) {
#if defined(__AVX512F__)
  return _mm512_movepi32_mask((__m512i)mask) != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_ps((__m256)mask) != 0;
#else
  return _mm_movemask_ps((__m128)mask) != 0;
#endif
}

// The two halves of a float vector as doubles, and back.
struct Doubles {
  VD low, high;
};
static inline Doubles widen(VF x) {
  HF halves[2];
#if defined(__AVX512F__)  // by registers: GCC copies through memory else
  halves[0] = (HF)_mm512_maskz_extractf32x8_ps(0xff, (__m512)x, 0);
  halves[1] = (HF)_mm512_maskz_extractf32x8_ps(0xff, (__m512)x, 1);
#elif defined(__AVX2__)
  halves[0] = (HF)_mm256_extractf128_ps((__m256)x, 0);
  halves[1] = (HF)_mm256_extractf128_ps((__m256)x, 1);
#else
  __builtin_memcpy(halves, &x, sizeof(x));
#endif
  return {__builtin_convertvector(halves[0], VD), __builtin_convertvector(halves[1], VD)};
}
static inline VF narrow(Doubles x) {
  const HF halves[2] = {__builtin_convertvector(x.low, HF), __builtin_convertvector(x.high, HF)};
#if defined(__AVX512F__)
  return (VF)_mm512_maskz_insertf32x8(0xffff, _mm512_castps256_ps512((__m256)halves[0]), (__m256)halves[1], 1);
#elif defined(__AVX2__)
  return (VF)_mm256_insertf128_ps(_mm256_castps128_ps256((__m128)halves[0]), (__m128)halves[1], 1);
#else
  VF r;
  __builtin_memcpy(&r, halves, sizeof(r));
  return r;
#endif
}

// All lanes folded with f, the upper half onto the lower until one is left: one fixed order per level.
template <class F>
static inline float fold_lanes(VF v, F f) {
  using Quarter = VectorOf<float, 16>::type;
#if defined(__AVX512F__)
  const __m256 half = (__m256)f((VectorOf<float, 32>::type)_mm512_maskz_extractf32x8_ps(0xff, (__m512)v, 0),
                                (VectorOf<float, 32>::type)_mm512_maskz_extractf32x8_ps(0xff, (__m512)v, 1));
#elif defined(__AVX2__)
  const __m256 half = (__m256)v;
#endif
#if defined(__AVX2__)
  const Quarter quarter = f((Quarter)_mm256_castps256_ps128(half), (Quarter)_mm256_extractf128_ps(half, 1));
#else
  const Quarter quarter = v;
#endif
  const Quarter pair = f(quarter, (Quarter)_mm_movehl_ps((__m128)quarter, (__m128)quarter));
  return f(pair, (Quarter)_mm_shuffle_ps((__m128)pair, (__m128)pair, 1))[0];
}
static inline float sum_lanes(VF v) {
  return fold_lanes(v, [](auto a, auto b) { return a + b; });
}
static inline float largest_lane(VF v) {
  return fold_lanes(v, [](auto a, auto b) { return larger(a, b); });
}

}  // namespace heddle::cpu::HEDDLE_ISA
