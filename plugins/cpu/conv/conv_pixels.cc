// Copies of pixels. See conv_pixels.h.
#include "conv/conv_pixels.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "shared/dense_layouts.h"
#include "shared/dims.h"
#include "support/float_tiles.h"
#include "support/strided_copy.h"

namespace heddle::cpu {
namespace {

// Calls body(elements before the stretch in the tensor, pixels of it) for the stretches of the range that lie in one image each.
template <class Body>
void for_each_image(const PixelLayout& layout, const PixelRange& range, Body&& body) {
  for (int64_t first = range.first, left = range.count; left > 0;) {
    const int64_t image = first / layout.pixels, pixel = first % layout.pixels;
    const int64_t count = std::min(left, layout.pixels - pixel);
    body((image * layout.channels + range.channel) * layout.pixels + pixel, count);
    first += count;
    left -= count;
  }
}

}  // namespace

Status read_layout(const char* what, const heddle_tensor& tensor, bool* channels_last_order) {
  const int64_t channels = tensor.dims[1];
  const int64_t pixels = dims_of(tensor).count(2, tensor.rank);
  const bool row_major = tensor.layout.rank == 0;
  *channels_last_order = !row_major || channels == 1 || pixels == 1;
  if (row_major) return {};
  const heddle_layout expected = channels_last(tensor.rank);
  if (tensor.layout.rank == expected.rank && std::equal(expected.order, expected.order + expected.rank, tensor.layout.order)) return {};
  return unsupported(std::string(what) + " has a layout other than row-major and channels-last");
}

void gather_pixels(const PixelLayout& layout, const void* tensor, const PixelRange& range, void* packed, int64_t width) {
  const auto* from = static_cast<const char*>(tensor);
  auto* to = static_cast<char*>(packed);
  if (layout.channels_last) {
    from += (range.first * layout.channels + range.channel) * width;
    const int64_t bytes = range.channels * width;
    for (int64_t pixel = 0; pixel < range.count; ++pixel)
      std::memcpy(to + pixel * bytes, from + pixel * layout.channels * width, static_cast<size_t>(bytes));
    return;
  }
  for_each_image(layout, range, [&](int64_t at, int64_t count) {
    StridedCopy copy(width);
    copy.add(count, width, range.channels * width);
    copy.add(range.channels, layout.pixels * width, width);
    copy.finish();
    copy.run(from + at * width, to, 0, copy.units());
    to += count * range.channels * width;
  });
}

void scatter_pixels(const PixelLayout& layout, const void* packed, const PixelRange& range, void* tensor, int64_t width) {
  const auto* from = static_cast<const char*>(packed);
  auto* to = static_cast<char*>(tensor);
  if (layout.channels_last) {
    to += (range.first * layout.channels + range.channel) * width;
    const int64_t bytes = range.channels * width;
    for (int64_t pixel = 0; pixel < range.count; ++pixel)
      std::memcpy(to + pixel * layout.channels * width, from + pixel * bytes, static_cast<size_t>(bytes));
    return;
  }
  for_each_image(layout, range, [&](int64_t at, int64_t count) {
    StridedCopy copy(width);
    copy.add(range.channels, width, layout.pixels * width);
    copy.add(count, range.channels * width, width);
    copy.finish();
    copy.run(from, to + at * width, 0, copy.units());
    from += count * range.channels * width;
  });
}

void gather_floats(heddle_dtype dtype, const PixelLayout& layout, const void* tensor, const PixelRange& range, void* narrow,
                   float* packed) {
  if (layout.channels_last)
    return load_floats(dtype, tensor, {range.first * layout.channels + range.channel, range.count, range.channels, layout.channels},
                       packed);
  // The copy engine moves half the bytes, and the conversion reads them one after the other.
  gather_pixels(layout, tensor, range, narrow, sizeof(uint16_t));
  const int64_t count = range.count * range.channels;
  load_floats(dtype, narrow, {0, 1, count, count}, packed);
}

void scatter_floats(heddle_dtype dtype, const PixelLayout& layout, const float* packed, const PixelRange& range, void* narrow,
                    void* tensor) {
  if (layout.channels_last)
    return store_floats(packed, dtype, tensor,
                        {range.first * layout.channels + range.channel, range.count, range.channels, layout.channels});
  const int64_t count = range.count * range.channels;
  store_floats(packed, dtype, narrow, {0, 1, count, count});
  scatter_pixels(layout, narrow, range, tensor, sizeof(uint16_t));
}

}  // namespace heddle::cpu
