// The plan of one Resize: the tables of taps of all axes, in the order in which memory is walked.
#pragma once

#include <cstdint>

#include "image/resize_rows.h"
#include "shared/image/resize_node.h"
#include "support/cpu_api.h"
#include "support/strided_copy.h"

namespace heddle::cpu {

// Sums are in f64 for f64 and for integers, whose rounding shows every error, else in f32.
constexpr bool sums_in_f64(heddle_dtype dtype) {
  return dtype != HEDDLE_F32 && dtype != HEDDLE_F16 && dtype != HEDDLE_BF16;
}

// Axes in physical order, outermost first. Trailing axes that keep their elements form one block; the axis before is the column.
struct ResizePlan {
  struct Axis {
    int64_t input = 1, output = 1, stride = 1;  // stride of the input in elements
    int64_t taps = 0;                           // 0: position i reads position i
    const int32_t* positions = nullptr;
    const double* weights = nullptr;
  };
  int rank = 0;               // at least 1
  bool interpolates = false;  // false: no axis has taps
  Axis axes[HEDDLE_MAX_RANK];
  int64_t block = 1;
  int64_t rows = 1;  // of the output: the product of the axes before the column
  const Axis& column() const { return axes[rank - 1]; }
  ResizeColumns columns;  // the column by tap; without taps where it keeps its elements
  bool crops = false;     // some position of the column lies outside of the input
  bool is_copy = false;   // of nearest: on every axis, positions are equally far apart, or repeated equally often
  StridedCopy copy;       // then does it all
};

// Bytes of tables for any operands that lead to this output.
uint64_t table_bytes(const ResizeNode& node, Dims input, Dims output);
// Fills `tables`, which hold `bytes`, and refers to them; an error where they do not fit.
Status make_resize_plan(const ResizeNode& node, const ResizeAxis* axes, const heddle_tensor& x, void* tables, uint64_t bytes,
                        ResizePlan* made);

}  // namespace heddle::cpu
