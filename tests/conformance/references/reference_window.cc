#include "conformance/references/reference_window.h"

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

namespace {

// Calls visit(window, tap, element) for each tap of each window that is inside.
template <class Visit>
void for_each_tap(const Windows& windows, const Visit& visit) {
  for (int64_t window = 0; window < windows.count.element_count(); ++window)
    for (int64_t tap = 0; tap < windows.kernel.element_count(); ++tap) {
      const int64_t on = windows.flat(position_of(window, windows.count), position_of(tap, windows.kernel));
      if (on >= 0) visit(static_cast<size_t>(window), static_cast<size_t>(tap), static_cast<size_t>(on));
    }
}

}  // namespace

std::vector<std::vector<Factors>> factors_of_windows(const Windows& windows) {
  std::vector<std::vector<Factors>> factors(static_cast<size_t>(windows.count.element_count()));
  for_each_tap(windows, [&](size_t window, size_t tap, size_t element) { factors[window].push_back({element, tap}); });
  return factors;
}

std::vector<std::vector<Factors>> factors_of_elements(const Windows& windows) {
  std::vector<std::vector<Factors>> factors(static_cast<size_t>(windows.on.element_count()));
  for_each_tap(windows, [&](size_t window, size_t tap, size_t element) { factors[element].push_back({window, tap}); });
  return factors;
}

Numbers sum_of_products(const Numbers& x, const Numbers& w, const Numbers* bias, int64_t groups, const Shape& shape,
                        const std::vector<std::vector<Factors>>& factors, bool transposed) {
  Numbers y = zeros(x.dtype, shape);
  y.scale = y.values;
  const auto batch = static_cast<size_t>(shape[0]), channels_in = static_cast<size_t>(x.shape[1] / groups),
             channels_out = static_cast<size_t>(shape[1] / groups), group_count = static_cast<size_t>(groups);
  const auto size_x = static_cast<size_t>(spatial(x.shape).element_count()), size_w = static_cast<size_t>(spatial(w.shape).element_count());
  size_t to = 0;
  for (size_t row = 0; row < batch * group_count * channels_out; ++row) {
    const size_t m = row % channels_out, g = row / channels_out % group_count, n = row / channels_out / group_count;
    const Number first = bias != nullptr ? bias->values[g * channels_out + m] : 0;
    for (const std::vector<Factors>& of_one : factors) {
      Sum sum;
      sum.add_product(first, 1);
      for (size_t c = 0; c < channels_in; ++c) {
        const Number* const elements = x.values.data() + ((n * group_count + g) * channels_in + c) * size_x;
        const size_t filter = transposed ? (g * channels_in + c) * channels_out + m : (g * channels_out + m) * channels_in + c;
        const Number* const taps = w.values.data() + filter * size_w;
        for (const Factors& f : of_one) sum.add_product(elements[f.element], taps[f.tap]);
      }
      sum.store(y, to++);
    }
  }
  return y;
}

}  // namespace heddle::conformance
