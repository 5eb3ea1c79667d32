// Resize.
#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/cases/rounding.h"

namespace heddle::conformance {
namespace reference_resize {
namespace {

struct Axis {
  int64_t input = 0, output = 0;
  Number scale = 1, start = 0, end = 1;  // the part of the input in tf_crop_and_resize
};

// Returns extents, scales and parts of all axes; axes that `axes` leaves out are unchanged.
std::vector<Axis> axes_of(const Call& call) {
  const Shape& shape = call[0].shape;
  std::vector<Axis> all;
  for (const int64_t extent : shape) all.push_back({extent, extent});
  Ints axes = call.ints("axes");
  if (axes.empty())
    for (int d = 0; d < shape.rank(); ++d) axes.push_back(d);
  std::vector<Axis*> of;
  for (const int64_t axis : axes) of.push_back(&all[static_cast<size_t>(positive_axis(axis, shape.rank()))]);

  for (size_t i = 0; i < of.size(); ++i) {
    if (call.has(2)) {
      of[i]->scale = call[2].values[i];
      of[i]->output = static_cast<int64_t>(std::floor(rounded(DType::f32, of[i]->scale * static_cast<Number>(of[i]->input))));
    } else {
      of[i]->output = call.list(3)[i];
      of[i]->scale = static_cast<Number>(of[i]->output) / static_cast<Number>(of[i]->input);
    }
    if (call.s("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize") continue;
    of[i]->start = call[1].values[i];
    of[i]->end = call[1].values[of.size() + i];
  }
  const std::string policy = call.s("keep_aspect_ratio_policy", "stretch");
  if (call.has(2) || policy == "stretch") return all;
  const auto by_scale = [](const Axis* a, const Axis* b) { return a->scale < b->scale; };
  const Number common =
      (policy == "not_larger" ? *std::min_element(of.begin(), of.end(), by_scale) : *std::max_element(of.begin(), of.end(), by_scale))
          ->scale;
  for (Axis* axis : of) {
    axis->scale = common;
    axis->output = static_cast<int64_t>(std::floor(common * static_cast<Number>(axis->input) + 0.5L));  // halves up
  }
  return all;
}

// Returns the place of output position x on the input. The length of the output is the one that the scale gives, before it is rounded down.
Number coordinate(const Axis& axis, const std::string& mode, Number x) {
  const auto input = static_cast<Number>(axis.input), output = static_cast<Number>(axis.output), length = axis.scale * input;
  const Number half_pixel = (x + 0.5L) / axis.scale - 0.5L;
  if (mode == "half_pixel_symmetric") return input / 2 * (1 - output / length) + half_pixel;
  if (mode == "pytorch_half_pixel") return length > 1 ? half_pixel : 0;
  if (mode == "align_corners") return length == 1 ? 0 : x * (input - 1) / (length - 1);
  if (mode == "asymmetric") return x / axis.scale;
  if (mode == "tf_crop_and_resize")
    return length > 1 ? axis.start * (input - 1) + x * (axis.end - axis.start) * (input - 1) / (length - 1)
                      : (axis.start + axis.end) * (input - 1) / 2;
  return half_pixel;
}

Number nearest(const std::string& mode, Number x) {
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  return mode == "round_prefer_ceil" ? std::floor(x + 0.5L) : std::ceil(x - 0.5L);
}

// The interpolation kernels, which are 0 from 2 on.
Number linear(Number x) {
  return std::max<Number>(1 - std::fabs(x), 0);
}
Number cubic(Number x, Number a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

struct Tap {
  int64_t index;
  Number weight;
  Number of_weight = 0;  // magnitude of the weight's own error, in addition to the weight
};

// Returns the taps of one output position along one axis; none where it is outside of a cropped input.
std::vector<Tap> taps_of(const Call& call, const Axis& axis, int64_t position) {
  const std::string coordinates = call.s("coordinate_transformation_mode", "half_pixel"), mode = call.s("mode", "nearest");
  const Number x = coordinate(axis, coordinates, static_cast<Number>(position)), last = static_cast<Number>(axis.input - 1);
  if (coordinates == "tf_crop_and_resize" && !(x >= 0 && x <= last)) return {};
  if (mode == "nearest")
    return {{static_cast<int64_t>(std::clamp<Number>(nearest(call.s("nearest_mode", "round_prefer_floor"), x), 0, last)), 1}};
  const bool antialias = call.i("antialias", 0) != 0, exclude = call.i("exclude_outside", 0) != 0;
  const Number stretch = antialias ? std::min<Number>(axis.scale, 1) : 1;
  const auto a = static_cast<Number>(call.f("cubic_coeff_a", -0.75));
  std::vector<Tap> taps;
  Number sum = 0;
  for (Number i = std::floor(x - 2 / stretch); i <= x + 2 / stretch; ++i) {
    const bool outside = i < 0 || i > last;
    const Number weight = exclude && outside ? 0 : mode == "cubic" ? cubic((x - i) * stretch, a) : linear((x - i) * stretch);
    // Only f64 has no wider type to compute weights in: positions of the size of x, and cubic polynomials of terms up to 4, are rounded.
    if (weight != 0)
      taps.push_back(
          {static_cast<int64_t>(std::clamp<Number>(i, 0, last)), weight, call[0].dtype == DType::f64 ? (std::fabs(x) + 4) * stretch : 0});
    sum += weight;
  }
  for (Tap& tap : taps) {
    tap.weight /= antialias || exclude ? sum : 1;
    tap.of_weight /= antialias || exclude ? sum : 1;
  }
  return taps;
}

// Rounds to integers: to the nearest, ties to even, within their range.
Number saturated(DType dtype, Number x) {
  if (is_floating(dtype)) return x;
  const int bits = static_cast<int>(8 * byte_width(dtype));
  const bool has_sign = dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
  const Number low = has_sign ? -std::ldexp(Number{1}, bits - 1) : 0, high = std::ldexp(Number{1}, has_sign ? bits - 1 : bits) - 1;
  return std::clamp(std::nearbyint(x), low, high);
}

// Calls f(position of the output, of the input, weight, magnitude of the weight's error) for all elements that each position reads; input
// position -1 means the outside of a cropped input.
template <class F>
Shape each_tap(const Call& call, F&& f) {
  const std::vector<Axis> axes = axes_of(call);
  Shape shape;
  std::vector<std::vector<std::vector<Tap>>> taps;  // by axis and position
  for (const Axis& axis : axes) {
    shape.push_back(axis.output);
    taps.emplace_back();
    for (int64_t i = 0; i < axis.output; ++i) taps.back().push_back(taps_of(call, axis, i));
  }
  for (int64_t to = 0; to < shape.element_count(); ++to) {
    const Ints position = position_of(to, shape);
    Shape counts;
    for (size_t d = 0; d < axes.size(); ++d) counts.push_back(static_cast<int64_t>(taps[d][static_cast<size_t>(position[d])].size()));
    if (counts.element_count() == 0) f(to, -1, Number(1), Number(0));
    for (int64_t i = 0; i < counts.element_count(); ++i) {
      const Ints at = position_of(i, counts);
      Number weight = 1, of_weights = 0;
      int64_t from = 0;
      for (size_t d = 0; d < axes.size(); ++d) {
        const Tap& tap = taps[d][static_cast<size_t>(position[d])][static_cast<size_t>(at[d])];
        of_weights = of_weights * std::fabs(tap.weight) + std::fabs(weight) * tap.of_weight;
        weight *= tap.weight;
        from = from * axes[d].input + tap.index;
      }
      f(to, from, weight, std::fabs(weight) + of_weights);
    }
  }
  return shape;
}

std::vector<Numbers> resized(const Call& call) {
  const Numbers& x = call[0];
  std::vector<Number> sums, scales;
  const Shape shape = each_tap(call, [&](int64_t to, int64_t from, Number weight, Number of_weight) {
    sums.resize(static_cast<size_t>(to) + 1, 0);
    scales.resize(sums.size(), 0);
    const Number value = from < 0 ? static_cast<Number>(call.f("extrapolation_value", 0)) : x.values[static_cast<size_t>(from)];
    sums.back() += weight * value;
    if (from >= 0) scales.back() += of_weight * std::fabs(value);
  });
  Numbers y = zeros(x.dtype, shape);
  y.scale = scales;
  for (size_t i = 0; i < sums.size(); ++i) y.values[i] = saturated(x.dtype, sums[i]);
  return {y};
}

// Returns the Resize call whose gradient this is; its input has the given extents.
std::vector<Numbers> resize_gradient(const Call& call) {
  Shape shape;
  for (const int64_t extent : call.list(1)) shape.push_back(extent);
  Call forward = call;
  forward.inputs.erase(forward.inputs.begin() + 1);
  forward.inputs[0] = zeros(call[0].dtype, shape);
  Numbers dx = zeros(call[0].dtype, shape);
  dx.scale = dx.values;
  std::vector<size_t> counts(dx.values.size(), 0);
  each_tap(forward, [&](int64_t to, int64_t from, Number weight, Number of_weight) {
    if (from < 0 || weight == 0) return;
    const Number value = call[0].values[static_cast<size_t>(to)];
    dx.values[static_cast<size_t>(from)] += weight * value;
    dx.scale[static_cast<size_t>(from)] += of_weight * std::fabs(value);
    ++counts[static_cast<size_t>(from)];
  });
  for (size_t i = 0; i < counts.size(); ++i) dx.scale[i] = once_rounded(dx.dtype, dx.scale[i] * walk(counts[i]));
  return {dx};
}

// Every mode with every transformation of coordinates, growing and shrinking.
std::vector<Case> all_modes() {
  std::vector<Case> cases;
  for (const std::string mode : {"nearest", "linear", "cubic"})
    for (const std::string coordinates :
         {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"}) {
      const std::string attributes = "mode=\"" + mode + "\", coordinate_transformation_mode=\"" + coordinates + "\"";
      const bool crops = coordinates == "tf_crop_and_resize";
      const auto add = [&](const std::string& x, const std::string& roi, const std::string& to, const std::string& more = "") {
        cases.push_back({Kind::odd, x + ", " + (crops ? roi : "-") + ", " + to + "; " + attributes + more});
      };
      // Odd extents, so that no coordinate is halfway between two integers unless all numbers are exact.
      add("T[2,3,5,7]", "f32[8] = 0 0 0 0 1 1 1 1", "-, i64[4] = 2 3 9 5");
      add("T[1,1,4,8]", "f32[8] = 0 0 0.25 0 1 1 1.25 1", "f32[4] = 1 1 2 0.5", crops ? ", extrapolation_value=9.0" : "");
      add("T[1,3,5]", "f32[6] = 0 0 -0.25 1 1 0.75", "f32[3] = 1 1 2.7", crops ? ", extrapolation_value=7.0" : "");
      add("f64[1,3,11]", "f32[6] = 0 0 0.125 1 1 0.5", "f32[3] = 1 1 0.55");
      add("f32[1,2,4,5]", "f32[8] = 0 0 0.25 0.5 1 1 0.75 1", "-, i64[4] = 1 2 1 1");
      add("f32[2,5,7,3]", "f32[4] = 0 0.25 1 0.75", "f32[2] = 1.5 0.75", ", axes=[1,2]");
    }
  for (const std::string nearest_mode : {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"})
    for (const std::string coordinates : {"half_pixel", "asymmetric", "align_corners"})
      for (const std::string to : {"f32[3] = 1 1.5 2", "f32[3] = 1 2.5 0.5", "-, i64[3] = 2 7 3"})
        cases.push_back({Kind::odd, "f32[2,4,8], -, " + to + "; nearest_mode=\"" + nearest_mode + "\", coordinate_transformation_mode=\"" +
                                        coordinates + "\""});
  for (const std::string mode : {"linear", "cubic"})
    for (const std::string more : {"antialias=1", "exclude_outside=1", "antialias=1, exclude_outside=1"}) {
      for (const std::string dtype : {"f16", "bf16", "f32", "f64", "u8", "i64"})
        cases.push_back({Kind::odd, dtype + "[2,9,15], -, -, i64[3] = 2 5 7; mode=\"" + mode + "\", " + more});
      cases.push_back({Kind::odd, "f32[1,2,17,16], -, f32[4] = 1 1 0.3 0.25; mode=\"" + mode + "\", " + more});
      cases.push_back({Kind::odd, "f32[1,2,7,16], -, f32[4] = 1 1 2.5 0.7; mode=\"" + mode + "\", " + more});
      cases.push_back({Kind::odd, "f64[3,13], -, -, i64[1] = 4; axes=[1], mode=\"" + mode + "\", cubic_coeff_a=-0.5, " + more});
    }
  return cases;
}

Row resize() {
  std::vector<Case> cases = {
      {Kind::odd, "T[1,1,3], U[6] = 0 0 0.25 1 1 0.75, f32[3] = 1 1 2; coordinate_transformation_mode=\"tf_crop_and_resize\""},
      // Reversed, to the same extents.
      {Kind::odd, "T[2,1,7], f32[6] = 0 0 1 1 1 0, f32[3] = 1 1 1; coordinate_transformation_mode=\"tf_crop_and_resize\""},
      {Kind::odd, "f32[2,3], f16[0], f32[2] = 2 3"},
      {Kind::odd, "T[7], -, f32[1] = 3"},
      {Kind::odd, "T[2,3,5], -, f32[3] = 1 1 1; mode=\"linear\""},
      {Kind::odd, "f32[1,1,5] = nan 1 inf -inf -0, -, f32[3] = 1 1 2"},
      {Kind::odd, "f64[2,3,5], -, f32[3] = 2 1.5 3; mode=\"cubic\", cubic_coeff_a=-0.5"},
      // Weights below 0: integers end at their limits.
      {Kind::odd, "T[1,6] = 0 1 0 1 1 0, -, f32[2] = 1 4; mode=\"cubic\""},
      {Kind::odd, "u8[1,6] = 0 255 0 255 255 0, -, f32[2] = 1 4; mode=\"cubic\""},
      {Kind::odd, "i8[1,6] = -128 127 -128 127 127 -128, -, f32[2] = 1 4; mode=\"cubic\""},
      {Kind::odd, "i16[1,6] = -32768 32767 -32768 32767 32767 0, -, f32[2] = 1 4; mode=\"cubic\""},
      {Kind::odd, "u32[1,6] = 0 4294967295 0 4294967295 4294967295 0, -, f32[2] = 1 4; mode=\"cubic\""},
      // Halves are rounded to the even integer.
      {Kind::odd, "i64[1,5] = -1 2 3 -4 6, -, -, i64[2] = 1 9; mode=\"linear\", coordinate_transformation_mode=\"align_corners\""},
      {Kind::odd, "f32[2,4,6], -, -, i64[2] = 7 9; axes=[1,2], keep_aspect_ratio_policy=\"not_larger\""},
      {Kind::odd, "f32[2,4,6], -, -, i64[2] = 7 9; axes=[-1,-2], keep_aspect_ratio_policy=\"not_larger\", mode=\"linear\""},
      {Kind::odd, "f32[2,4,6], -, -, i64[2] = 7 9; axes=[1,2], keep_aspect_ratio_policy=\"not_smaller\", mode=\"linear\""},
      {Kind::odd, "f32[3,8,12], -, -, i64[3] = 3 3 4; keep_aspect_ratio_policy=\"not_smaller\""},
      // Extents halfway between two integers are rounded up.
      {Kind::odd, "f32[5,4], -, -, i64[2] = 4 2; keep_aspect_ratio_policy=\"not_larger\", mode=\"linear\""},
      {Kind::odd, "f32[3,4], -, -, i64[2] = 1 6; keep_aspect_ratio_policy=\"not_smaller\", mode=\"linear\""},
      {Kind::odd, "f32[7,3], -, -, i64[2] = 4 4; keep_aspect_ratio_policy=\"not_larger\", mode=\"cubic\", antialias=1"},
      {Kind::empty, "T[0,3,5], -, f32[3] = 1 2 2"},
      {Kind::empty, "T[2,0,5], -, -, i64[1] = 7; axes=[2], mode=\"linear\""},
      {Kind::empty, "T[2,3,5], -, f32[3] = 1 1 0.125"},
      {Kind::empty, "T[2,3,5], -, -, i64[3] = 2 0 5; mode=\"cubic\""},
      {Kind::strided, "T[5,3,4], -, -, i64[1] = 7; axes=[0], mode=\"linear\""},
      {Kind::strided, "T[3,5,7], -, f32[2] = 2 0.5; axes=[-1,0]"},
      {Kind::strided, "f32[9,5,7,2], -, -, i64[2] = 3 5; axes=[2,0], mode=\"linear\", antialias=1"},
      {Kind::strided, "f32[4,5,33], -, -, i64[1] = 11; axes=[1], mode=\"cubic\""},
      {Kind::rank, "T[1,3,1,2,3,1,5,2], -, -, i64[3] = 5 7 3; axes=[1,4,6], mode=\"linear\""},
      {Kind::rank, "f32[2,1,2,3,2,1,2,2], -, f32[8] = 1 2 1.5 1 0.5 3 1 2; mode=\"cubic\""},
      {Kind::large, "f32[2,3,61,67], -, f32[4] = 1 1 2 2; mode=\"linear\""},
      {Kind::large, "f32[2,3,61,67], -, -, i64[4] = 2 3 101 131"},
      {Kind::large, "f32[1,3,161,167], -, -, i64[4] = 1 3 71 83; mode=\"linear\", antialias=1"},
      {Kind::large, "f32[1,2,61,67], -, -, i64[2] = 121 131; axes=[2,3], mode=\"cubic\""},
      {Kind::large, "f32[61,67,5], -, -, i64[2] = 121 131; axes=[0,1], mode=\"linear\""},
      {Kind::large, "u8[1,211,3,67], -, -, i64[2] = 3 331; axes=[3,1], mode=\"linear\""},
      {Kind::large, "f16[2,3,61,67], -, -, i64[2] = 103 121; axes=[2,3], mode=\"linear\""},
      {Kind::large, "bool[2,3,61,67], -, f32[4] = 1 1 2 2"}};
  const std::vector<Case> modes = all_modes();
  cases.insert(cases.end(), modes.begin(), modes.end());
  return {.type = "Resize",
          .reference = resized,
          .cases = std::move(cases),
          .ulps = 1,
          .without = {{Kind::broadcast, "the other inputs say how X is resized"}},
          .ulps_of = {{DType::f16, rounded_once},
                      {DType::bf16, rounded_once},
                      {DType::f32, 4}}};  // weights and products are rounded, and the sums along up to six axes
}

Row resize_gradient_row() {
  std::vector<Case> cases = {
      {Kind::odd, "T[21], i64[1] = 7, -, f32[1] = 3"},
      {Kind::odd, "T[1,1], i64[2] = 1, -, f32[2] = 1"},
      {Kind::odd,
       "T[1,1,6], i64[3] = 1 1 3, U[6] = 0 0 0.25 1 1 0.75, f32[3] = 1 1 2; coordinate_transformation_mode=\"tf_crop_and_resize\""},
      {Kind::odd, "T[2,3,5], i64[3] = 2 3 5, -, f32[3] = 1 1 1; mode=\"linear\""},
      {Kind::odd, "T[2,1,7], i64[3] = 2 1 7, f32[6] = 0 0 1 1 1 0, f32[3] = 1 1 1; coordinate_transformation_mode=\"tf_crop_and_resize\""},
      {Kind::odd, "f32[1,1,7] = nan 1 inf -inf -0 2 3, i64[3] = 1 1 4, -, -, i64[3] = 1 1 7"},
      {Kind::odd, "f32[1,6,9], i64[3] = 1 4 6, -, -, i64[2] = 7 9; axes=[1,2], keep_aspect_ratio_policy=\"not_larger\", mode=\"linear\""},
      {Kind::odd, "f32[2,7,11], i64[3] = 2 4 6, -, -, i64[2] = 7 9; axes=[1,2], keep_aspect_ratio_policy=\"not_smaller\""},
      {Kind::odd, "f32[2,6,4], i64[3] = 2 4 8, -, f32[3] = 1 1.5 0.5; nearest_mode=\"ceil\""},
      {Kind::odd,
       "f32[2,6,4], i64[3] = 2 4 8, -, f32[3] = 1 1.5 0.5; nearest_mode=\"floor\", coordinate_transformation_mode=\"asymmetric\""},
      {Kind::odd, "f64[2,6,9], i64[3] = 2 4 6, -, f32[3] = 1 1.5 1.5; mode=\"cubic\", cubic_coeff_a=-0.5"},
      {Kind::empty, "T[0,6,10], i64[3] = 0 3 5, -, f32[3] = 1 2 2"},
      {Kind::empty, "T[2,3,0], i64[3] = 2 3 5, -, f32[3] = 1 1 0.125"},
      {Kind::empty, "T[2,0,7], i64[3] = 2 0 5, -, -, i64[1] = 7; axes=[2], mode=\"linear\""},
      {Kind::strided, "T[7,3,4], i64[3] = 5 3 4, -, -, i64[1] = 7; axes=[0], mode=\"linear\""},
      {Kind::strided, "T[3,5,14], i64[3] = 3 5 7, -, f32[1] = 2; axes=[-1]"},
      {Kind::strided, "f32[5,5,3,2], i64[4] = 9 5 7 2, -, -, i64[2] = 3 5; axes=[2,0], mode=\"linear\", antialias=1"},
      {Kind::strided, "f32[4,11,33], i64[3] = 4 5 33, -, -, i64[1] = 11; axes=[1], mode=\"cubic\""},
      {Kind::rank, "T[1,5,1,2,7,1,3,2], i64[8] = 1 3 1 2 3 1 5 2, -, -, i64[3] = 5 7 3; axes=[1,4,6], mode=\"linear\""},
      {Kind::large, "f32[2,3,122,134], i64[4] = 2 3 61 67, -, f32[4] = 1 1 2 2; mode=\"linear\""},
      {Kind::large, "T[2,3,101,131], i64[4] = 2 3 61 67, -, -, i64[4] = 2 3 101 131"},
      {Kind::large, "f32[1,3,71,83], i64[4] = 1 3 161 167, -, -, i64[4] = 1 3 71 83; mode=\"linear\", antialias=1"},
      {Kind::large, "f64[121,131,5], i64[3] = 61 67 5, -, -, i64[2] = 121 131; axes=[0,1], mode=\"cubic\""}};
  for (const std::string mode : {"nearest", "linear", "cubic"})
    for (const std::string coordinates :
         {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"}) {
      const std::string attributes = "; mode=\"" + mode + "\", coordinate_transformation_mode=\"" + coordinates + "\"";
      const bool crops = coordinates == "tf_crop_and_resize";
      const std::string roi = crops ? "f32[8] = 0 0 0.25 0 1 1 1.25 1" : "-";
      cases.push_back({Kind::odd, "T[2,3,9,5], i64[4] = 2 3 5 7, " + roi + ", -, i64[4] = 2 3 9 5" + attributes});
      cases.push_back(
          {Kind::odd, "f64[1,1,8,4], i64[4] = 1 1 4 8, " + roi + ", f32[4] = 1 1 2 0.5" + attributes + ", extrapolation_value=9.0"});
    }
  for (const std::string mode : {"linear", "cubic"})
    for (const std::string more : {"antialias=1", "exclude_outside=1", "antialias=1, exclude_outside=1"})
      cases.push_back({Kind::odd, "T[2,5,7], i64[3] = 2 9 15, -, -, i64[3] = 2 5 7; mode=\"" + mode + "\", " + more});
  return {.type = "ResizeGradient",
          .reference = resize_gradient,
          .cases = std::move(cases),
          .ulps = 1,
          .domain = "heddle",
          .without = {{Kind::broadcast, "the other inputs say how X was resized"}},
          .ulps_of = {{DType::f32, 4}}};  // weights and products are rounded, as Resize's are
}

}  // namespace
}  // namespace reference_resize

std::vector<Row> resize_rows() {
  using namespace reference_resize;
  return {resize(), resize_gradient_row()};
}

}  // namespace heddle::conformance
