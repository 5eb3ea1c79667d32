// A picture file in memory: what its header says, and its pixels. JPEG (libjpeg-turbo) and PNG (libpng).
//
// Files come from anywhere: each function reads within the bytes that it is given, and a picture that is damaged or lacks its end is an
// error, never a picture with a grey rest.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heddle/op/plugin_status.h"

namespace heddle::pictures {

using plugin::Status;

struct EncodedPicture {
  const unsigned char* data = nullptr;
  size_t size = 0;
};

// The order of the channels of a pixel, each a byte. Grey is the luma of ITU-R BT.601; pixels that are partly transparent lose their
// transparency.
enum class PixelFormat : uint8_t { rgb, bgr, grayscale };
constexpr int64_t channels_of(PixelFormat format) {
  return format == PixelFormat::grayscale ? 1 : 3;
}

struct PictureHeader {
  enum class Codec : uint8_t { jpeg, png };
  Codec codec = Codec::jpeg;
  int64_t height = 0, width = 0;  // upright
  int orientation = 1;            // EXIF's: how the stored pixels are turned
  int64_t min_bytes = 0;          // a file of fewer bytes can not hold so many pixels
  int64_t pixels() const { return height * width; }
  int64_t stored_height() const { return orientation >= 5 ? width : height; }
  int64_t stored_width() const { return orientation >= 5 ? height : width; }
};

// Pictures of more pixels are refused.
constexpr int64_t max_pixels = int64_t{1} << 28;

// Reads a picture's header. Errors: invalid (no JPEG or PNG; damaged; more pixels than max_pixels, or than a file of that size can have).
Status read_header(const EncodedPicture& picture, PictureHeader* header);
// Writes the pixels, upright, row by row, to `pixels`: height * width * channels_of(format) bytes. Errors: invalid (damaged, or not whole);
// out_of_memory.
Status decode(const EncodedPicture& picture, const PictureHeader& header, PixelFormat format, uint8_t* pixels);

}  // namespace heddle::pictures
