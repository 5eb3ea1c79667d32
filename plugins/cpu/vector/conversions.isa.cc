// The conversion loops of one instruction set level; convert.h describes them.
#include <immintrin.h>

#include "vector/convert.h"
#include "vector/half.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

template <class T>
constexpr bool is_floating = T(0.5) != T(0);

template <class T>
struct Range {
  static constexpr bool is_signed = T(-1) < T(0);
  static constexpr int bits = 8 * sizeof(T) - is_signed;
  static constexpr T highest = static_cast<T>(static_cast<uint64_t>(-1) >> (64 - bits));
  static constexpr T lowest = is_signed ? static_cast<T>(-highest - 1) : T(0);
};

// 2^n of a floating type.
template <class F>
constexpr F power_of_two(int n) {
  F r = 1;
  for (int i = 0; i < n; ++i) r *= 2;
  return r;
}

template <class From, class To>
To converted(From x) {
  if constexpr (is_floating<From> && !is_floating<To> && sizeof(To) <= 2) {
    // The limits are numbers of From: the smaller and the larger of two numbers are one instruction each.
    constexpr From highest = Range<To>::highest, lowest = Range<To>::lowest;
    const From number = x == x ? x : From(0), low = number < highest ? number : highest;
    return static_cast<To>(static_cast<int32_t>(low > lowest ? low : lowest));
  } else if constexpr (is_floating<From> && !is_floating<To>) {
    constexpr From limit = power_of_two<From>(Range<To>::bits);  // the first value above the range
    constexpr From lowest = Range<To>::is_signed ? -limit : From(0);
    const bool above = x >= limit;
    const From inside = above || !(x >= lowest) ? From(0) : x;  // NaN too
    const To truncated = static_cast<To>(inside);
    return above ? Range<To>::highest : (x < lowest ? Range<To>::lowest : truncated);
  } else {
    return static_cast<To>(x);
  }
}

template <class From, class To>
void convert_loop(const void* from, void* to, int64_t count) {
  const From* __restrict__ x = static_cast<const From*>(from);
  To* __restrict__ y = static_cast<To*>(to);
  for (int64_t i = 0; i < count; ++i) y[i] = converted<From, To>(x[i]);
}
template <class From>
void truth_loop(const void* from, void* to, int64_t count) {
  const From* __restrict__ x = static_cast<const From*>(from);
  uint8_t* __restrict__ y = static_cast<uint8_t*>(to);
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] != 0;
}
template <int width>
void copy_loop(const void* from, void* to, int64_t count) {
  __builtin_memmove(to, from, static_cast<size_t>(count) * width);
}

// Round to odd: the nearest toward zero, its last bit set when something was lost.
void f64_to_odd_f32(const void* from, void* to, int64_t count) {
  const double* __restrict__ x = static_cast<const double*>(from);
  float* __restrict__ y = static_cast<float*>(to);
  for (int64_t i = 0; i < count; ++i) {
    const float nearest = static_cast<float>(x[i]);
    uint32_t bits = bits_of<uint32_t>(nearest);
    const double back = nearest;
    const bool inexact = back != x[i] && x[i] == x[i];
    const bool away = (back < 0 ? -back : back) > (x[i] < 0 ? -x[i] : x[i]);
    bits = inexact ? ((away ? bits - 1 : bits) | 1) : bits;
    y[i] = bits_of<float>(bits);
  }
}

void bf16_to_f32(const void* from, void* to, int64_t count) {
  const uint16_t* __restrict__ x = static_cast<const uint16_t*>(from);
  uint32_t* __restrict__ y = static_cast<uint32_t*>(to);
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= count; i += 16) {
    const __m512i wide = _mm512_maskz_cvtepu16_epi32(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i)));
    _mm512_storeu_si512(y + i, _mm512_slli_epi32(wide, 16));
  }
#endif
  for (; i < count; ++i) y[i] = static_cast<uint32_t>(x[i]) << 16;
}
void f32_to_bf16(const void* from, void* to, int64_t count) {
  const uint32_t* __restrict__ x = static_cast<const uint32_t*>(from);
  uint16_t* __restrict__ y = static_cast<uint16_t*>(to);
  int64_t i = 0;
#if defined(__AVX512F__)
  const __m512i half = _mm512_set1_epi32(0x7fff), one = _mm512_set1_epi32(1), infinity = _mm512_set1_epi32(0x7f800000);
  for (; i + 16 <= count; i += 16) {
    const __m512i bits = _mm512_loadu_si512(x + i), upper = _mm512_srli_epi32(bits, 16);
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, half), _mm512_and_si512(upper, one)), 16);
    const __mmask16 is_nan = _mm512_cmpgt_epi32_mask(_mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff)), infinity);
    const __m512i result = _mm512_mask_or_epi32(rounded, is_nan, upper, _mm512_set1_epi32(0x40));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), _mm512_maskz_cvtepi32_epi16(0xffff, result));
  }
