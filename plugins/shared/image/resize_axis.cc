// Coordinates and weights of Resize. An axis has few positions: weights are computed in double. Nearest positions are computed in float, as
// scales are given and as onnxruntime does it: 11 / 1.1f is 10 there, and a little less in double, from which floor would make 9.
#include "shared/image/resize_axis.h"

#include <algorithm>
#include <cmath>

namespace heddle::operators {
namespace {

template <class E, size_t n>
Status parse(const Attributes& attributes, const char* attribute, const char* const (&names)[n], E* value) {
  const std::string text = attributes.s(attribute);
  std::string all;
  for (size_t i = 0; i < n; ++i) {
    if (text == names[i]) return *value = static_cast<E>(i), Status();
    all += (i ? ", " : "") + std::string(names[i]);
  }
  return invalid(std::string(attribute) + " is \"" + text + "\", expected one of " + all);
}

// The input coordinate of output position x.
template <class F>
F source_coordinate(Coordinates mode, const ResizeAxis& axis, int64_t x) {
  constexpr F half = F(0.5);
  const auto position = static_cast<F>(x), input = static_cast<F>(axis.input), scale = static_cast<F>(axis.scale);
  const F length = scale * input;  // of the output, before it was rounded down
  switch (mode) {
    case Coordinates::half_pixel:
      return (position + half) / scale - half;
    case Coordinates::half_pixel_symmetric: {
      const F adjustment = static_cast<F>(axis.output) / length;
      return input / 2 * (1 - adjustment) + (position + half) / scale - half;
    }
    case Coordinates::pytorch_half_pixel:
      return axis.output > 1 ? (position + half) / scale - half : 0;
    case Coordinates::align_corners:
      return length == 1 ? 0 : position * (input - 1) / (length - 1);
    case Coordinates::asymmetric:
      return position / scale;
    default: {
      const auto start = static_cast<F>(axis.start), crop = static_cast<F>(axis.end) - start;
      const F inside = length == 1 ? crop * (input - 1) / 2 : position * crop * (input - 1) / (length - 1);
      return inside + start * (input - 1);
    }
  }
}
double coordinate_of(const ResizeOptions& options, const ResizeAxis& axis, int64_t x) {
  constexpr int64_t exact_in_float = int64_t{1} << 23;
  const bool in_float = options.interpolation == Interpolation::nearest && std::max(axis.input, axis.output) < exact_in_float;
  if (in_float) return static_cast<double>(source_coordinate<float>(options.coordinates, axis, x));
  return source_coordinate<double>(options.coordinates, axis, x);
}

double cubic_weight(double distance, double a) {
  const double d = std::fabs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

int64_t nearest_position(NearestRounding rounding, bool shrinks, double x) {
  if (rounding == NearestRounding::floor_or_ceil) rounding = shrinks ? NearestRounding::ceil : NearestRounding::floor;
  const double below = std::floor(x), rest = x - below;
  switch (rounding) {
    case NearestRounding::prefer_floor:
      return static_cast<int64_t>(rest <= 0.5 ? below : below + 1);
    case NearestRounding::prefer_ceil:
      return static_cast<int64_t>(rest < 0.5 ? below : below + 1);
    case NearestRounding::floor:
      return static_cast<int64_t>(below);
    default:
      return static_cast<int64_t>(rest == 0 ? below : below + 1);
  }
}

// With antialiasing the kernel of a smaller output is wider by the inverse scale.
double kernel_scale(const ResizeOptions& options, const ResizeAxis& axis) {
  return options.antialias ? std::min(axis.scale, 1.0) : 1.0;
}
// The offset of the first tap: positions start at floor(x) + first_tap.
int64_t first_tap(const ResizeOptions& options, const ResizeAxis& axis) {
  const double radius = options.interpolation == Interpolation::linear ? 1 : 2;
  return static_cast<int64_t>(std::floor(-radius / kernel_scale(options, axis))) + 1;
}

void fill_weighted(const ResizeOptions& options, const ResizeAxis& axis, double x, int64_t taps, int32_t* positions, double* weights) {
  const double below = std::floor(x), scale = kernel_scale(options, axis);
  const int64_t first = static_cast<int64_t>(below) + first_tap(options, axis);
  double sum = 0;
  for (int64_t t = 0; t < taps; ++t) {
    const double distance = (static_cast<double>(first + t) - x) * scale;
    double weight = options.interpolation == Interpolation::linear ? std::max(0.0, 1 - std::fabs(distance))
                                                                   : cubic_weight(distance, options.cubic_coefficient);
    if (options.exclude_outside && (first + t < 0 || first + t >= axis.input)) weight = 0;
    positions[t] = static_cast<int32_t>(std::clamp<int64_t>(first + t, 0, axis.input - 1));
    weights[t] = weight;
    sum += weight;
  }
  if (options.antialias || options.exclude_outside)
    for (int64_t t = 0; t < taps; ++t) weights[t] /= sum;
}

}  // namespace

Status parse_resize_options(const Attributes& attributes, ResizeOptions* options) {
  static constexpr const char* interpolations[] = {"nearest", "linear", "cubic"};
  static constexpr const char* coordinates[] = {"half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
                                                "align_corners", "asymmetric",           "tf_crop_and_resize"};
  static constexpr const char* roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "floor_or_ceil"};
  HEDDLE_PLUGIN_CHECK(parse(attributes, "mode", interpolations, &options->interpolation));
  HEDDLE_PLUGIN_CHECK(parse(attributes, "coordinate_transformation_mode", coordinates, &options->coordinates));
  HEDDLE_PLUGIN_CHECK(parse(attributes, "nearest_mode", roundings, &options->rounding));
  options->antialias = attributes.i("antialias") != 0 && options->interpolation != Interpolation::nearest;
  options->exclude_outside = attributes.i("exclude_outside") != 0;
  options->cubic_coefficient = attributes.f("cubic_coeff_a");
  options->extrapolation = attributes.f("extrapolation_value");
  return {};
}

int64_t tap_count(const ResizeOptions& options, const ResizeAxis& axis) {
  return options.interpolation == Interpolation::nearest ? 1 : 2 - 2 * first_tap(options, axis);
}

void fill_taps(const ResizeOptions& options, const ResizeAxis& axis, int64_t taps, int32_t* positions, double* weights) {
  for (int64_t i = 0; i < axis.output; ++i, positions += taps, weights += taps) {
    const double x = coordinate_of(options, axis, i);
    // A NaN in the roi counts as a position outside.
    if (options.coordinates == Coordinates::tf_crop_and_resize && !(x >= 0 && x <= static_cast<double>(axis.input - 1))) {
      std::fill(positions, positions + taps, -1);
      std::fill(weights, weights + taps, 0.0);
    } else if (options.interpolation == Interpolation::nearest) {
      positions[0] = static_cast<int32_t>(std::clamp<int64_t>(nearest_position(options.rounding, axis.scale < 1, x), 0, axis.input - 1));
      weights[0] = 1;
    } else {
      fill_weighted(options, axis, x, taps, positions, weights);
    }
  }
}

}  // namespace heddle::operators
