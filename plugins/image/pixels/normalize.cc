#include "pixels/normalize.h"

#include <array>
#include <cstddef>

namespace heddle::pictures {
namespace {

// The planes of the colours of a picture.
struct Colors {
  const uint8_t* __restrict bytes;
  float* __restrict red, * __restrict green, * __restrict blue;
  std::array<float, 3> factors, offsets;
};

// One loop over all colours lets the compiler load whole vectors of bytes and take them apart.
[[gnu::always_inline]] inline void write_pixels(const Colors& of, int64_t count) {
  const uint8_t* __restrict const bytes = of.bytes;
  float* __restrict const red = of.red, * __restrict const green = of.green, * __restrict const blue = of.blue;
  for (int64_t i = 0; i < count; ++i) {
    red[i] = static_cast<float>(bytes[3 * i]) * of.factors[0] - of.offsets[0];
    green[i] = static_cast<float>(bytes[3 * i + 1]) * of.factors[1] - of.offsets[1];
    blue[i] = static_cast<float>(bytes[3 * i + 2]) * of.factors[2] - of.offsets[2];
  }
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void write_pixels_avx2(const Colors& of, int64_t count) {
  write_pixels(of, count);
}
#endif

void write_colors(const Colors& of, int64_t count) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return write_pixels_avx2(of, count);
#endif
  write_pixels(of, count);
}

}  // namespace

Normalization::Normalization(float scale, const std::vector<float>& means, const std::vector<float>& deviations) {
  for (size_t c = 0; c < means.size(); ++c) {
    factors_.push_back(scale / deviations[c]);
    offsets_.push_back(means[c] / deviations[c]);
  }
}

void Normalization::write(const Pixels& from, int64_t first, int64_t last, float* to) const {
  const uint8_t* const bytes = from.data + first * from.row_bytes();
  const int64_t count = (last - first) * from.width, plane = from.height * from.width;
  float* const numbers = to + first * from.width;
  const auto of_channel = [](const std::vector<float>& list, int64_t c) { return list[list.size() == 1 ? 0 : static_cast<size_t>(c)]; };
  if (from.channels == 3) {
    Colors colors = {bytes, numbers, numbers + plane, numbers + 2 * plane, {}, {}};
    for (size_t c = 0; c < 3; ++c) {
      colors.factors[c] = of_channel(factors_, static_cast<int64_t>(c));
      colors.offsets[c] = of_channel(offsets_, static_cast<int64_t>(c));
    }
    return write_colors(colors, count);
  }
  for (int64_t c = 0; c < from.channels; ++c) {
    const float factor = of_channel(factors_, c), offset = of_channel(offsets_, c);
    for (int64_t i = 0; i < count; ++i) numbers[c * plane + i] = static_cast<float>(bytes[i * from.channels + c]) * factor - offset;
  }
}

}  // namespace heddle::pictures
