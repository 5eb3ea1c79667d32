// The places where GridSample and RoiAlign read, for the references of both and of their gradients.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "conformance/reference.h"

namespace heddle::conformance {

// Returns, as a scale, how much a rounded position may change a sum: units of a position as large as `position`, at a slope of `slope`.
// 16-bit types compute positions in f32, whose units are negligible beside their own.
inline Number of_position(DType dtype, Number position, Number slope) {
  return dtype == DType::f32 || dtype == DType::f64 ? (std::fabs(position) + 1) * slope : 0;
}

struct SampleTap {
  int64_t index;  // -1: a zero
  Number weight, of_position;
  Number slope;  // derivative of the weight by the coordinate
};

// Mirrors x until it is between low and high.
inline Number mirrored(Number x, Number low, Number high) {
  if (high <= low) return low;
  while (x < low || x > high) x = x < low ? 2 * low - x : 2 * high - x;
  return x;
}

inline int64_t brought_inside(int64_t index, int64_t extent, const std::string& padding, bool align_corners) {
  if (index >= 0 && index < extent) return index;
  if (padding == "zeros") return -1;
  if (padding == "border") return std::clamp<int64_t>(index, 0, extent - 1);
  const Number half = align_corners ? 0 : 0.5L;
  return static_cast<int64_t>(std::nearbyint(mirrored(static_cast<Number>(index), -half, static_cast<Number>(extent - 1) + half)));
}

// Keys' kernel with a = -0.75.
inline Number cubic(Number x) {
  constexpr Number a = -0.75L;
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

inline Number cubic_slope(Number x) {
  constexpr Number a = -0.75L;
  return x <= 1 ? (3 * (a + 2) * x - 2 * (a + 3)) * x : x < 2 ? (3 * a * x - 10 * a) * x + 8 * a : 0;
}

// Returns the taps along one axis for a coordinate from -1 to 1. The taps are moved inside, not the coordinate, as in PyTorch and ONNX
// Runtime: some taps of a cubic interpolation beside the border may be inside.
inline std::vector<SampleTap> taps_at(const Call& call, Number coordinate, int64_t extent) {
  const std::string mode = call.s("mode", "linear"), padding = call.s("padding_mode", "zeros");
  const bool align_corners = call.i("align_corners", 0) != 0;
  const auto length = static_cast<Number>(extent);
  const Number x = align_corners ? (coordinate + 1) / 2 * (length - 1) : ((coordinate + 1) * length - 1) / 2;
  std::vector<SampleTap> taps;
  const auto add = [&](Number index, Number weight, Number error, Number slope) {
    taps.push_back({brought_inside(static_cast<int64_t>(index), extent, padding, align_corners), weight,
                    of_position(call[0].dtype, x, error), slope * (align_corners ? (length - 1) / 2 : length / 2)});
  };
  if (mode == "nearest") {
    add(std::nearbyint(x), 1, 0, 0);  // to even
  } else {
    const int reach = mode == "cubic" ? 2 : 1;
    for (int k = 1 - reach; k <= reach; ++k) {
      const Number index = std::floor(x) + k, distance = std::fabs(x - index), sign = k > 0 ? -1 : 1;
      if (mode == "cubic")
        add(index, cubic(distance), 1, sign * cubic_slope(distance));
      else
        add(index, 1 - distance, 1, -sign);
    }
  }
  return taps;
}

// The pixels around a point with their weights; none where it is more than an element outside.
struct Corner {
  int64_t pixel;
  Number weight;
};
inline std::vector<Corner> corners_of(Number y, Number x, int64_t height, int64_t width) {
  if (y < -1 || y > static_cast<Number>(height) || x < -1 || x > static_cast<Number>(width)) return {};
  const auto along = [](Number at, int64_t extent) {
    at = std::clamp<Number>(at, 0, static_cast<Number>(extent - 1));
    const auto low = static_cast<int64_t>(at);
    return std::vector<Corner>{{low, 1 - (at - static_cast<Number>(low))}, {std::min(low + 1, extent - 1), at - static_cast<Number>(low)}};
  };
  std::vector<Corner> corners;
  for (const Corner& row : along(y, height))
    for (const Corner& column : along(x, width)) corners.push_back({row.pixel * width + column.pixel, row.weight * column.weight});
  return corners;
}

// The points of a bin along one dimension.
struct Points {
  std::vector<Number> at;
};
// Returns the points of all bins along one dimension.
inline std::vector<Points> points_of(const Call& call, Number start, Number end, int64_t bins) {
  const bool half_pixel = call.s("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const auto scale = static_cast<Number>(call.f("spatial_scale", 1));
  const int64_t ratio = call.i("sampling_ratio", 0);
  start = start * scale - (half_pixel ? 0.5L : 0);
  end = end * scale - (half_pixel ? 0.5L : 0);
  const Number extent = half_pixel ? end - start : std::max<Number>(end - start, 1), bin = extent / static_cast<Number>(bins);
  const auto count = ratio > 0 ? ratio : static_cast<int64_t>(std::ceil(bin));
  std::vector<Points> all(static_cast<size_t>(bins));
  for (int64_t b = 0; b < bins; ++b)
    for (int64_t i = 0; i < count; ++i)
      all[static_cast<size_t>(b)].at.push_back(start + static_cast<Number>(b) * bin +
                                               (static_cast<Number>(i) + 0.5L) * bin / static_cast<Number>(count));
  return all;
}

}  // namespace heddle::conformance
