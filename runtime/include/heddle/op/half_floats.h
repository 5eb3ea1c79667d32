// f16 (IEEE binary16) and bf16 as elements of kernels: stored in two bytes; computations convert them to float.
//
//   template <class T>
//   Status scale(In<T> x, Out<T> y) {
//     for (int64_t i = 0; i < x.size; ++i) y[i] = static_cast<T>(2 * static_cast<wide_t<T>>(x[i]));
//     return {};
//   }
//
// Conversion to float is exact and implicit: `a + b` and `a < b` are operations of floats. Conversion from float or double rounds once, to
// nearest even; overflow gives infinity and NaNs stay NaNs (quiet). This conversion must be explicit, because it loses digits.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "heddle/abi.h"

namespace heddle {
namespace plugin {

struct f16;
struct bf16;
inline float to_float(f16 value);
inline float to_float(bf16 value);
inline f16 to_f16(float value);
inline f16 to_f16(double value);
inline bf16 to_bf16(float value);
inline bf16 to_bf16(double value);

struct f16 {
  uint16_t bits;
  f16() = default;
  inline explicit f16(float value);
  inline explicit f16(double value);
  // An integer could mean the bits or the number: write from_bits(0x3c00), or f16(1.0f).
  template <class Integer, std::enable_if_t<std::is_integral<Integer>::value, int> = 0>
  explicit f16(Integer) = delete;
  static constexpr f16 from_bits(uint16_t bits) { return f16(bits, AsBits()); }
  operator float() const { return to_float(*this); }

 private:
  struct AsBits {};
  constexpr f16(uint16_t stored, AsBits) : bits(stored) {}
};

struct bf16 {
  uint16_t bits;
  bf16() = default;
  inline explicit bf16(float value);
  inline explicit bf16(double value);
  template <class Integer, std::enable_if_t<std::is_integral<Integer>::value, int> = 0>
  explicit bf16(Integer) = delete;  // see f16
  static constexpr bf16 from_bits(uint16_t bits) { return bf16(bits, AsBits()); }
  operator float() const { return to_float(*this); }

 private:
  struct AsBits {};
  constexpr bf16(uint16_t stored, AsBits) : bits(stored) {}
};

static_assert(sizeof(f16) == 2 && std::is_trivially_copyable<f16>::value && std::is_trivially_default_constructible<f16>::value,
              "two bytes");
static_assert(sizeof(bf16) == 2 && std::is_trivially_copyable<bf16>::value && std::is_trivially_default_constructible<bf16>::value,
              "two bytes");

// The type in which to compute with elements of T: float for the 16-bit types, else T.
template <class T>
using wide_t = std::conditional_t<std::is_same<T, f16>::value || std::is_same<T, bf16>::value, float, T>;

namespace detail {

inline uint32_t bits_of(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline float float_of(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Rounds to odd: if `value` is no float, returns that one of its two neighbouring floats whose last bit is set. Rounding the result to 16
// bits then gives the same as rounding `value` to 16 bits directly. NaN stays NaN.
inline float odd_float(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  const uint32_t bits = bits_of(nearest);
  if (back == value || value != value || (bits & 1u)) return nearest;
  const bool away = (back < 0 ? -back : back) > (value < 0 ? -value : value);
  return float_of(away ? bits - 1 : bits + 1);
}

}  // namespace detail

// The conversion has no branches, so that compilers vectorise loops, and uses no subnormal floats, which a process may have disabled.
inline float to_float(f16 value) {
  const uint32_t sign = (value.bits & 0x8000u) << 16, magnitude = value.bits & 0x7FFFu;
  const uint32_t wide = (magnitude << 13) + (magnitude >= 0x7C00u ? 0x70000000u : 0x38000000u);
  const uint32_t subnormal = detail::bits_of(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  const uint32_t is_subnormal = 0u - static_cast<uint32_t>(magnitude < 0x0400u);
  return detail::float_of((subnormal & is_subnormal) | (wide & ~is_subnormal) | sign);
}
inline float to_float(bf16 value) {
  return detail::float_of(static_cast<uint32_t>(value.bits) << 16);
}

inline f16 to_f16(float value) {
  const uint32_t bits = detail::bits_of(value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
  // If rounding carries out of the mantissa, the exponent grows by one; if the exponent was the largest already, the result is infinity.
  uint32_t half = (magnitude - 0x38000000u + 0x0FFFu + ((magnitude >> 13) & 1u)) >> 13;
  // Below 2^-14 the result is a multiple of 2^-24. Adding 0.5f rounds to such a multiple, because the floats from 0.5 to 1 are 2^-24 apart;
  // subtracting the bits of 0.5f then leaves the number of these units.
  if (magnitude < 0x38800000u) half = detail::bits_of(detail::float_of(magnitude) + 0.5f) - 0x3F000000u;
  if (magnitude >= 0x47800000u) half = 0x7C00u;  // 65536 and more
  if (magnitude > 0x7F800000u) half = 0x7E00u | ((magnitude >> 13) & 0x3FFu);
  return f16::from_bits(static_cast<uint16_t>(sign | half));
}
inline bf16 to_bf16(float value) {
  const uint32_t bits = detail::bits_of(value);
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16, quiet = (bits >> 16) | 0x40u;
  return bf16::from_bits(static_cast<uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? quiet : rounded));
}
inline f16 to_f16(double value) {
  return to_f16(detail::odd_float(value));
}
inline bf16 to_bf16(double value) {
  return to_bf16(detail::odd_float(value));
}

inline f16::f16(float value) : f16(to_f16(value)) {}
inline f16::f16(double value) : f16(to_f16(value)) {}
inline bf16::bf16(float value) : bf16(to_bf16(value)) {}
inline bf16::bf16(double value) : bf16(to_bf16(value)) {}

}  // namespace plugin
}  // namespace heddle
