#include "codec/exif_orientation.h"

#include <cstring>

namespace heddle::pictures {
namespace {

// Reads a TIFF file's numbers within its bounds: positions outside read as 0.
class Tiff {
 public:
  Tiff(const unsigned char* data, size_t size) : data_(data), size_(size), big_endian_(size > 0 && data[0] == 'M') {}
  uint32_t number(size_t at, size_t bytes) const {
    if (at > size_ || size_ - at < bytes) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | data_[at + (big_endian_ ? i : bytes - 1 - i)];
    return value;
  }

 private:
  const unsigned char* const data_;
  const size_t size_;
  const bool big_endian_;
};

}  // namespace

int exif_orientation(const unsigned char* exif, size_t size) {
  const Tiff tiff(exif, size);
  if (tiff.number(2, 2) != 42) return 1;
  const size_t directory = tiff.number(4, 4);
  const uint32_t entries = tiff.number(directory, 2);
  constexpr size_t entry_bytes = 12;
  for (uint32_t i = 0; i < entries && directory + 2 + i * entry_bytes < size; ++i) {
    const size_t entry = directory + 2 + i * entry_bytes;
    if (tiff.number(entry, 2) != 0x0112) continue;
    const uint32_t type = tiff.number(entry + 2, 2), count = tiff.number(entry + 4, 4), value = tiff.number(entry + 8, 2);
    constexpr uint32_t is_short = 3;
    return type == is_short && count == 1 && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

bool has_exif(const unsigned char* segment, size_t size) {
  return size >= exif_identifier && std::memcmp(segment, "Exif\0", exif_identifier) == 0;
}

void turn_upright(int orientation, const uint8_t* stored, int64_t channels, int64_t height, int64_t width, uint8_t* upright) {
  const bool exchanges_axes = orientation >= 5;
  const bool flips_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool flips_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const int64_t stored_width = exchanges_axes ? height : width, stored_height = exchanges_axes ? width : height;
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x, upright += channels) {
      int64_t from_x = exchanges_axes ? y : x, from_y = exchanges_axes ? x : y;
      if (flips_x) from_x = stored_width - 1 - from_x;
      if (flips_y) from_y = stored_height - 1 - from_y;
      std::memcpy(upright, stored + (from_y * stored_width + from_x) * channels, static_cast<size_t>(channels));
    }
}

}  // namespace heddle::pictures
