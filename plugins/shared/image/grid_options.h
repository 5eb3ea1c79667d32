// The attributes of GridSample. Pure.
#pragma once

#include <cstdint>

#include "shared/operator_api.h"

namespace heddle::operators {

constexpr int max_grid_axes = 3;  // spatial ones

enum class SampleInterpolation : uint8_t { nearest, linear, cubic };
enum class SamplePadding : uint8_t { zeros, border, reflection };

struct GridOptions {
  SampleInterpolation interpolation = SampleInterpolation::linear;
  SamplePadding padding = SamplePadding::zeros;
  bool align_corners = false;
};

// Errors name the attribute.
Status parse_grid_options(const Attributes& attributes, GridOptions* options);

}  // namespace heddle::operators
