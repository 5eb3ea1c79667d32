// Tensors from numbers, and in other dtypes.
#pragma once

#include <memory>
#include <vector>

#include "heddle/session.h"
#include "net/net.h"

namespace heddle::tool {

// As many numbers as the shape has elements: rounded to the nearest of f16, bf16, f32; of integers the low bytes of what is left without
// its fraction; of bool whether it is not 0.
std::shared_ptr<const Blob> blob_of_numbers(DType dtype, const Shape& shape, const std::vector<double>& numbers);

// The same numbers as far as the dtype holds them.
std::shared_ptr<const Blob> converted(const Blob& from, DType dtype);

}  // namespace heddle::tool
