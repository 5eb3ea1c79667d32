// The pixels of images in channels-last and in row-major memory, and copies of some of their channels between both orders.
#pragma once

#include "support/cpu_api.h"

namespace heddle::cpu {

// The layout of one tensor's pixels.
struct PixelLayout {
  bool channels_last = true;
  int64_t channels = 0, pixels = 0;  // per image
};

// Channels [channel, channel + channels) of pixels [first, first + count), of all images one after the other.
struct PixelRange {
  int64_t first = 0, count = 0, channel = 0, channels = 0;
};

// *channels_last_order is true for channels-last, also when row-major means the same order. `what`: the tensor's name in messages.
Status read_layout(const char* what, const heddle_tensor& tensor, bool* channels_last_order);

// Copies a range from a tensor to channels-last memory that holds the range alone. `width`: bytes of an element.
void gather_pixels(const PixelLayout& layout, const void* tensor, const PixelRange& range, void* packed, int64_t width = sizeof(float));
// Copies a range back from packed memory to the tensor.
void scatter_pixels(const PixelLayout& layout, const void* packed, const PixelRange& range, void* tensor, int64_t width = sizeof(float));

// The same copies for 16-bit tensors, whose range is f32 where it is packed. `narrow`: room for the range's elements, at 2 bytes each.
void gather_floats(heddle_dtype dtype, const PixelLayout& layout, const void* tensor, const PixelRange& range, void* narrow, float* packed);
void scatter_floats(heddle_dtype dtype, const PixelLayout& layout, const float* packed, const PixelRange& range, void* narrow,
                    void* tensor);

}  // namespace heddle::cpu
