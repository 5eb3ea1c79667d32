// Arithmetic on single elements of any dtype, for operators that are not worth vectors: 16-bit floats are computed in float, integers
// wrap around, comparisons of floats are a total order with NaN above all numbers. Pure.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "shared/dtype_dispatch.h"

namespace heddle::operators {

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

template <class T>
Arithmetic<T> to_arithmetic(T value) {
  if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>)
    return to_float(value);
  else
    return value;
}
// Converts any number; narrower floats round, integers wrap (floats must fit).
template <class T, class A>
T from_arithmetic(A value) {
  if constexpr (std::is_same_v<T, f16>)
    return to_f16(static_cast<float>(value));
  else if constexpr (std::is_same_v<T, bf16>)
    return to_bf16(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

template <class T>
T wrapping_add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}
template <class T>
T wrapping_mul(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return value != value;
  else
    return false;
}
// A strict weak order: numbers ascending, all NaN equal and last.
template <class T>
bool ordered_less(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a) return false;
    if (b != b) return true;
  }
  return a < b;
}

// The number one, as bytes of a dtype.
inline uint64_t one_of(heddle_dtype dtype) {
  switch (dtype) {
    case HEDDLE_F16:
      return 0x3C00;
    case HEDDLE_BF16:
      return 0x3F80;
    case HEDDLE_F32:
      return 0x3F800000;
    case HEDDLE_F64:
      return 0x3FF0000000000000;
    default:
      return 1;
  }
}

// Element `i` of a numeric tensor as a number; large 64-bit integers round.
inline double number_at(const heddle_tensor& tensor, int64_t i) {
  return with_dtype(tensor.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return static_cast<double>(to_arithmetic(static_cast<const T*>(tensor.data)[i]));
  });
}

}  // namespace heddle::operators
