// From a dtype to the C++ type of its elements. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "shared/operator_api.h"

namespace heddle::operators {

template <class T>
struct Tag {
  using type = T;
};
// Calls f(Tag<uint8_t, uint16_t, uint32_t or uint64_t>) for the width of a dtype.
template <class F>
auto with_width(size_t width, F&& f) {
  switch (width) {
    case 1:
      return f(Tag<uint8_t>());
    case 2:
      return f(Tag<uint16_t>());
    case 4:
      return f(Tag<uint32_t>());
    default:
      return f(Tag<uint64_t>());
  }
}
// Calls f(Tag<T>) for the element type of a dtype; bool comes as uint8_t.
template <class F>
auto with_dtype(heddle_dtype dtype, F&& f) {
  switch (dtype) {
    case HEDDLE_F16:
      return f(Tag<f16>());
    case HEDDLE_BF16:
      return f(Tag<bf16>());
    case HEDDLE_F32:
      return f(Tag<float>());
    case HEDDLE_F64:
      return f(Tag<double>());
    case HEDDLE_I8:
      return f(Tag<int8_t>());
    case HEDDLE_I16:
      return f(Tag<int16_t>());
    case HEDDLE_I32:
      return f(Tag<int32_t>());
    case HEDDLE_I64:
      return f(Tag<int64_t>());
    case HEDDLE_U16:
      return f(Tag<uint16_t>());
    case HEDDLE_U32:
      return f(Tag<uint32_t>());
    case HEDDLE_U64:
      return f(Tag<uint64_t>());
    default:
      return f(Tag<uint8_t>());
  }
}
// The dtype whose loops compute `dtype`: 16-bit floats in f32, narrow integers in i32, u32 in i64, the others in themselves.
constexpr heddle_dtype compute_dtype(heddle_dtype dtype) {
  switch (dtype) {
    case HEDDLE_F16:
    case HEDDLE_BF16:
    case HEDDLE_F32:
      return HEDDLE_F32;
    case HEDDLE_F64:
    case HEDDLE_I64:
    case HEDDLE_U64:
      return dtype;
    case HEDDLE_U32:
      return HEDDLE_I64;
    default:
      return HEDDLE_I32;
  }
}
// The type in which elements of T are computed with: float for the 16-bit ones, else T.
template <class T>
using Arithmetic = wide_t<T>;

// Element `i` of an i32 or i64 tensor.
inline int64_t integer_at(const heddle_tensor& tensor, int64_t i) {
  return tensor.dtype == HEDDLE_I32 ? static_cast<const int32_t*>(tensor.data)[i] : static_cast<const int64_t*>(tensor.data)[i];
}

}  // namespace heddle::operators
