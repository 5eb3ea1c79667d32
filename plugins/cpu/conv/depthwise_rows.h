// The inner loops of depthwise 3x3 convolutions, one table per instruction set level (isa.h).
#pragma once

#include <stdint.h>

#include "isa.h"

namespace heddle::cpu {

// One tile; extents in elements, memory channels-last and dense.
struct DepthwiseTile {
  const float* x;        // [rows, columns, channels]
  const float* weights;  // [9, channels]
  const float* bias;     // [channels]
  float* y;              // [output_rows, output_columns, channels]
  int64_t rows, columns, channels;
  int64_t output_rows, output_columns;
  int64_t pad_top, pad_left;
  int64_t stride;      // 1 or 2, both dimensions
  float lower, upper;  // results are clamped
};
struct DepthwiseTable {
  void (*run)(const DepthwiseTile& tile);
};
HEDDLE_DECLARE_ISA_TABLE(DepthwiseTable, depthwise)

}  // namespace heddle::cpu
