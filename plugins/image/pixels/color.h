// Changes of brightness, contrast and saturation, as Pillow's ImageEnhance makes them, on which torchvision's ColorJitter builds: each
// blends the picture with black, with its mean grey, or with its own grey.
#pragma once

#include <cstdint>

#include "pixels/pixels.h"

namespace heddle::pictures {

// 1: unchanged; 0: black, uniformly grey, without colour; more than 1: stronger.
struct ColorFactors {
  float brightness = 1, contrast = 1, saturation = 1;
};

// Writes the picture with its colours changed, in the order of the factors; `to` may be the picture itself. REQUIRES: 3 channels, red,
// green, blue.
void change_colors(const Pixels& from, const ColorFactors& factors, uint8_t* to);

}  // namespace heddle::pictures
