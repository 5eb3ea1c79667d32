// Conv and ConvTranspose.
#include <algorithm>

#include "conformance/references/reference_window.h"

namespace heddle::conformance {
namespace reference_convolution {
namespace {

const Numbers* bias_of(const Call& call) {
  return call.has(2) ? &call[2] : nullptr;
}

std::vector<Numbers> convolved(const Call& call) {
  const Numbers &x = call[0], &w = call[1];
  Windows windows = windows_of(call, spatial(x.shape), spatial(w.shape));
  count_windows(windows, call.s("auto_pad", "NOTSET"), false);
  return {sum_of_products(x, w, bias_of(call), call.i("group", 1), with_spatial(x.shape[0], w.shape[0], windows.count),
                          factors_of_windows(windows), false)};
}

std::vector<Numbers> transposed(const Call& call) {
  const Numbers &x = call[0], &w = call[1];
  Windows windows = windows_of(call, spatial(x.shape), spatial(w.shape));
  const std::string auto_pad = call.s("auto_pad", "NOTSET");
  const Ints more = call.ints("output_padding", Ints(windows.strides.size(), 0)), wanted = call.ints("output_shape");
  for (int d = 0; d < windows.rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    const int64_t whole = windows.strides[i] * (x.shape[d + 2] - 1) + more[i] + windows.reach(d);
    const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
    if (!wanted.empty() || same) {
      windows.on[d] = !wanted.empty() ? wanted[i] : x.shape[d + 2] * windows.strides[i];
      split_pads(windows, d, std::max<int64_t>(whole - windows.on[d], 0), auto_pad == "SAME_UPPER");
    } else {
      windows.on[d] = whole - windows.begin[i] - windows.end[i];
    }
  }
  // The windows are on Y.
  const int64_t groups = call.i("group", 1);
  const Shape shape = with_spatial(x.shape[0], w.shape[1] * groups, windows.on);
  return {sum_of_products(x, w, bias_of(call), groups, shape, factors_of_elements(windows), true)};
}

// A call of either operator: the filters are W[m, c / group, ...] for Conv, W[c, m / group, ...] for ConvTranspose.
struct Setting {
  Kind kind;
  std::string dtype;
  int64_t batch, c, m, group;
  std::string extents, kernel;
  bool bias = false;
  std::string attributes = "";
};

Case case_of(const Setting& s, bool transposed) {
  const auto tensor = [&](int64_t first, int64_t second, const std::string& rest) {
    return s.dtype + "[" + std::to_string(first) + "," + std::to_string(second) + "," + rest + "]";
  };
  std::string call = tensor(s.batch, s.c, s.extents) + ", ";
  call += transposed ? tensor(s.c, s.m / s.group, s.kernel) : tensor(s.m, s.c / s.group, s.kernel);
  if (s.bias) call += ", " + s.dtype + "[" + std::to_string(s.m) + "]";
  call += "; group=" + std::to_string(s.group);
  if (!s.attributes.empty()) call += ", " + s.attributes;
  return {s.kind, call};
}

// For both: each number of dimensions, groups, depthwise, each attribute, channels around the width of vectors and blocks of channels.
const Setting settings_of_both[] = {
    {Kind::odd, "T", 1, 3, 5, 1, "17", "3"},
    {Kind::odd, "T", 2, 4, 6, 2, "7,9", "3,2", true},
    {Kind::odd, "T", 1, 2, 3, 1, "5,3,4", "2,1,3", true},
    {Kind::odd, "f32", 3, 17, 33, 1, "7,5", "1,1", true},
    {Kind::odd, "f32", 1, 16, 64, 1, "9,8", "3,3", true, "pads=[1,1,1,1], kernel_shape=[3,3]"},
    {Kind::odd, "f32", 2, 65, 7, 1, "6,11", "3,3"},
    {Kind::odd, "f32", 1, 1, 1, 1, "1", "1", true},
    {Kind::odd, "T", 2, 7, 7, 7, "6,5", "3,3", true, "pads=[1,1,1,1]"},
    {Kind::odd, "T", 2, 7, 14, 7, "6,5", "3,3", false, "pads=[0,1,1,0]"},
    {Kind::odd, "f32", 1, 24, 36, 12, "7,7", "3,3", true, "pads=[1,1,1,1]"},
    {Kind::odd, "f32", 1, 15, 6, 3, "19", "5", true},
    {Kind::odd, "f32", 1, 16, 16, 16, "5,4,3", "3,2,2", false, "pads=[1,0,1,1,1,0]"},
    {Kind::empty, "T", 0, 3, 5, 1, "7", "3", true},
    {Kind::empty, "T", 2, 0, 3, 1, "5,4", "3,2", true},
    {Kind::empty, "T", 2, 3, 0, 1, "5,4", "3,2"},
    {Kind::strided, "T", 2, 3, 5, 1, "17", "3", true, "strides=[3], dilations=[2], pads=[2,1]"},
    {Kind::strided, "T", 1, 2, 4, 2, "13,11", "3,2", false, "strides=[2,3], dilations=[1,2], pads=[1,0,0,1]"},
    {Kind::strided, "T", 1, 2, 2, 1, "7,6,5", "2,3,2", true, "strides=[2,1,3], dilations=[3,1,2], pads=[1,0,1,0,2,1]"},
    {Kind::strided, "T", 1, 2, 2, 1, "10,11", "4,3", true, "auto_pad=\"SAME_UPPER\", strides=[2,3]"},
    {Kind::strided, "T", 1, 2, 2, 1, "10,11", "4,3", false, "auto_pad=\"SAME_LOWER\", strides=[2,3], dilations=[2,1]"},
    {Kind::strided, "T", 1, 2, 2, 1, "10,11", "4,3", false, "auto_pad=\"VALID\", strides=[1,2]"},
    {Kind::strided, "T", 1, 2, 2, 1, "9", "1", true, "auto_pad=\"SAME_UPPER\", strides=[3]"},
    {Kind::strided, "f32", 1, 33, 33, 33, "9,12", "3,3", true, "strides=[2,2], pads=[1,1,1,1]"},
    {Kind::strided, "f32", 2, 20, 20, 20, "8,7", "3,3", false, "strides=[2,2], pads=[0,0,1,1]"},
    {Kind::strided, "f32", 1, 20, 20, 20, "8,7", "3,3", false, "strides=[1,2], dilations=[2,1], pads=[1,0,1,2]"},
    {Kind::strided, "f32", 1, 9, 17, 1, "12,14", "1,1", true, "strides=[2,3]"},
    {Kind::strided, "f32", 1, 3, 32, 1, "35,29", "7,7", true, "strides=[2,2], pads=[3,3,3,3]"},
    {Kind::rank, "T", 2, 4, 6, 2, "3,4,5", "2,2,2", true, "pads=[1,1,1,0,1,0]"},
    {Kind::rank, "f32", 1, 17, 16, 1, "5,6,7", "3,3,3", true, "pads=[1,1,1,1,1,1], strides=[1,2,1]"},
    // Several tiles: of rows, of images, of pixels, of channels, of depthwise rows.
    {Kind::large, "f32", 1, 17, 19, 1, "33,31", "3,3", true, "pads=[1,1,1,1]"},
    {Kind::large, "f32", 1, 16, 16, 1, "47,61", "3,3", true, "pads=[1,0,2,0], strides=[1,2], dilations=[2,1]"},
    {Kind::large, "f32", 3, 8, 23, 1, "23,21", "5,3", false, "strides=[1,1]"},
    {Kind::large, "f32", 1, 48, 40, 1, "37,39", "1,1", true},
    {Kind::large, "f32", 1, 64, 128, 1, "9,9", "3,3", true},
    {Kind::large, "f32", 1, 35, 35, 35, "43,45", "3,3", true, "pads=[1,1,1,1]"},
    {Kind::large, "f32", 1, 12, 16, 1, "2051", "7", true, "pads=[3,3]"},
    {Kind::large, "f32", 1, 8, 9, 1, "13,17,19", "3,3,3", true, "pads=[1,1,1,1,1,1]"},
    {Kind::large, "f32", 3, 48, 40, 1, "21,23", "1,1"},
    // oneDNN is not called for such pads.
    {Kind::large, "f32", 2, 3, 2, 1, "10001", "3", true, "pads=[5000,0]"},
    {Kind::large, "f16", 1, 3, 5, 1, "91,97", "3,3", true},
    {Kind::large, "bf16", 2, 5, 4, 1, "61,57", "3,2", true},
    {Kind::large, "f64", 2, 5, 4, 1, "61,57", "3,2", true},
};

Row row(const char* type, bool of_transposed, std::vector<Case> more) {
  for (const Setting& s : settings_of_both) more.push_back(case_of(s, of_transposed));
  return {.type = type,
          .reference = of_transposed ? transposed : convolved,
          .cases = std::move(more),
          // Sums of up to 600 terms, the longest in f32, in which each addition may round by half a unit of the sum so far: in any order
          // well below sqrt(n) / 2 units of the sum of all magnitudes.
          .ulps = 1,
          .without = {{Kind::broadcast, "X, W and B have shapes of their own"}},
          .ulps_of = {{DType::f16, rounded_once}, {DType::bf16, rounded_once}, {DType::f32, 3}}};
}

Row conv() {
  return row("Conv", false,
             {{Kind::odd, "T[1,1,6] = nan 1 2 inf -1 -inf, T[1,1,2] = 0.5 -1"},
              {Kind::odd, "T[1,1,6] = 1 2 inf inf -0 -0, T[2,1,2] = 0.5 1 -1 1, T[2] = inf -0; pads=[0,1]"},
              {Kind::empty, "T[1,2,0], T[3,2,2], T[3]; pads=[2,2]"},
              {Kind::large, "f32[1,35,85,87], f32[35,1,3,3]; group=35, pads=[1,1,1,1], strides=[2,2]"},
              // oneDNN is not called for such pads.
              {Kind::large, "f32[1,4,9000,3], f32[6,2,3,2], f32[6]; group=2, pads=[4500,1,0,0], strides=[7,1], dilations=[2,1]"},
              {Kind::large, "f32[2,2,9000,3,2], f32[2,2,1,2,2]; pads=[4500,0,1,0,1,0], strides=[11,2,1]"}});
}

Row conv_transpose() {
  return row("ConvTranspose", true,
             {{Kind::odd, "T[1,1,4] = nan 1 inf -1, T[1,1,2] = 0.5 -1"},
              {Kind::strided, "T[1,2,3], T[2,3,3], T[3]; strides=[3], output_padding=[2]"},
              {Kind::strided, "T[2,4,3,5], T[4,3,2,3]; group=2, strides=[2,3], dilations=[3,2], output_padding=[1,2], pads=[1,0,2,1]"},
              {Kind::strided, "T[1,2,4,3,2], T[2,1,3,2,2]; strides=[2,2,3], output_padding=[1,0,2]"},
              {Kind::strided, "f32[1,5,9], f32[5,7,4], f32[7]; dilations=[3], output_padding=[2]"},
              {Kind::strided, "f32[2,4,3,5], f32[4,3,2,3], f32[6]; group=2, strides=[2,1], dilations=[3,2], output_padding=[2,1]"},
              {Kind::strided, "f32[1,3,3,4,2], f32[3,2,2,2,2]; strides=[1,2,1], dilations=[2,1,3], output_padding=[1,1,2]"},
              {Kind::strided, "T[1,2,5,4], T[2,3,3,2]; strides=[2,3], output_shape=[10,10]"},
              {Kind::strided, "T[1,2,5,4], T[2,3,3,2]; strides=[2,3], output_shape=[8,9], auto_pad=\"SAME_UPPER\""},
              {Kind::strided, "T[1,2,5,4], T[2,3,4,4]; strides=[2,3], output_shape=[9,10], output_padding=[1,2], auto_pad=\"SAME_LOWER\""},
              {Kind::strided, "T[1,2,3,3], T[2,1,3,3]; strides=[3,2], output_shape=[10,8]"},
              {Kind::strided, "f32[1,2,7], f32[2,3,2]; strides=[4], auto_pad=\"SAME_UPPER\""},
              // So large that it is divided by rows.
              {Kind::large, "f32[1,64,49,51], f32[64,64,9,9]; strides=[2,1]"}});
}

}  // namespace
}  // namespace reference_convolution

std::vector<Row> convolution_rows() {
  using namespace reference_convolution;
  return {conv(), conv_transpose()};
}

}  // namespace heddle::conformance
