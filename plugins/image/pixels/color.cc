#include "pixels/color.h"

#include <algorithm>
#include <cstring>

#include "pixels/luma.h"

namespace heddle::pictures {
namespace {

int grey(const uint8_t* pixel) {
  return luma(pixel[0], pixel[1], pixel[2]);
}

// Rounds towards 0.
uint8_t blend(int plain, uint8_t byte, float factor) {
  const float value = static_cast<float>(plain) + factor * static_cast<float>(static_cast<int>(byte) - plain);
  return static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f));
}

int mean_grey(const uint8_t* pixels, int64_t count) {
  int64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += grey(pixels + 3 * i);
  return static_cast<int>(static_cast<double>(sum) / static_cast<double>(count) + 0.5);
}

}  // namespace

void change_colors(const Pixels& from, const ColorFactors& factors, uint8_t* to) {
  const int64_t count = from.height * from.width;
  if (count == 0) return;
  if (to != from.data) std::memcpy(to, from.data, static_cast<size_t>(3 * count));
  if (factors.brightness != 1)
    for (int64_t i = 0; i < 3 * count; ++i) to[i] = blend(0, to[i], factors.brightness);
  if (factors.contrast != 1) {
    const int mean = mean_grey(to, count);
    for (int64_t i = 0; i < 3 * count; ++i) to[i] = blend(mean, to[i], factors.contrast);
  }
  if (factors.saturation != 1)
    for (int64_t i = 0; i < count; ++i) {
      const int own = grey(to + 3 * i);
      for (int c = 0; c < 3; ++c) to[3 * i + c] = blend(own, to[3 * i + c], factors.saturation);
    }
}

}  // namespace heddle::pictures
