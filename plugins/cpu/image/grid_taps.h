// The positions that GridSample reads along one axis, with their weights and the derivatives of these by the coordinate.
#pragma once

#include <cstdint>

#include "shared/image/grid_options.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

// The input positions along one axis and their weights; position -1 reads zero.
struct GridTaps {
  int count = 0;
  int64_t positions[4];
  double weights[4];
};
// `slopes`: null, or four for the derivatives of the weights by the coordinate. At the border, where a coordinate begins to be clamped,
// they are 0, as in PyTorch.
GridTaps find_grid_taps(const GridOptions& options, double coordinate, int64_t extent, double* slopes = nullptr);

}  // namespace heddle::cpu
