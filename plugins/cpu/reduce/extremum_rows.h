// The places of the largest or smallest f32 along rows and columns. A NaN is beyond all numbers. Stateless; any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "isa.h"

namespace heddle::cpu {

// Among equal elements the first or the last one is chosen. `count` is at least 1 and fits 31 bits.
struct ExtremumFunctions {
  int64_t (*row)(const float* x, int64_t count);
  // Writes the places in `columns` neighbouring columns, whose elements are `stride` apart.
  void (*columns)(const float* x, int64_t count, int64_t stride, int64_t columns, int64_t* places);
};
struct ExtremumTable {
  ExtremumFunctions largest[2], smallest[2];  // by whether the last one is chosen
};
HEDDLE_DECLARE_ISA_TABLE(ExtremumTable, extrema)

}  // namespace heddle::cpu
