#include "pixels/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace heddle::pictures {
namespace {

constexpr int fraction_bits = 32 - 8 - 2;  // of weights: a sum of them times a byte, with its rounding, fits an int32_t
constexpr int32_t half = 1 << (fraction_bits - 1);

uint8_t rounded(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> fraction_bits, 0, 255));
}

// Makes a row of `bytes` bytes of `taps` rows that follow each other.
[[gnu::always_inline]] inline void weigh_rows_here(const uint8_t* rows, int64_t bytes, const int32_t* weights, int64_t taps, uint8_t* to) {
  constexpr int64_t block = 256;  // sums that stay in the cache
  int32_t sums[block];
  for (int64_t begin = 0; begin < bytes; begin += block) {
    const int64_t count = std::min(block, bytes - begin);
    std::fill_n(sums, count, half);
    for (int64_t k = 0; k < taps; ++k) {
      const int32_t weight = weights[k];
      const uint8_t* const row = rows + k * bytes + begin;
      for (int64_t i = 0; i < count; ++i) sums[i] += weight * row[i];
    }
    for (int64_t i = 0; i < count; ++i) to[begin + i] = rounded(sums[i]);
  }
}

// Makes a pixel of `taps` pixels that follow each other.
[[gnu::always_inline]] inline void weigh_colors(const uint8_t* pixels, const int32_t* weights, int64_t taps, uint8_t* to) {
  int32_t red = half, green = half, blue = half;
  for (int64_t k = 0; k < taps; ++k) {
    red += weights[k] * pixels[3 * k];
    green += weights[k] * pixels[3 * k + 1];
    blue += weights[k] * pixels[3 * k + 2];
  }
  to[0] = rounded(red);
  to[1] = rounded(green);
  to[2] = rounded(blue);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void weigh_rows_avx2(const uint8_t* rows, int64_t bytes, const int32_t* weights, int64_t taps, uint8_t* to) {
  weigh_rows_here(rows, bytes, weights, taps, to);
}

// A pixel and the first byte of the next one are the lanes of one vector. REQUIRES: that byte is there.
[[gnu::target("avx2")]] void weigh_colors_avx2(const uint8_t* pixels, const int32_t* weights, int64_t taps, uint8_t* to) {
  __m128i sums = _mm_set1_epi32(half);
  for (int64_t k = 0; k < taps; ++k) {
    int32_t four = 0;
    std::memcpy(&four, pixels + 3 * k, sizeof four);
    sums = _mm_add_epi32(sums, _mm_mullo_epi32(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four)), _mm_set1_epi32(weights[k])));
  }
  const __m128i whole = _mm_srai_epi32(sums, fraction_bits);
  const __m128i bytes = _mm_packus_epi16(_mm_packus_epi32(whole, whole), whole);
  const int32_t four = _mm_cvtsi128_si32(bytes);
  std::memcpy(to, &four, 3);
}
const bool has_avx2 = __builtin_cpu_supports("avx2");
#else
constexpr bool has_avx2 = false;
#endif

void weigh_rows(const uint8_t* rows, int64_t bytes, const int32_t* weights, int64_t taps, uint8_t* to) {
#if defined(__x86_64__)
  if (has_avx2) return weigh_rows_avx2(rows, bytes, weights, taps, to);
#endif
  weigh_rows_here(rows, bytes, weights, taps, to);
}

}  // namespace

