// MaxPool, AveragePool, LpPool and their global forms.
#include <algorithm>
#include <cmath>

#include "conformance/references/reference_window.h"

namespace heddle::conformance {
namespace reference_pooling {
namespace {

// The content of a window: elements of the input, as numbers and positions in their channel, in row-major order.
struct Seen {
  std::vector<Number> elements;
  Ints positions;
  int64_t with_pads = 0;  // taps in the input or in its pads, not beyond them
};
using Pooled = std::function<Number(const Seen&, Number* scale)>;

// Returns the windows of a pool, or one over the whole channel.
Windows pool_windows(const Call& call, bool global) {
  const Shape on = spatial(call[0].shape);
  Shape kernel;
  for (const int64_t extent : global ? Ints(on.begin(), on.end()) : call.ints("kernel_shape")) kernel.push_back(extent);
  Windows windows = windows_of(call, on, kernel);
  count_windows(windows, call.s("auto_pad", "NOTSET"), call.i("ceil_mode", 0) != 0);
  return windows;
}

// Fills in positions and counts only.
Seen seen_by(const Windows& windows, int64_t window) {
  Seen seen;
  const Ints at = position_of(window, windows.count);
  for (int64_t tap = 0; tap < windows.kernel.element_count(); ++tap) {
    const Ints of_tap = position_of(tap, windows.kernel);
    bool padded = true;
    for (int d = 0; d < windows.rank(); ++d) {
      const auto i = static_cast<size_t>(d);
      const int64_t position = windows.position(d, at[i], of_tap[i]);
      padded = padded && position >= -windows.begin[i] && position < windows.on[d] + windows.end[i];
    }
    seen.with_pads += padded ? 1 : 0;
    if (const int64_t position = windows.flat(at, of_tap); position >= 0) seen.positions.push_back(position);
  }
  return seen;
}

// Returns f of each window of each channel; `visit` is called with the channel, the window and its content.
Numbers pooled(const Call& call, bool global, const Pooled& f, const std::function<void(int64_t, int64_t, const Seen&)>& visit = {}) {
  const Numbers& x = call[0];
  const Windows windows = pool_windows(call, global);
  Numbers y = zeros(x.dtype, with_spatial(x.shape[0], x.shape[1], windows.count));
  y.scale = y.values;
  const int64_t count = windows.count.element_count(), size = windows.on.element_count();
  for (int64_t window = 0; window < count; ++window) {
    Seen seen = seen_by(windows, window);
    for (int64_t channel = 0; channel < x.shape[0] * x.shape[1]; ++channel) {
      seen.elements.clear();
      for (const int64_t position : seen.positions) seen.elements.push_back(x.values[static_cast<size_t>(channel * size + position)]);
      const auto to = static_cast<size_t>(channel * count + window);
      y.values[to] = f(seen, &y.scale[to]);
      if (visit) visit(channel, window, seen);
    }
  }
  return y;
}

// Returns the first of the largest elements, in row-major order whatever the order of the indices.
size_t first_largest(const Seen& seen) {
  size_t largest = 0;
  for (size_t i = 1; i < seen.elements.size(); ++i)
    if (seen.elements[i] > seen.elements[largest]) largest = i;
  return largest;
}
Number largest(const Seen& seen, Number*) {
  return seen.elements[first_largest(seen)];
}

// Returns the index of a position of a channel, as a flat one in the whole input. Column-major indices count the last dimension slowest.
int64_t index_of(int64_t channel, int64_t position, const Shape& on, bool column_major) {
  if (column_major) {
    const Ints at = position_of(position, on);
    position = 0;
    for (int d = on.rank(); d-- > 0;) position = position * on[d] + at[static_cast<size_t>(d)];
  }
  return channel * on.element_count() + position;
}

std::vector<Numbers> max_pool(const Call& call) {
  const Shape on = spatial(call[0].shape);
  const bool column_major = call.i("storage_order", 0) != 0;
  const int64_t count = pool_windows(call, false).count.element_count();
  std::vector<Number> indices(static_cast<size_t>(call[0].shape[0] * call[0].shape[1] * count));
  Numbers y = pooled(call, false, largest, [&](int64_t channel, int64_t window, const Seen& seen) {
    indices[static_cast<size_t>(channel * count + window)] =
        static_cast<Number>(index_of(channel, seen.positions[first_largest(seen)], on, column_major));
  });
  y.scale.clear();
  const Shape shape = y.shape;
  return {std::move(y), {DType::i64, shape, std::move(indices), {}}};
}

Pooled average(bool count_pads) {
  return [count_pads](const Seen& seen, Number* scale) {
    Number sum = 0;
    for (const Number x : seen.elements) {
      sum += x;
      *scale += std::fabs(x);
    }
    const auto count = static_cast<Number>(count_pads ? seen.with_pads : static_cast<int64_t>(seen.elements.size()));
    *scale /= count;
    return sum / count;
  };
}
Pooled norm(const Call& call) {
  return [p = static_cast<Number>(call.i("p", 2))](const Seen& seen, Number*) {
    Number sum = 0;
    for (const Number x : seen.elements) sum += std::pow(std::fabs(x), p);
    return std::pow(sum, 1 / p);
  };
}

// Calls of every windowed pool. Channels around the width of vectors, for kernels that work on channels-last memory.
const std::vector<Case> windowed = {
    {Kind::odd, "T[1,1,7]; kernel_shape=[3]"},
    {Kind::odd, "T[2,3,7,9]; kernel_shape=[3,2]"},
    {Kind::odd, "T[1,2,5,3,4]; kernel_shape=[2,1,3]"},
    {Kind::odd, "T[1,2,5,4]; kernel_shape=[5,4]"},
    {Kind::odd, "f32[1,17,6,5]; kernel_shape=[3,3], pads=[1,1,1,1]"},
    {Kind::odd, "f32[2,33,6,5]; kernel_shape=[2,3], pads=[1,2,0,1]"},
    {Kind::odd, "f32[1,64,3,9]; kernel_shape=[1,8]"},
    {Kind::odd, "T[1,2,6,6]; kernel_shape=[3,2], pads=[2,0,1,1], dilations=[1,1]"},
    {Kind::empty, "T[0,3,7]; kernel_shape=[3]"},
    {Kind::empty, "T[2,0,7,5]; kernel_shape=[3,2]"},
    {Kind::strided, "T[1,3,17]; kernel_shape=[3], strides=[2], dilations=[3], pads=[2,1]"},
    {Kind::strided, "T[2,2,13,11]; kernel_shape=[3,2], strides=[2,3], dilations=[2,1], pads=[1,0,2,1]"},
    {Kind::strided, "T[1,2,7,6,8]; kernel_shape=[2,3,2], strides=[2,1,3], dilations=[3,1,2], pads=[1,0,1,0,2,1]"},
    {Kind::strided, "f32[1,20,13,11]; kernel_shape=[3,3], strides=[2,2], dilations=[1,2], pads=[1,1,1,1]"},
    {Kind::strided, "T[1,2,10,11]; kernel_shape=[4,3], auto_pad=\"SAME_UPPER\", strides=[2,3]"},
    {Kind::strided, "T[1,2,10,11]; kernel_shape=[4,3], auto_pad=\"SAME_LOWER\", strides=[2,3], dilations=[2,1]"},
    {Kind::strided, "T[1,2,10,11]; kernel_shape=[4,3], auto_pad=\"VALID\", strides=[1,2]"},
    // The last window sticks out; would begin in the pad after the input; fits.
    {Kind::strided, "T[1,2,8,9]; kernel_shape=[3,2], strides=[2,3], ceil_mode=1"},
    {Kind::strided, "T[1,2,4,2]; kernel_shape=[3,3], strides=[3,3], pads=[1,1,1,1], ceil_mode=1"},
    {Kind::strided, "T[1,2,7,12]; kernel_shape=[3,3], strides=[2,3], pads=[1,0,1,0], dilations=[1,2], ceil_mode=1"},
    {Kind::rank, "T[2,3,4,3,5]; kernel_shape=[2,2,3], pads=[1,0,1,0,1,2]"},
    {Kind::large, "f32[3,35,31,29]; kernel_shape=[3,3], strides=[1,1], pads=[1,1,1,1]"},
    {Kind::large, "f32[1,5,30011]; kernel_shape=[5], strides=[2], pads=[1,2]"},
    {Kind::large, "f16[2,3,61,67]; kernel_shape=[5,3]"},
    {Kind::large, "f32[1,2,40,40]; kernel_shape=[31,30]"},
};
const std::vector<Case> whole_channels = {
    {Kind::odd, "T[2,3,7]"},       {Kind::odd, "T[1,5,3,9]"},     {Kind::odd, "T[1,2,3,5,7]"},      {Kind::odd, "f32[2,17,3,3]"},
    {Kind::odd, "f32[1,64,1,13]"}, {Kind::odd, "T[3,1,1]"},       {Kind::empty, "T[0,3,7]"},        {Kind::empty, "T[2,0,7,5]"},
    {Kind::rank, "T[2,3,4,3,5]"},  {Kind::large, "T[2,7,71,67]"}, {Kind::large, "f32[3,257,9,11]"},
};
const std::map<Kind, std::string> one_input = {{Kind::broadcast, "one input"}};
const std::map<Kind, std::string> whole = {{Kind::broadcast, "one input"}, {Kind::strided, "the window is the whole channel"}};

// Sums of many numbers of one sign, in groups, in which each addition may round by half a unit.
const std::map<DType, double> sums_in_f32 = {{DType::f16, rounded_once}, {DType::bf16, rounded_once}, {DType::f32, 2}}, exact = {};

std::vector<Case> with(std::vector<Case> cases, const std::vector<Case>& more) {
  cases.insert(cases.end(), more.begin(), more.end());
  return cases;
}

Row max_pool_row() {
  return {
      .type = "MaxPool",
      .reference = max_pool,
      .cases = with(windowed, {{Kind::odd, "T[1,2,5,4]; kernel_shape=[2,3], storage_order=1"},
                               {Kind::strided, "T[2,1,5,4,3]; kernel_shape=[2,3,1], storage_order=1, strides=[2,1,1], pads=[0,1,0,1,0,0]"},
                               // Among several largest elements the first one wins.
                               {Kind::odd, "T[1,2,3,4] = 3; kernel_shape=[2,2]"},
                               {Kind::odd, "u8[2,3,9,7] = 0..3; kernel_shape=[3,3], pads=[1,1,1,1]"},
                               {Kind::odd, "i8[2,3,9,7] = -2..1; kernel_shape=[3,3], pads=[1,1,1,1], storage_order=1"},
                               {Kind::odd, "i8[1,1,4] = -128 -128 -128 127; kernel_shape=[2]"},
                               {Kind::odd, "f32[1,1,7] = -inf -inf 1 inf inf 0 -1; kernel_shape=[2]"},
                               {Kind::odd, "f64[1,1,7] = -inf -inf 1 inf inf 0 -1; kernel_shape=[2], pads=[1,1]"},
                               {Kind::odd, "f16[1,1,7] = -inf -inf 1 inf inf 0 -1; kernel_shape=[2]"}}),
      .without = one_input};
}

Row average_pool_row() {
  std::vector<Case> cases = windowed;
  for (const Case& c : windowed) cases.push_back({c.kind, c.call + ", count_include_pad=1"});
  return {.type = "AveragePool",
          .reference = [](const Call& c) { return std::vector{pooled(c, false, average(c.i("count_include_pad", 0) != 0))}; },
          .cases = with(std::move(cases), {{Kind::odd, "T[1,1,7] = -inf 2 nan 1 inf inf -1; kernel_shape=[2]"}}),
          .ulps = 1,
          .without = one_input,
          .ulps_of = sums_in_f32};
}

Row lp_pool_row() {
  return {.type = "LpPool",
          .reference = [](const Call& c) { return std::vector{pooled(c, false, norm(c))}; },
          .cases = with(windowed, {{Kind::odd, "T[2,3,7,9]; kernel_shape=[3,2], p=1, pads=[1,1,0,1]"},
                                   {Kind::odd, "T[2,3,7,9]; kernel_shape=[3,2], p=3"},
                                   {Kind::odd, "f32[2,17,7,9]; kernel_shape=[3,2], p=1"},
                                   {Kind::odd, "T[1,2,11]; kernel_shape=[2], p=5"},
                                   {Kind::odd, "T[1,1,7] = -inf 2 nan 1 inf inf -1; kernel_shape=[2]"}}),
          .ulps = 1,
          .without = one_input,
          .ulps_of = sums_in_f32};
}

Row global_row(const char* type, Reference reference, double ulps, std::vector<Case> more) {
  return {.type = type,
          .reference = std::move(reference),
          .cases = with(std::move(more), whole_channels),
          .ulps = ulps,
          .without = whole,
          .ulps_of = ulps == 0 ? exact : sums_in_f32};
}

}  // namespace
}  // namespace reference_pooling

std::vector<Row> pooling_rows() {
  using namespace reference_pooling;
  return {
      max_pool_row(),
      average_pool_row(),
      lp_pool_row(),
      global_row("GlobalMaxPool", [](const Call& c) { return std::vector{pooled(c, true, largest)}; }, 0,
                 {{Kind::odd, "T[1,2,3] = -inf -inf -inf 1 inf -1"}}),
      global_row("GlobalAveragePool", [](const Call& c) { return std::vector{pooled(c, true, average(false))}; }, 1,
                 {{Kind::odd, "T[1,3,2] = -inf 1 nan 1 inf -inf"}}),
      global_row("GlobalLpPool", [](const Call& c) { return std::vector{pooled(c, true, norm(c))}; }, 1,
                 {{Kind::odd, "T[2,3,7]; p=1"}, {Kind::odd, "T[2,3,7,5]; p=3"}, {Kind::odd, "T[1,3,2] = -inf 1 nan 1 0 -0"}}),
  };
}

}  // namespace heddle::conformance
