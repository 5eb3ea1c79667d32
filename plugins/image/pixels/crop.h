// Cutting out and mirroring of pictures.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "pixels/pixels.h"

namespace heddle::pictures {

// Returns where a part of `part` pixels begins in `whole` of them if `position`, from 0 to 1, of what is left is before it. Every begin is
// equally likely where positions are. REQUIRES: part <= whole.
inline int64_t begin_of_part(int64_t whole, int64_t part, double position) {
  const auto begin = static_cast<int64_t>(position * static_cast<double>(whole - part + 1));
  return std::clamp<int64_t>(begin, 0, whole - part);
}
// Returns where a part in the middle begins. Of two middles it is the even one, as torchvision's CenterCrop has it.
inline int64_t begin_of_middle(int64_t whole, int64_t part) {
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(whole - part) / 2));
}

// Writes the part of `height` by `width` pixels from (top, left) on. REQUIRES: it is within the picture.
inline void crop(const Pixels& from, int64_t top, int64_t left, int64_t height, int64_t width, uint8_t* to) {
  for (int64_t y = 0; y < height; ++y)
    std::memcpy(to + y * width * from.channels, from.data + (top + y) * from.row_bytes() + left * from.channels,
                static_cast<size_t>(width * from.channels));
}

// Writes the picture with left and right exchanged.
inline void mirror(const Pixels& from, uint8_t* to) {
  for (int64_t y = 0; y < from.height; ++y)
    for (int64_t x = 0; x < from.width; ++x)
      std::memcpy(to + y * from.row_bytes() + x * from.channels, from.data + y * from.row_bytes() + (from.width - 1 - x) * from.channels,
                  static_cast<size_t>(from.channels));
}

}  // namespace heddle::pictures
