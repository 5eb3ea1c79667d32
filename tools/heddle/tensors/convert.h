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

// Returns true for the dtypes of labels, tokens and offsets: i64 and i32.
inline bool takes_whole(DType dtype) {
  return dtype == DType::i64 || dtype == DType::i32;
}
// Returns true for integers of any width.
bool is_whole(DType dtype);
// Reads an element of integers exactly; false: no i64 is that number. REQUIRES: is_whole(view.dtype).
bool whole_element(const TensorView& view, int64_t i, int64_t* number);
// Writes element `i` of i64 or i32 data; false: no i32 is that number.
bool store_whole(void* data, DType dtype, int64_t i, int64_t number);

}  // namespace heddle::tool