void Resizing::Axis::plan(int64_t extent, double begin, double length, int64_t results) {
  from = extent;
  is_kept = results == extent && begin == 0 && length == static_cast<double>(extent);
  const double scale = length / static_cast<double>(results), reach = std::max(scale, 1.0);
  taps = is_kept ? 1 : static_cast<int64_t>(std::ceil(reach)) * 2 + 1;
  first.assign(static_cast<size_t>(results), 0);
  weights.assign(static_cast<size_t>(results * taps), 0);
  std::vector<double> exact(static_cast<size_t>(taps));
  for (int64_t i = 0; i < results; ++i) {
    const double center = begin + (static_cast<double>(i) + 0.5) * scale;
    const int64_t low = is_kept ? i : std::max<int64_t>(0, static_cast<int64_t>(center - reach + 0.5));
    const int64_t high = is_kept ? i + 1 : std::min<int64_t>(extent, static_cast<int64_t>(center + reach + 0.5));
    double sum = 0;
    for (int64_t k = low; k < high; ++k) {
      const double distance = std::abs((static_cast<double>(k) - center + 0.5) * (1.0 / reach));
      sum += exact[static_cast<size_t>(k - low)] = std::max(0.0, 1.0 - distance);
    }
    first[static_cast<size_t>(i)] = static_cast<int32_t>(low);
    for (int64_t k = low; k < high; ++k) {
      const double weight = exact[static_cast<size_t>(k - low)] * (sum == 0 ? 1.0 : 1.0 / sum);
      weights[static_cast<size_t>(i * taps + k - low)] = static_cast<int32_t>(0.5 + weight * (1 << fraction_bits));
    }
  }
}

int64_t Resizing::Axis::taps_of(int64_t result) const {
  return std::min(taps, from - first[static_cast<size_t>(result)]);
}

void Resizing::plan(int64_t from_height, int64_t from_width, const Box& box, int64_t height, int64_t width) {
  down_.plan(from_height, box.top, box.height, height);
  across_.plan(from_width, box.left, box.width, width);
  width_ = width;
}

int64_t Resizing::memory_bytes(int64_t rows, int64_t channels) const {
  if (across_.is_kept) return 0;
  int64_t most = 0;  // rows of the picture that so many of the result are made of
  const auto results = static_cast<int64_t>(down_.first.size());
  for (int64_t y = 0; y < results; ++y) {
    const int64_t last = std::min(results, y + rows) - 1;
    most = std::max(most, down_.first[static_cast<size_t>(last)] + down_.taps_of(last) - down_.first[static_cast<size_t>(y)]);
  }
  return most * width_ * channels;
}

void Resizing::run_row(const uint8_t* row, int64_t channels, uint8_t* to) const {
  for (int64_t x = 0; x < width_; ++x, to += channels) {
    const int32_t* const weights = across_.weights.data() + x * across_.taps;
    const uint8_t* const pixels = row + across_.first[static_cast<size_t>(x)] * channels;
    const int64_t taps = across_.taps_of(x);
#if defined(__x86_64__)
    if (channels == 3 && has_avx2 && across_.first[static_cast<size_t>(x)] + taps < across_.from) {
      weigh_colors_avx2(pixels, weights, taps, to);
      continue;
    }
#endif
    if (channels == 3) {
      weigh_colors(pixels, weights, taps, to);
      continue;
    }
    for (int64_t c = 0; c < channels; ++c) {
      int32_t sum = half;
      for (int64_t k = 0; k < taps; ++k) sum += weights[k] * pixels[k * channels + c];
      to[c] = rounded(sum);
    }
  }
}

// Writes rows of the picture, resized across.
void Resizing::run_rows(const Pixels& from, int64_t first, int64_t last, uint8_t* to) const {
  for (int64_t y = first; y < last; ++y, to += width_ * from.channels) {
    run_row(from.data + y * from.row_bytes(), from.channels, to);
  }
}

void Resizing::run(const Pixels& from, int64_t first, int64_t last, uint8_t* memory, uint8_t* to) const {
  if (first >= last) return;
  const int64_t row_bytes = width_ * from.channels;
  const int64_t begin = down_.first[static_cast<size_t>(first)];
  const int64_t end = down_.first[static_cast<size_t>(last - 1)] + down_.taps_of(last - 1);
  const uint8_t* rows = from.data + begin * row_bytes;
  if (!across_.is_kept) {
    run_rows(from, begin, end, memory);
    rows = memory;
  }
  for (int64_t y = first; y < last; ++y) {
    const uint8_t* const from_row = rows + (down_.first[static_cast<size_t>(y)] - begin) * row_bytes;
    if (down_.is_kept)
      std::memcpy(to + y * row_bytes, from_row, static_cast<size_t>(row_bytes));
    else
      weigh_rows(from_row, row_bytes, down_.weights.data() + y * down_.taps, down_.taps_of(y), to + y * row_bytes);
  }
}

}  // namespace heddle::pictures
