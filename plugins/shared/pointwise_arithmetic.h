// Which dtype a pointwise program computes in: one decision for all devices, whose results must agree.
#pragma once

#include <vector>

#include "heddle/op.h"

namespace heddle::operators {

inline constexpr const char* different_dtypes = "inputs that are not bool must have one dtype";

// Finds the dtype of the inputs that are not bool; without such inputs that of the output, and bool if it has none yet. Returns false if
// the inputs have several (different_dtypes).
inline bool find_arithmetic(const std::vector<heddle_dtype>& inputs, heddle_dtype output, heddle_dtype* arithmetic) {
  *arithmetic = HEDDLE_DTYPE_NONE;
  for (const heddle_dtype dtype : inputs) {
    if (dtype == HEDDLE_BOOL) continue;
    if (*arithmetic != HEDDLE_DTYPE_NONE && *arithmetic != dtype) return false;
    *arithmetic = dtype;
  }
  if (*arithmetic == HEDDLE_DTYPE_NONE) *arithmetic = output != HEDDLE_DTYPE_NONE ? output : HEDDLE_BOOL;
  return true;
}

}  // namespace heddle::operators
