// The inner loops of depthwise convolutions, one table per instruction set level (isa.h).
#pragma once

#include <stdint.h>

#include "isa.h"

namespace heddle::cpu {

// One tile; extents in elements, memory channels-last and dense. One-dimensional ones have one row.
struct DepthwiseTile {
  const float* x;        // [rows, columns, channels]
  const float* weights;  // [kernel_rows, kernel_columns, channels]
  const float* bias;     // [channels]
  float* y;              // [output_rows, output_columns, channels]
  int64_t rows, columns, channels;
  int64_t output_rows, output_columns;
  int64_t kernel_rows, kernel_columns;
  int64_t row_stride, column_stride, row_dilation, column_dilation;
  int64_t pad_top, pad_left;
  float lower, upper;  // results are clamped
};
struct DepthwiseTable {
  void (*run)(const DepthwiseTile& tile);
};
HEDDLE_DECLARE_ISA_TABLE(DepthwiseTable, depthwise)

}  // namespace heddle::cpu
