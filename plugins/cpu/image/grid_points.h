// The elements that one output position of GridSample reads in every channel.
#pragma once

#include <cstdint>

#include "image/grid_taps.h"
#include "shared/dims.h"
#include "shared/scalar.h"

namespace heddle::cpu {

// Offsets into a channel and weights.
struct GridPoints {
  int count = 1;
  int64_t offsets[64];
  double weights[64];

  // Finds the points of position `position` of a grid, of all batch entries, on an input of dims `x`.
  GridPoints(const GridOptions& options, const heddle_tensor& grid, int64_t position, Dims x) {
    offsets[0] = 0;
    weights[0] = 1;
    const int axes = x.rank - 2;
    for (int axis = 0; axis < axes; ++axis) {
      // The grid lists the innermost axis first.
      add(find_grid_taps(options, number_at(grid, position * axes + axes - 1 - axis), x[2 + axis]), x[2 + axis]);
    }
  }

 private:
  void add(const GridTaps& taps, int64_t extent) {
    int64_t next_offsets[64];
    double next_weights[64];
    int next = 0;
    for (int i = 0; i < count; ++i)
      for (int t = 0; t < taps.count; ++t) {
        if (taps.positions[t] < 0 || taps.weights[t] == 0) continue;
        next_offsets[next] = offsets[i] * extent + taps.positions[t];
        next_weights[next++] = weights[i] * taps.weights[t];
      }
    count = next;
    for (int i = 0; i < count; ++i) offsets[i] = next_offsets[i], weights[i] = next_weights[i];
  }
};

}  // namespace heddle::cpu
