// Reads single elements of tensors of any dtype, for numbers that people see. Not for kernels.
#pragma once

#include "heddle/tensor.h"

namespace heddle {

// Returns one element as a double; whole numbers from 2^53 on are rounded to the nearest. NaN for a dtype without numbers.
double element(const TensorView& tensor, int64_t index);
bool is_float(DType dtype);

}  // namespace heddle
