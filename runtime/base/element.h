// Reads single elements of tensors of any dtype, for numbers that people see. Not for kernels.
#pragma once

#include "heddle/tensor.h"

namespace heddle {

// Returns one element as a double; whole numbers from 2^53 on are rounded to the nearest. NaN for a dtype without numbers.
double element(const TensorView& tensor, int64_t index);
bool is_float(DType dtype);
// Returns the first element from `first` on that is nan or inf, in row-major order; -1: there is none, or the numbers are no floats.
int64_t first_not_finite(const TensorView& tensor, int64_t first = 0);

}  // namespace heddle
