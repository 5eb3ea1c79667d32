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
// `outputs` neighbours of a row-major line. Each combines its taps in row-major order.
template <class T>
struct PoolLine {
  const T* const* rows;  // `row_count` >= 1: the lines of the input, at the first tap of the first output
  int64_t row_count;
  int64_t taps, dilation, stride;  // along a line
  T* y;
  int64_t outputs;
  bool padded;  // the rows go on for pool_lanes outputs more
};
constexpr int64_t pool_lanes = 16;  // at most as many are in a vector
template <class T>
struct PoolLines {
  void (*max)(const PoolLine<T>& line);
  void (*sum)(const PoolLine<T>& line);
  void (*sum_absolute)(const PoolLine<T>& line);
  void (*sum_squares)(const PoolLine<T>& line);
  // y /= divisor, and y /= counts * divisor.
  void (*divide)(T* y, int64_t outputs, T divisor);
  void (*divide_each)(T* y, int64_t outputs, const T* counts, T divisor);
  void (*square_root)(T* y, int64_t outputs);
};
struct PoolTable {
  PoolCombine f32, f16, bf16;
  PoolLines<float> lines;
  PoolLines<double> lines_f64;
  void (*add)(const float* x, int64_t channels, float* y);
  // An element of x that is larger than `best`, or a NaN, replaces it, and `position` replaces the element of `at`.
  void (*keep_larger)(const float* x, int64_t channels, int32_t position, float* best, int32_t* at);
};
HEDDLE_DECLARE_ISA_TABLE(PoolTable, pooling)

}  // namespace heddle::cpu
