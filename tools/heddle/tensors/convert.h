// Tensors from numbers, and in other dtypes.
#pragma once

#include <memory>
#include <vector>

#include "heddle/session.h"
#include "net/net.h"

namespace heddle::tool {

// Returns a tensor of as many numbers as the shape has elements: f16, bf16, f32 are rounded to the nearest; integers get the low bytes of
// the number without its fraction; bool whether it is not 0.
std::shared_ptr<const Blob> blob_of_numbers(DType dtype, const Shape& shape, const std::vector<double>& numbers);

// Returns the same numbers as far as the dtype holds them.
std::shared_ptr<const Blob> converted(const Blob& from, DType dtype);

}  // namespace heddle::tool
