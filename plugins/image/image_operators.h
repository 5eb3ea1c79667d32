// The operators of the image plugin. Each add_NAME is in the file of that name.
//
// Pictures are u8 [height, width, channels], as ONNX's ImageDecoder makes them.
#pragma once

#include "heddle/op.h"
#include "pixels/pixels.h"

namespace heddle::image {

using namespace heddle::plugin;
using pictures::Pixels;

void add_image_decoder(Builder& plugin);
void add_image_resize(Builder& plugin);
void add_image_crop(Builder& plugin);
void add_image_flip(Builder& plugin);
void add_image_color(Builder& plugin);
void add_image_normalize(Builder& plugin);

// Returns an error unless the dims are those of a picture.
inline Status check_picture(Dims dims) {
  if (dims.rank != 3) return invalid("image has " + std::to_string(dims.rank) + " dims, expected [height, width, channels]");
  return {};
}
inline Pixels pixels_of(const heddle_tensor& tensor) {
  return {static_cast<const uint8_t*>(tensor.data), tensor.dims[0], tensor.dims[1], tensor.dims[2]};
}
// Returns so many rows of a picture as one tile has.
inline int64_t rows_of_tile(int64_t row_bytes) {
  constexpr int64_t tile_bytes = 128 * 1024;
  return row_bytes > tile_bytes ? 1 : tile_bytes / (row_bytes > 0 ? row_bytes : 1);
}
// Reads two positive numbers, height and width.
inline Status read_size(const Attributes& attributes, const char* name, int64_t* height, int64_t* width) {
  const auto size = attributes.ints(name);
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || size[0] > INT32_MAX || size[1] > INT32_MAX)
    return invalid(std::string(name) + " is to be two numbers of at least 1, height and width");
  *height = size[0];
  *width = size[1];
  return {};
}

}  // namespace heddle::image
