// ConvDataGradient and ConvFilterGradient.
#include <algorithm>

#include "conformance/references/reference_window.h"

namespace heddle::conformance {
namespace reference_convolution_gradient {
namespace {

Shape listed(const Call& call) {
  Shape shape;
  for (const int64_t extent : call.list(2)) shape.push_back(extent);
  return shape;
}

// Returns the forward convolution's windows: as many as dY has elements.
Windows windows_on(const Call& call, const Shape& x, const Shape& w, const Shape& dy) {
  Windows windows = windows_of(call, spatial(x), spatial(w));
  count_windows(windows, call.s("auto_pad", "NOTSET"), false);
  windows.count = spatial(dy);
  return windows;
}

std::vector<Numbers> data_gradient(const Call& call) {
  const Numbers &dy = call[0], &w = call[1];
  const Shape shape = listed(call);
  const Windows windows = windows_on(call, shape, w.shape, dy.shape);
  return {sum_of_products(dy, w, nullptr, call.i("group", 1), shape, factors_of_elements(windows), true)};
}

// dW[m, c, tap] = the sum of X[n, c, element] dY[n, m, window] over the images and the windows whose tap is on an element.
std::vector<Numbers> filter_gradient(const Call& call) {
  const Numbers &x = call[0], &dy = call[1];
  Numbers dw = zeros(x.dtype, listed(call));
  dw.scale = dw.values;
  const Windows windows = windows_on(call, x.shape, dw.shape, dy.shape);
  struct Pair {
    size_t element, window;
  };
  std::vector<std::vector<Pair>> pairs(static_cast<size_t>(windows.kernel.element_count()));
  const std::vector<std::vector<Factors>> of_windows = factors_of_windows(windows);
  for (size_t window = 0; window < of_windows.size(); ++window)
    for (const Factors& f : of_windows[window]) pairs[f.tap].push_back({f.element, window});

  const int64_t groups = call.i("group", 1), channels_in = x.shape[1] / groups, channels_out = dy.shape[1] / groups;
  const int64_t size_x = windows.on.element_count(), size_y = windows.count.element_count();
  size_t to = 0;
  for (int64_t m = 0; m < dy.shape[1]; ++m)
    for (int64_t c = 0; c < channels_in; ++c)
      for (const std::vector<Pair>& of_tap : pairs) {
        Sum sum;
        for (int64_t n = 0; n < x.shape[0]; ++n) {
          const Number* const elements = x.values.data() + (n * x.shape[1] + m / channels_out * channels_in + c) * size_x;
          const Number* const gradients = dy.values.data() + (n * dy.shape[1] + m) * size_y;
          for (const Pair& pair : of_tap) sum.add_product(elements[pair.element], gradients[pair.window]);
        }
        sum.store(dw, to++);
      }
  return {dw};
}

// A convolution of X [batch, c, extents...] with m filters; `windows`: how many there are along each dimension.
struct Setting {
  Kind kind;
  std::string dtype;
  int64_t batch, c, m, group;
  std::string extents, kernel, windows;
  std::string attributes = "";
};

Case case_of(const Setting& s, bool of_filters) {
  const auto dims = [](int64_t first, int64_t second, const std::string& rest) {
    return std::to_string(first) + "," + std::to_string(second) + "," + rest;
  };
  const std::string x = dims(s.batch, s.c, s.extents), w = dims(s.m, s.c / s.group, s.kernel), dy = dims(s.batch, s.m, s.windows);
  std::string shape = of_filters ? w : x, rank = std::to_string(2 + std::count(s.kernel.begin(), s.kernel.end(), ',') + 1);
  for (char& c : shape) c = c == ',' ? ' ' : c;
  const std::string first = of_filters ? x : dy, second = of_filters ? dy : w;
  std::string call = s.dtype + "[" + first + "], " + s.dtype + "[" + second + "], i64[" + rank + "] = " + shape;
  call += "; group=" + std::to_string(s.group);
  if (!s.attributes.empty()) call += ", " + s.attributes;
  return {s.kind, call};
}

const Setting settings[] = {
    {Kind::odd, "T", 1, 3, 5, 1, "17", "3", "15"},
    {Kind::odd, "T", 2, 4, 6, 2, "7,9", "3,2", "5,8"},
    {Kind::odd, "T", 1, 2, 3, 1, "5,3,4", "2,1,3", "4,3,2"},
    {Kind::odd, "f32", 3, 17, 33, 1, "7,5", "1,1", "7,5"},
    {Kind::odd, "f32", 1, 16, 64, 1, "9,8", "3,3", "9,8", "pads=[1,1,1,1], kernel_shape=[3,3]"},
    {Kind::odd, "f32", 2, 65, 7, 1, "6,11", "3,3", "4,9"},
    {Kind::odd, "f32", 1, 1, 1, 1, "1", "1", "1"},
    {Kind::odd, "T", 2, 7, 7, 7, "6,5", "3,3", "6,5", "pads=[1,1,1,1]"},
    {Kind::odd, "T", 2, 7, 14, 7, "6,5", "3,3", "5,4", "pads=[0,1,1,0]"},
    {Kind::odd, "f32", 1, 24, 36, 12, "7,7", "3,3", "7,7", "pads=[1,1,1,1]"},
    {Kind::odd, "f32", 1, 16, 16, 16, "5,4,3", "3,2,2", "5,3,3", "pads=[1,0,1,1,1,0]"},
    {Kind::empty, "T", 0, 3, 5, 1, "7", "3", "5"},
    {Kind::empty, "T", 2, 0, 3, 1, "5,4", "3,2", "3,3"},
    {Kind::empty, "T", 2, 3, 0, 1, "5,4", "3,2", "3,3"},
    // Elements at the end that no window reaches contribute to neither gradient.
    {Kind::strided, "T", 2, 3, 5, 1, "18", "3", "6", "strides=[3], dilations=[2], pads=[2,1]"},
    {Kind::strided, "T", 1, 2, 4, 2, "14,13", "3,2", "7,4", "strides=[2,3], dilations=[1,2], pads=[1,0,0,1]"},
    {Kind::strided, "T", 1, 2, 2, 1, "7,6,5", "2,3,2", "3,4,2", "strides=[2,1,3], dilations=[3,1,2], pads=[1,0,1,0,0,1]"},
    {Kind::strided, "T", 1, 2, 2, 1, "10,11", "4,3", "5,4", "auto_pad=\"SAME_UPPER\", strides=[2,3]"},
    {Kind::strided, "T", 1, 2, 2, 1, "10,11", "4,3", "5,4", "auto_pad=\"SAME_LOWER\", strides=[2,3], dilations=[2,1]"},
    {Kind::strided, "T", 1, 2, 2, 1, "10,11", "4,3", "7,5", "auto_pad=\"VALID\", strides=[1,2]"},
    {Kind::strided, "T", 1, 2, 2, 1, "11", "1", "3", "strides=[4]"},
    // Fewer windows than possible.
    {Kind::strided, "T", 1, 2, 3, 1, "13,9", "3,2", "9,8", "dilations=[1,1]"},
    {Kind::strided, "f32", 1, 33, 33, 33, "9,12", "3,3", "5,6", "strides=[2,2], pads=[1,1,1,1]"},
    {Kind::strided, "f32", 1, 20, 20, 20, "8,7", "3,3", "5,5", "strides=[1,2], dilations=[2,1], pads=[1,2,0,2]"},
    {Kind::strided, "f32", 1, 9, 17, 1, "12,14", "1,1", "6,5", "strides=[2,3]"},
    {Kind::strided, "f32", 1, 3, 32, 1, "35,29", "7,7", "18,15", "strides=[2,2], pads=[3,3,3,3]"},
    {Kind::rank, "T", 2, 4, 6, 2, "3,4,5", "2,2,2", "4,4,5", "pads=[1,1,1,1,0,0]"},
    {Kind::rank, "f32", 1, 17, 16, 1, "5,6,7", "3,3,3", "5,3,7", "pads=[1,1,1,1,1,1], strides=[1,2,1]"},
    // Several tiles: of images, of filters, of input channels, of groups; of stretches of rows and of pixels.
    {Kind::large, "f32", 3, 64, 96, 1, "17,15", "3,3", "17,15", "pads=[1,1,1,1]"},
    {Kind::large, "f32", 5, 128, 128, 1, "28,21", "3,3", "28,21", "pads=[1,1,1,1]"},
    {Kind::large, "f32", 3, 96, 7, 1, "33,21", "3,3", "17,11", "pads=[1,1,1,1], strides=[2,2]"},
    {Kind::large, "f32", 2, 64, 64, 1, "47,41", "1,1", "47,41"},
    {Kind::large, "f32", 3, 64, 128, 2, "13,11", "3,3", "11,9"},
    {Kind::large, "f32", 2, 96, 96, 96, "35,37", "3,3", "35,37", "pads=[1,1,1,1]"},
    {Kind::large, "f32", 1, 32, 64, 1, "2051", "7", "2051", "pads=[3,3]"},
    {Kind::large, "f32", 1, 16, 16, 1, "13,17,19", "3,3,3", "13,17,19", "pads=[1,1,1,1,1,1]"},
    // oneDNN is not called for such pads.
    {Kind::large, "f32", 2, 3, 2, 1, "10001", "3", "14999", "pads=[5000,0]"},
    {Kind::large, "f16", 1, 3, 5, 1, "91,97", "3,3", "89,95"},
    {Kind::large, "bf16", 2, 5, 4, 1, "61,57", "3,2", "59,56"},
    {Kind::large, "f64", 2, 5, 4, 1, "61,57", "3,2", "59,56"},
};

Row row(const char* type, bool of_filters, std::vector<Case> more) {
  for (const Setting& s : settings) more.push_back(case_of(s, of_filters));
  return {.type = type,
          .reference = of_filters ? filter_gradient : data_gradient,
          .cases = std::move(more),
          // The same as for Conv; sums for filters are over all images and positions.
          .ulps = 1,
          .domain = "heddle",
          .without = {{Kind::broadcast, "dY, W and X have shapes of their own"}},
          .ulps_of = {{DType::f16, rounded_once}, {DType::bf16, rounded_once}, {DType::f32, 3}}};
}

}  // namespace
}  // namespace reference_convolution_gradient

std::vector<Row> convolution_gradient_rows() {
  using namespace reference_convolution_gradient;
  return {row("ConvDataGradient", false, {{Kind::odd, "T[1,1,5] = nan 1 2 inf -1, T[1,1,2] = 0.5 -1, i64[3] = 1 1 6"}}),
          row("ConvFilterGradient", true,
              {{Kind::odd, "T[1,1,6] = nan 1 2 inf -1 -1, T[1,1,2] = 0.5 -1, i64[3] = 1 1 5"},
               {Kind::odd, "T[1,1,4], T[1,1,1], i64[3] = 1 1 4"}})};
}

}  // namespace heddle::conformance
