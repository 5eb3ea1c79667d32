// Copies of pixels. See conv_pixels.h.
#include "conv/conv_pixels.h"

#include <algorithm>
#include <string>

#include "shared/dense_layouts.h"
#include "shared/dims.h"
#include "support/strided_copy.h"

namespace heddle::cpu {
namespace {

constexpr int64_t width = sizeof(float);

// Calls body(elements in front of the stretch in the tensor, pixels of it) for the stretches of the range that lie in one image each.
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

void gather_pixels(const PixelLayout& layout, const float* tensor, const PixelRange& range, float* packed) {
  if (layout.channels_last) {
    const float* from = tensor + range.first * layout.channels + range.channel;
    for (int64_t pixel = 0; pixel < range.count; ++pixel)
      std::copy_n(from + pixel * layout.channels, range.channels, packed + pixel * range.channels);
    return;
  }
  for_each_image(layout, range, [&](int64_t at, int64_t count) {
    StridedCopy copy(width);
    copy.add(count, width, range.channels * width);
    copy.add(range.channels, layout.pixels * width, width);
    copy.finish();
    copy.run(tensor + at, packed, 0, copy.units());
    packed += count * range.channels;
  });
}

void scatter_pixels(const PixelLayout& layout, const float* packed, const PixelRange& range, float* tensor) {
  if (layout.channels_last) {
    float* to = tensor + range.first * layout.channels + range.channel;
    for (int64_t pixel = 0; pixel < range.count; ++pixel)
      std::copy_n(packed + pixel * range.channels, range.channels, to + pixel * layout.channels);
    return;
  }
  for_each_image(layout, range, [&](int64_t at, int64_t count) {
    StridedCopy copy(width);
    copy.add(range.channels, width, layout.pixels * width);
    copy.add(count, range.channels * width, width);
    copy.finish();
    copy.run(packed, tensor + at, 0, copy.units());
    packed += count * range.channels;
  });
}

}  // namespace heddle::cpu
