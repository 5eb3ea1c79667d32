// The inner loops of depthwise convolutions, one table per instruction set level (isa.h).
#pragma once

#include <stdint.h>

#include "isa.h"

namespace heddle::cpu {

// One dimension of a tile; extents in elements.
struct DepthwiseAxis {
  int64_t input = 1, output = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;
};
// One tile; memory channels-last and dense. One-dimensional ones have one row.
struct DepthwiseTile {
  const float* x = nullptr;        // [row.input, column.input, channels]
  const float* weights = nullptr;  // [row.kernel, column.kernel, channels]
  const float* bias = nullptr;     // [channels]
  float* y = nullptr;              // [row.output, column.output, channels]
  int64_t channels = 0;
  DepthwiseAxis row, column;
  float lower = 0, upper = 0;  // results are clamped
};
struct DepthwiseTable {
  void (*run)(const DepthwiseTile& tile);
};
HEDDLE_DECLARE_ISA_TABLE(DepthwiseTable, depthwise)

}  // namespace heddle::cpu
