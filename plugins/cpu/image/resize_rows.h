// The loops of Resize of one instruction set level, on rows of f32 or f64. Stateless; any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "isa.h"

namespace heddle::cpu {

// For every one of `output` positions, by tap: what it reads of a row, and the weight. A position reads `block` neighbouring elements.
struct ResizeColumns {
  const int32_t* positions = nullptr;  // [taps][output], none negative
  const void* weights = nullptr;       // [taps][output], in the type of the sums
  int64_t taps = 0, output = 0, block = 1;
};

// Functions by the dtype of sums: [0] f32, [1] f64; `picked` by the logarithm of the width of an element: 1, 2, 4 or 8 bytes.
struct ResizeTable {
  // sums[i] += weight * x[i]
  void (*add_row[2])(void* sums, const void* x, double weight, int64_t count);
  // Writes the sums of all columns of one row.
  void (*columns[2])(const ResizeColumns& columns, const void* row, void* y);
  // y[i] = row[positions[i]]
  void (*picked[4])(const void* row, const int32_t* positions, void* y, int64_t count);
  // Rounds numbers to the nearest whole ones, ties to even.
  void (*round)(double* x, int64_t count);
};
HEDDLE_DECLARE_ISA_TABLE(ResizeTable, resize_rows)

}  // namespace heddle::cpu
