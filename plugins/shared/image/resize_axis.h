// The positions that Resize reads: for every position of a resized axis the input positions and their weights, by ONNX 19's coordinate
// modes.
//
// Source: the ONNX operator specification, Resize-19 (and its reference implementation for what the text leaves open). Pure.
#pragma once

#include <cstdint>

#include "shared/operator_api.h"

namespace heddle::operators {

enum class Interpolation : uint8_t { nearest, linear, cubic };
enum class Coordinates : uint8_t {
  half_pixel,
  half_pixel_symmetric,
  pytorch_half_pixel,
  align_corners,
  asymmetric,
  tf_crop_and_resize,
};
// floor_or_ceil is ours, for Resize of opset 10: floor along axes that grow, ceil along those that shrink.
enum class NearestRounding : uint8_t { prefer_floor, prefer_ceil, floor, ceil, floor_or_ceil };

struct ResizeOptions {
  Interpolation interpolation = Interpolation::nearest;
  Coordinates coordinates = Coordinates::half_pixel;
  NearestRounding rounding = NearestRounding::prefer_floor;
  bool antialias = false, exclude_outside = false;
  double cubic_coefficient = -0.75, extrapolation = 0;
};
// Errors name the attribute.
Status parse_resize_options(const Attributes& attributes, ResizeOptions* options);

// One axis: `output` positions of an axis of `input`, at `scale` (output per input), cropped to [start, end] of it in
// tf_crop_and_resize, where entry `roi_entry` of the first half of the roi is the start.
struct ResizeAxis {
  int64_t input = 1, output = 1;
  double scale = 1, start = 0, end = 1;
  int roi_entry = -1;
};

// Weights per output position; the same for all positions of an axis.
int64_t tap_count(const ResizeOptions& options, const ResizeAxis& axis);
// Fills positions[output][taps] (in [0, input)) and weights[output][taps]. A position outside a cropped input has positions of -1.
void fill_taps(const ResizeOptions& options, const ResizeAxis& axis, int64_t taps, int32_t* positions, double* weights);

}  // namespace heddle::operators
