// Pixels in memory: rows of pixels of channels of bytes, without gaps.
#pragma once

#include <cstdint>

namespace heddle::pictures {

struct Pixels {
  const uint8_t* data = nullptr;
  int64_t height = 0, width = 0, channels = 0;
  int64_t row_bytes() const { return width * channels; }
};

}  // namespace heddle::pictures
