// Arithmetic on single elements of any dtype, for operators that are not worth vectors: 16-bit floats are computed in float, integers
// wrap around, comparisons of floats are a total order with NaN above all numbers. Pure.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "support/dtype_dispatch.h"

namespace heddle::cpu {

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

inline float to_float(f16 h) {
  const uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000) << 16, magnitude = h.bits & 0x7fff;
  // Exponent and mantissa shifted into place, then rescaled by 2^112: denormals come out normalised.
  const float scaled = bits_as<float>(magnitude << 13) * 0x1p112f;
  const uint32_t special = (magnitude << 13) + ((255u - 31u) << 23);
  return bits_as<float>((magnitude >= 0x7c00 ? special : bits_as<uint32_t>(scaled)) | sign);
}
inline float to_float(bf16 b) {
  return bits_as<float>(static_cast<uint32_t>(b.bits) << 16);
}
// Rounds to nearest, ties to even.
inline f16 to_f16(float value) {
  const auto bits = bits_as<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return {static_cast<uint16_t>(sign | 0x7e00)};
  if (magnitude >= 0x47800000) return {static_cast<uint16_t>(sign | 0x7c00)};
  if (magnitude < 0x38800000)  // denormal: the addition rounds at the right bit
    return {static_cast<uint16_t>(sign | (bits_as<uint32_t>(bits_as<float>(magnitude) + 0.5f) - 0x3f000000))};
  return {static_cast<uint16_t>(sign | ((magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13))};
}
inline bf16 to_bf16(float value) {
  const auto bits = bits_as<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

template <class T>
Arithmetic<T> to_arithmetic(T value) {
  if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>)
    return to_float(value);
  else
    return value;
}
// From any number; narrower floats round, integers wrap (floats must fit).
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

// Element `i` of a numeric tensor as a number; large 64-bit integers round.
inline double number_at(const heddle_tensor& tensor, int64_t i) {
  return with_dtype(tensor.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return static_cast<double>(to_arithmetic(static_cast<const T*>(tensor.data)[i]));
  });
}

}  // namespace heddle::cpu
