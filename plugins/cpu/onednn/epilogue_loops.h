// Loops over a tile that a library has just written, compiled once per instruction set level: they do the work of a pointwise program in
// one pass without its blocks. Pure; any thread.
#pragma once

#include <stdint.h>

#include "isa.h"

namespace heddle::cpu {

struct EpilogueTable {
  // v = min(max(v, lower), upper), with the bits of pointwise programs: a NaN is kept, and of zeros of both signs the bound is taken.
  // `row_stride` in elements, at least `columns`; the bounds must not be NaN.
  void (*clamp)(float* data, int64_t row_stride, int64_t rows, int64_t columns, float lower, float upper);
};
HEDDLE_DECLARE_ISA_TABLE(EpilogueTable, epilogue)

}  // namespace heddle::cpu
