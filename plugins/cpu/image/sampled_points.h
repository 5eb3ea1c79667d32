// Weighted sums of the elements around points of a map, of one instruction set level: GridSample and RoiAlign. Stateless; any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "heddle/abi.h"
#include "isa.h"

namespace heddle::cpu {

// The elements that each of several points reads, the same in the maps of all channels.
struct SampledPoints {
  static constexpr int64_t multiple = 8;  // of the number of points
  const int64_t* offsets;                 // [taps][points] elements into a map; -1: reads a zero
  const double* weights;                  // [taps][points]
  int64_t taps, points;
};

// Functions by the dtype of the map; null: it is no float. Four taps, where their number is a multiple of it, are the corners of a sample.
struct SampledPointsTable {
  using Function = void (*)(const SampledPoints& points, const void* map, double* y);
  Function sum[HEDDLE_DTYPE_COUNT];      // y[i]: all weighted elements of point i
  Function largest[HEDDLE_DTYPE_COUNT];  // of samples
};
HEDDLE_DECLARE_ISA_TABLE(SampledPointsTable, sampled_points)

}  // namespace heddle::cpu
