// Inner loops of pooling, one table per instruction set level (isa.h): rows of channels combined element by element, and outputs of one
// line, row-major, whose windows lie inside it.
#pragma once

#include <stdint.h>

#include "isa.h"

namespace heddle::cpu {

// `count` >= 1 rows of `channels` elements, read as f32. Combined in order; the result is stored, or combined with the content of y.
struct PoolRows {
  const void* const* sources;
  int64_t count;
  int64_t channels;
  float* y;
  bool first;  // store
};
// The loops of one element type.
struct PoolCombine {
  void (*max)(const PoolRows& rows);
  void (*sum)(const PoolRows& rows);
  void (*sum_absolute)(const PoolRows& rows);
  void (*sum_squares)(const PoolRows& rows);
};
// `outputs` neighbours of a row-major line, of f32. Each combines its taps in row-major order.
struct PoolLine {
  const float* const* rows;  // `row_count` >= 1: the lines of the input, at the first tap of the first output
  int64_t row_count;
  int64_t taps, dilation, stride;  // along a line
  float* y;
  int64_t outputs;
};
struct PoolLines {
  void (*max)(const PoolLine& line);
  void (*sum)(const PoolLine& line);
  void (*sum_absolute)(const PoolLine& line);
  void (*sum_squares)(const PoolLine& line);
};
struct PoolTable {
  PoolCombine f32, f16, bf16;
  PoolLines line;
  void (*divide)(float* y, int64_t channels, float divisor);
  void (*square_root)(float* y, int64_t channels);
  void (*add)(const float* x, int64_t channels, float* y);
  // An element of x that is larger than `best`, or a NaN, replaces it, and `position` replaces the element of `at`.
  void (*keep_larger)(const float* x, int64_t channels, int32_t position, float* best, int32_t* at);
};
HEDDLE_DECLARE_ISA_TABLE(PoolTable, pooling)

}  // namespace heddle::cpu
