// The sums of sampled points of one instruction set level; sampled_points.h describes them.
#include "image/sampled_points.h"

#include "vector/narrow_loads.h"
#include "vector/simd.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

// Loads as many elements as a vector has doubles; 0 where the offset is negative.
VD elements(const float* map, const int64_t* offsets) {
#if defined(__AVX512F__)
  const __m512i at = load<__m512i>(offsets);
  const __m256 x = _mm512_mask_i64gather_ps(_mm256_setzero_ps(), static_cast<__mmask8>(~_mm512_movepi64_mask(at)), at, map, 4);
  return (VD)_mm512_cvtps_pd(x);
#elif defined(__AVX2__)
  const __m256i at = load<__m256i>(offsets), inside = _mm256_cmpgt_epi64(at, _mm256_set1_epi64x(-1));
  const __m128i narrow = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(inside, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6)));
  return (VD)_mm256_cvtps_pd(_mm256_mask_i64gather_ps(_mm_setzero_ps(), map, at, _mm_castsi128_ps(narrow), 4));
#else
  return VD{offsets[0] < 0 ? 0 : static_cast<double>(map[offsets[0]]), offsets[1] < 0 ? 0 : static_cast<double>(map[offsets[1]])};
#endif
}
VD elements(const double* map, const int64_t* offsets) {
#if defined(__AVX512F__)
  const __m512i at = load<__m512i>(offsets);
  return (VD)_mm512_mask_i64gather_pd(_mm512_setzero_pd(), static_cast<__mmask8>(~_mm512_movepi64_mask(at)), at, map, 8);
#elif defined(__AVX2__)
  const __m256i at = load<__m256i>(offsets), inside = _mm256_cmpgt_epi64(at, _mm256_set1_epi64x(-1));
  return (VD)_mm256_mask_i64gather_pd(_mm256_setzero_pd(), map, at, _mm256_castsi256_pd(inside), 8);
#else
  return VD{offsets[0] < 0 ? 0 : map[offsets[0]], offsets[1] < 0 ? 0 : map[offsets[1]]};
#endif
}
template <class T>
VD elements(const T* map, const int64_t* offsets) {
  return [&]<size_t... i>(std::index_sequence<i...>) {
    const HI bits = {(offsets[i] < 0 ? 0 : static_cast<int32_t>(map[offsets[i]].bits))...};
    using HU = VectorOf<uint32_t, vector_bytes / 2>::type;
    if constexpr (__is_same(T, BrainHalf))
      return __builtin_convertvector(cast_bits<HF>(bits << 16), VD);
    else
      return __builtin_convertvector(half_to_float<HF>(cast_bits<HU>(bits)), VD);
  }
  (std::make_index_sequence<lanes<double>>());
}

VD larger_number(VD a, VD b) {
  return a < b ? b : a;
}

template <class T, bool largest>
void combine(const SampledPoints& points, const void* map, double* y) {
  const T* const from = static_cast<const T*>(map);
  const int64_t group = points.taps % 4 == 0 ? 4 : 1;
  for (int64_t p = 0; p < points.points; p += lanes<double>) {
    const auto value = [&](int64_t tap) {
      return load<VD>(points.weights + tap * points.points + p) * elements(from, points.offsets + tap * points.points + p);
    };
    VD all = splat<VD>(largest ? -__builtin_inf() : 0.0);
    for (int64_t t = 0; t < points.taps; t += group) {
      VD sample = value(t);
      if (group == 4) {
        const VD b = value(t + 1), c = value(t + 2), d = value(t + 3);
        sample = largest ? larger_number(larger_number(sample, b), larger_number(c, d)) : sample + b + c + d;
      }
      all = largest ? larger_number(all, sample) : all + sample;
    }
    store(y + p, all);
  }
}

template <bool largest>
constexpr void add_functions(SampledPointsTable::Function* functions) {
  functions[HEDDLE_F32] = combine<float, largest>;
  functions[HEDDLE_F64] = combine<double, largest>;
  functions[HEDDLE_F16] = combine<Half, largest>;
  functions[HEDDLE_BF16] = combine<BrainHalf, largest>;
}
constexpr SampledPointsTable make() {
  SampledPointsTable table = {};
  add_functions<false>(table.sum);
  add_functions<true>(table.largest);
  return table;
}

}  // namespace

constinit const SampledPointsTable sampled_points = make();

}  // namespace heddle::cpu::HEDDLE_ISA
