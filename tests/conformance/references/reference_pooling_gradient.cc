// MaxPoolGradient and AveragePoolGradient.
#include <algorithm>
#include <cmath>

#include "conformance/references/reference_window.h"

namespace heddle::conformance {
namespace reference_pooling_gradient {
namespace {

Windows windows_on(const Call& call, const Shape& x) {
  const Shape on = spatial(x);
  Shape kernel;
  for (const int64_t extent : call.given("kernel_shape") ? call.ints("kernel_shape") : Ints(on.begin(), on.end())) kernel.push_back(extent);
  Windows windows = windows_of(call, on, kernel);
  count_windows(windows, call.s("auto_pad", "NOTSET"), call.i("ceil_mode", 0) != 0);
  return windows;
}

// Returns the taps of a window that are on X, in row-major order; `padded` counts those in the pads, too, but not beyond.
Ints taps_of(const Windows& windows, int64_t window, int64_t* padded) {
  Ints taps;
  const Ints at = position_of(window, windows.count);
  *padded = 0;
  for (int64_t tap = 0; tap < windows.kernel.element_count(); ++tap) {
    const Ints of_tap = position_of(tap, windows.kernel);
    bool is_padded = true;
    for (int d = 0; d < windows.rank(); ++d) {
      const auto i = static_cast<size_t>(d);
      const int64_t position = windows.position(d, at[i], of_tap[i]);
      is_padded = is_padded && position >= -windows.begin[i] && position < windows.on[d] + windows.end[i];
    }
    *padded += is_padded ? 1 : 0;
    if (const int64_t position = windows.flat(at, of_tap); position >= 0) taps.push_back(position);
  }
  return taps;
}

void add(Numbers& sums, int64_t at, Number term) {
  sums.values[static_cast<size_t>(at)] += term;
  sums.scale[static_cast<size_t>(at)] += std::fabs(term);
}

std::vector<Numbers> of_max(const Call& call) {
  const Numbers &x = call[0], &dy = call[1];
  const Windows windows = windows_on(call, x.shape);
  const int64_t count = windows.count.element_count(), size = windows.on.element_count();
  Numbers dx = zeros(x.dtype, x.shape);
  dx.scale = dx.values;
  for (int64_t window = 0; window < count; ++window) {
    int64_t padded = 0;
    const Ints taps = taps_of(windows, window, &padded);
    for (int64_t channel = 0; channel < x.shape[0] * x.shape[1]; ++channel) {
      const Number* const plane = x.values.data() + channel * size;
      const auto largest = std::max_element(taps.begin(), taps.end(), [&](int64_t a, int64_t b) { return plane[a] < plane[b]; });
      if (largest != taps.end()) add(dx, channel * size + *largest, dy.values[static_cast<size_t>(channel * count + window)]);
    }
  }
  return {dx};
}

std::vector<Numbers> of_average(const Call& call) {
  const Numbers& dy = call[0];
  Shape shape;
  for (const int64_t extent : call.list(1)) shape.push_back(extent);
  const Windows windows = windows_on(call, shape);
  const int64_t count = windows.count.element_count(), size = windows.on.element_count();
  Numbers dx = zeros(dy.dtype, shape);
  dx.scale = dx.values;
  for (int64_t window = 0; window < count; ++window) {
    int64_t padded = 0;
    const Ints taps = taps_of(windows, window, &padded);
    const int64_t counted = call.i("count_include_pad", 0) != 0 ? padded : static_cast<int64_t>(taps.size());
    const auto parts = static_cast<Number>(call.i("divisor", 0) != 0 ? call.i("divisor", 0) : counted);
    for (int64_t channel = 0; channel < shape[0] * shape[1]; ++channel)
      for (const int64_t tap : taps) add(dx, channel * size + tap, dy.values[static_cast<size_t>(channel * count + window)] / parts);
  }
  return {dx};
}

struct Setting {
  Kind kind;
  std::string dtype, x, windows, attributes;  // windows: how many there are along each dimension
};

Case case_of(const Setting& s, bool is_max, const std::string& more = "") {
  // The extents of dY: batch and channels are those of X.
  const std::string dy = s.x.substr(0, s.x.find(',', s.x.find(',') + 1) + 1) + s.windows;
  std::string shape = s.x;
  for (char& c : shape) c = c == ',' ? ' ' : c;
  const std::string rank = std::to_string(std::count(s.x.begin(), s.x.end(), ',') + 1);
  std::string call = s.dtype + "[" + (is_max ? s.x : dy) + "], " + (is_max ? s.dtype + "[" + dy + "]" : "i64[" + rank + "] = " + shape);
  std::string attributes = s.attributes;
  if (!more.empty()) attributes += (attributes.empty() ? "" : ", ") + more;
  if (!attributes.empty()) call += "; " + attributes;
  return {s.kind, call};
}

const Setting settings[] = {
    {Kind::odd, "T", "1,1,7", "5", "kernel_shape=[3]"},
    {Kind::odd, "T", "2,3,7,9", "5,8", "kernel_shape=[3,2]"},
    {Kind::odd, "T", "1,2,5,3,4", "4,3,2", "kernel_shape=[2,1,3]"},
    {Kind::odd, "T", "1,2,5,4", "1,1", "kernel_shape=[5,4]"},
    {Kind::odd, "f32", "1,17,6,5", "6,5", "kernel_shape=[3,3], pads=[1,1,1,1]"},
    {Kind::odd, "f32", "2,65,6,5", "6,6", "kernel_shape=[2,3], pads=[1,2,0,1]"},
    {Kind::odd, "f32", "1,64,3,9", "3,2", "kernel_shape=[1,8]"},
    {Kind::odd, "T", "1,1,4", "4", "kernel_shape=[1]"},
    {Kind::odd, "T", "1,1,1", "1", "kernel_shape=[1]"},
    // Whole channels.
    {Kind::odd, "T", "2,3,7", "1", ""},
    {Kind::odd, "f32", "2,17,3,3", "1,1", ""},
    {Kind::odd, "T", "1,2,3,5,7", "1,1,1", ""},
    {Kind::empty, "T", "0,3,7", "5", "kernel_shape=[3]"},
    {Kind::empty, "T", "2,0,7,5", "5,4", "kernel_shape=[3,2]"},
    {Kind::strided, "T", "1,3,17", "7", "kernel_shape=[3], strides=[2], dilations=[3], pads=[2,1]"},
    {Kind::strided, "T", "2,2,13,11", "6,4", "kernel_shape=[3,2], strides=[2,3], dilations=[2,1], pads=[1,0,2,1]"},
    {Kind::strided, "f32", "1,20,13,11", "7,5", "kernel_shape=[3,3], strides=[2,2], dilations=[1,2], pads=[1,1,1,1]"},
    {Kind::strided, "T", "1,2,10,11", "5,4", "kernel_shape=[4,3], auto_pad=\"SAME_UPPER\", strides=[2,3]"},
    {Kind::strided, "T", "1,2,10,11", "5,4", "kernel_shape=[4,3], auto_pad=\"SAME_LOWER\", strides=[2,3], dilations=[2,1]"},
    {Kind::strided, "T", "1,2,10,11", "7,5", "kernel_shape=[4,3], auto_pad=\"VALID\", strides=[1,2]"},
    {Kind::strided, "T", "1,2,11", "3", "kernel_shape=[2], strides=[4]"},
    // The last window sticks out; would begin in the pad after the input; fits.
    {Kind::strided, "T", "1,2,8,9", "4,3", "kernel_shape=[3,2], strides=[2,3], ceil_mode=1"},
    {Kind::strided, "T", "1,2,4,2", "2,1", "kernel_shape=[3,3], strides=[3,3], pads=[1,1,1,1], ceil_mode=1"},
    {Kind::rank, "T", "2,3,4,3,5", "4,3,6", "kernel_shape=[2,2,3], pads=[1,0,1,0,1,2]"},
    {Kind::large, "f32", "3,35,31,29", "31,29", "kernel_shape=[3,3], strides=[1,1], pads=[1,1,1,1]"},
    {Kind::large, "f32", "1,200,61,59", "31,30", "kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]"},
    {Kind::large, "f32", "1,5,30011", "15005", "kernel_shape=[5], strides=[2], pads=[1,2]"},
    {Kind::large, "f16", "2,3,61,67", "57,65", "kernel_shape=[5,3]"},
    {Kind::large, "f32", "1,2,40,40", "10,11", "kernel_shape=[31,30]"},
    {Kind::large, "f64", "3,25,41,43", "1,1", ""},
};
const std::map<DType, double> sums_in_f32 = {{DType::f16, rounded_once}, {DType::bf16, rounded_once}, {DType::f32, 4}};

}  // namespace
}  // namespace reference_pooling_gradient

std::vector<Row> pooling_gradient_rows() {
  using namespace reference_pooling_gradient;
  std::vector<Case> max = {
      // Among several largest elements the first one wins.
      {Kind::odd, "T[1,2,3,4] = 3, T[1,2,2,3]; kernel_shape=[2,2]"},
      {Kind::odd, "f32[2,33,5,4] = 3, f32[2,33,5,4]; kernel_shape=[3,3], pads=[1,1,1,1]"},
      {Kind::odd, "T[1,1,7] = -inf -inf 1 inf inf 0 -1, T[1,1,6]; kernel_shape=[2]"},
      {Kind::odd, "T[1,1,4], T[1,1,3] = nan 1 inf; kernel_shape=[2]"},
  };
  std::vector<Case> average = {{Kind::odd, "T[1,1,6] = -inf 2 nan 1 inf inf, i64[3] = 1 1 7; kernel_shape=[2]"}};
  for (const Setting& s : settings) {
    max.push_back(case_of(s, true));
    average.push_back(case_of(s, false));
    average.push_back(case_of(s, false, "count_include_pad=1"));
    if (s.kind == Kind::strided || s.attributes.empty()) average.push_back(case_of(s, false, "divisor=3"));
  }
  return {{.type = "MaxPoolGradient",
           .reference = of_max,
           .cases = std::move(max),
           .ulps = 1,
           .domain = "heddle",
           .without = {{Kind::broadcast, "dY has the extents that the windows on X give"}},
           .ulps_of = sums_in_f32},
          {.type = "AveragePoolGradient",
           .reference = of_average,
           .cases = std::move(average),
           .ulps = 1,
           .domain = "heddle",
           .without = {{Kind::broadcast, "one input of numbers"}},
           .ulps_of = sums_in_f32}};
}

}  // namespace heddle::conformance
