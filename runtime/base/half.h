// f16 (IEEE binary16) and bf16 to and from f32, one element at a time, for tools and text; kernels have their own vector forms.
// To f32 is exact; from f32 rounds to nearest even, overflow gives infinity, NaNs stay NaNs (quiet).
#pragma once

#include <bit>
#include <cstdint>

namespace heddle {

inline float float_of_bf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

inline uint16_t bf16_of_float(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

inline float float_of_f16(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7FFFu;
  if (magnitude >= 0x7C00u) return std::bit_cast<float>(sign | 0x7F800000u | ((magnitude & 0x3FFu) << 13));  // infinity, NaN
  if (magnitude >= 0x0400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));           // normal
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(subnormal));
}

inline uint16_t f16_of_float(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu));
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7C00u);  // 65536 and more
  if (magnitude < 0x38800000u) {                                               // below 2^-14: units of 2^-24, rounded by the addition
    const float units = std::bit_cast<float>(magnitude) + 0.5f;                // 0.5 has an ulp of 2^-24
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(units) - 0x3F000000u));
  }
  // A carry out of the mantissa gives the next exponent, and infinity at the end.
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0x0FFFu + ((magnitude >> 13) & 1u)) >> 13));
}

}  // namespace heddle
