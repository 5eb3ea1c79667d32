#include "conformance/reference_window.h"

#include <algorithm>

namespace heddle::conformance {

int64_t Windows::position(int d, int64_t window, int64_t tap) const {
  const auto i = static_cast<size_t>(d);
  return window * strides[i] + tap * dilations[i] - begin[i];
}

int64_t Windows::flat(const Ints& window, const Ints& tap) const {
  int64_t flat = 0;
  for (int d = 0; d < rank(); ++d) {
    const int64_t at = position(d, window[static_cast<size_t>(d)], tap[static_cast<size_t>(d)]);
    if (at < 0 || at >= on[d]) return -1;
    flat = flat * on[d] + at;
  }
  return flat;
}

Shape spatial(const Shape& shape) {
  return Shape(shape.data() + 2, shape.rank() - 2);
}

Shape with_spatial(int64_t batch, int64_t channels, const Shape& spatial) {
  Shape shape{batch, channels};
  for (const int64_t extent : spatial) shape.push_back(extent);
  return shape;
}

Windows windows_of(const Call& call, const Shape& on, const Shape& kernel) {
  const auto rank = static_cast<size_t>(on.rank());
  Windows w{on, kernel, on, call.ints("strides", Ints(rank, 1)), call.ints("dilations", Ints(rank, 1)), {}, {}};
  const Ints pads = call.ints("pads", Ints(2 * rank, 0));
  w.begin.assign(pads.begin(), pads.begin() + on.rank());
  w.end.assign(pads.begin() + on.rank(), pads.end());
  return w;
}

void split_pads(Windows& windows, int d, int64_t total, bool odd_one_at_the_end) {
  const int64_t less = total / 2, more = total - less;
  windows.begin[static_cast<size_t>(d)] = odd_one_at_the_end ? less : more;
  windows.end[static_cast<size_t>(d)] = odd_one_at_the_end ? more : less;
}

void count_windows(Windows& windows, const std::string& auto_pad, bool ceil_mode) {
  for (int d = 0; d < windows.rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    const int64_t on = windows.on[d], stride = windows.strides[i], reach = windows.reach(d);
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      windows.count[d] = (on + stride - 1) / stride;
      split_pads(windows, d, std::max<int64_t>((windows.count[d] - 1) * stride + reach - on, 0), auto_pad == "SAME_UPPER");
      continue;
    }
    const int64_t room = on + windows.begin[i] + windows.end[i] - reach;
    windows.count[d] = (ceil_mode ? (room + stride - 1) / stride : room / stride) + 1;
    if (ceil_mode && (windows.count[d] - 1) * stride >= on + windows.begin[i]) --windows.count[d];
  }
}

}  // namespace heddle::conformance