#endif
  for (; i < count; ++i) {
    const uint32_t rounded = (x[i] + 0x7fff + ((x[i] >> 16) & 1)) >> 16;
    const bool is_nan = (x[i] & 0x7fffffff) > 0x7f800000;
    y[i] = static_cast<uint16_t>(is_nan ? (x[i] >> 16) | 0x40 : rounded);
  }
}

uint16_t float_to_half(float f) {
  const uint32_t bits = bits_of<uint32_t>(f);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x3ff));
  if (magnitude >= 0x47800000) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000) {  // denormal: the addition rounds at the right bit
    const float aligned = bits_of<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (bits_of<uint32_t>(aligned) - 0x3f000000));
  }
  const uint32_t rounded = magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

void f16_to_f32(const void* from, void* to, int64_t count) {
  const uint16_t* x = static_cast<const uint16_t*>(from);
  float* y = static_cast<float*>(to);
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= count; i += 16)
    _mm512_storeu_ps(y + i, _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i))));
#endif
#if defined(__F16C__)
  for (; i + 8 <= count; i += 8) _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
#endif
  for (; i < count; ++i) y[i] = half_to_float<float>(static_cast<uint32_t>(x[i]));
}
void f32_to_f16(const void* from, void* to, int64_t count) {
  const float* x = static_cast<const float*>(from);
  uint16_t* y = static_cast<uint16_t*>(to);
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= count; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i),
                        _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
#if defined(__F16C__)
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < count; ++i) y[i] = float_to_half(x[i]);
}

// A row of the table: from one type to all but the 16-bit floats. Integers of one width share loops: they only keep bits.
template <class From>
constexpr void add_from(ConvertTable& table, int from) {
  ConvertFunction* row = table.pairs[from];
  row[HEDDLE_F32] = convert_loop<From, float>;
  row[HEDDLE_F64] = convert_loop<From, double>;
  if constexpr (is_floating<From>) {
    row[HEDDLE_I8] = convert_loop<From, int8_t>;
    row[HEDDLE_I16] = convert_loop<From, int16_t>;
    row[HEDDLE_I32] = convert_loop<From, int32_t>;
    row[HEDDLE_I64] = convert_loop<From, int64_t>;
    row[HEDDLE_U8] = convert_loop<From, uint8_t>;
    row[HEDDLE_U16] = convert_loop<From, uint16_t>;
    row[HEDDLE_U32] = convert_loop<From, uint32_t>;
    row[HEDDLE_U64] = convert_loop<From, uint64_t>;
  } else {
    constexpr int width = sizeof(From);
    row[HEDDLE_I8] = row[HEDDLE_U8] = width == 1 ? copy_loop<1> : convert_loop<From, uint8_t>;
    row[HEDDLE_I16] = row[HEDDLE_U16] = width == 2 ? copy_loop<2> : convert_loop<From, uint16_t>;
    row[HEDDLE_I32] = row[HEDDLE_U32] = width == 4 ? copy_loop<4> : convert_loop<From, uint32_t>;
    row[HEDDLE_I64] = row[HEDDLE_U64] = width == 8 ? copy_loop<8> : convert_loop<From, uint64_t>;
  }
  row[HEDDLE_BOOL] = truth_loop<From>;
}

constexpr ConvertTable make() {
  ConvertTable table = {};
  add_from<float>(table, HEDDLE_F32);
  add_from<double>(table, HEDDLE_F64);
  add_from<int8_t>(table, HEDDLE_I8);
  add_from<int16_t>(table, HEDDLE_I16);
  add_from<int32_t>(table, HEDDLE_I32);
  add_from<int64_t>(table, HEDDLE_I64);
  add_from<uint8_t>(table, HEDDLE_U8);
  add_from<uint16_t>(table, HEDDLE_U16);
  add_from<uint32_t>(table, HEDDLE_U32);
  add_from<uint64_t>(table, HEDDLE_U64);
  add_from<uint8_t>(table, HEDDLE_BOOL);
  table.f16_to_f32 = f16_to_f32;
  table.bf16_to_f32 = bf16_to_f32;
  table.f32_to_f16 = f32_to_f16;
  table.f32_to_bf16 = f32_to_bf16;
  table.f64_to_odd_f32 = f64_to_odd_f32;
  return table;
}

}  // namespace

constinit const ConvertTable conversions = make();

}  // namespace heddle::cpu::HEDDLE_ISA
