// The taps of GridSample: coordinates from -1 to 1, brought onto the input, and the weights of the elements around them.
#include "image/grid_taps.h"

#include <algorithm>
#include <cmath>

namespace heddle::cpu {
namespace {

// Mirrors at the borders of the pixels, or at their centres. `slope`: receives the derivative of the result, 1 or -1.
double reflect(double x, double low, double high, double* slope = nullptr) {
  const double range = high - low;
  if (slope) *slope = range <= 0 ? 0 : 1;
  if (range <= 0) return low;
  double distance = x < low ? low - x : x - low;
  const double turns = std::floor(distance / range), rest = distance - turns * range;
  if (x >= low && x <= high) return x;
  const bool even = std::fmod(turns, 2.0) == 0;
  if (slope) *slope = even == (x < low) ? -1 : 1;
  return even ? low + rest : high - rest;
}

constexpr double a = -0.75;  // of the cubic kernel
double inner(double d) {
  return ((a + 2) * d - (a + 3)) * d * d + 1;
}
double outer(double d) {
  return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}
double inner_slope(double d) {
  return (3 * (a + 2) * d - 2 * (a + 3)) * d;
}
double outer_slope(double d) {
  return (3 * a * d - 10 * a) * d + 8 * a;
}

void fill_slopes(const GridOptions& options, double rest, double of_position, double* slopes) {
  if (options.interpolation == SampleInterpolation::nearest) {
    slopes[0] = 0;
  } else if (options.interpolation == SampleInterpolation::linear) {
    slopes[0] = -of_position;
    slopes[1] = of_position;
  } else {
    const double by_rest[] = {outer_slope(rest + 1), inner_slope(rest), -inner_slope(1 - rest), -outer_slope(2 - rest)};
    for (int t = 0; t < 4; ++t) slopes[t] = of_position * by_rest[t];
  }
}

}  // namespace

GridTaps find_grid_taps(const GridOptions& options, double coordinate, int64_t extent, double* slopes) {
  const auto length = static_cast<double>(extent);
  const double low = options.align_corners ? 0 : -0.5, high = options.align_corners ? length - 1 : length - 0.5;
  double x = options.align_corners ? (coordinate + 1) / 2 * (length - 1) : ((coordinate + 1) * length - 1) / 2;
  double of_position = options.align_corners ? (length - 1) / 2 : length / 2;
  if (!(std::fabs(x) < 1e15)) x = -1e15, of_position = 0;  // NaN and coordinates far from every position
  if (options.interpolation == SampleInterpolation::nearest) x = std::nearbyint(x);
  // A cubic interpolation does not move a coordinate outside the border: each of its taps is brought inside (as in PyTorch), not the
  // coordinate.
  if (options.interpolation != SampleInterpolation::cubic) {
    if (options.padding == SamplePadding::border) {
      if (x <= 0 || x >= length - 1) of_position = 0;
      x = std::clamp(x, 0.0, length - 1);
    }
    double turned = 1;
    if (options.padding == SamplePadding::reflection && (x < low || x > high)) x = reflect(x, low, high, &turned);
    of_position *= turned;
  }
  const double below = std::floor(x), rest = x - below;
  GridTaps taps;
  int64_t first = static_cast<int64_t>(below);
  if (options.interpolation == SampleInterpolation::nearest) {
    taps = {1, {}, {1}};
    first = static_cast<int64_t>(std::nearbyint(x));
  } else if (options.interpolation == SampleInterpolation::linear) {
    taps = {2, {}, {1 - rest, rest}};
  } else {
    taps = {4, {}, {outer(rest + 1), inner(rest), inner(1 - rest), outer(2 - rest)}};
    --first;
  }
  if (slopes) fill_slopes(options, rest, of_position, slopes);
  for (int t = 0; t < taps.count; ++t) {
    int64_t p = first + t;
    if (p < 0 || p >= extent) {
      if (options.padding == SamplePadding::zeros) p = -1;
      if (options.padding == SamplePadding::border) p = std::clamp<int64_t>(p, 0, extent - 1);
      if (options.padding == SamplePadding::reflection)
        p = std::clamp<int64_t>(static_cast<int64_t>(reflect(static_cast<double>(p), low, high)), 0, extent - 1);
    }
    taps.positions[t] = p;
  }
  return taps;
}

}  // namespace heddle::cpu
