#include "commands/plugin/check/special_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace heddle::tool {
namespace {

template <class T>
std::vector<T> special_integers() {
  using Limits = std::numeric_limits<T>;
  return {T(0), T(1), T(2), static_cast<T>(-1), T(3), T(7), Limits::min(), Limits::max(), static_cast<T>(Limits::max() - 1)};
}
template <class T>
std::vector<T> special_floats() {
  using Limits = std::numeric_limits<T>;
  const T inf = Limits::infinity(), nan = Limits::quiet_NaN();
  return {nan,
          -nan,
          inf,
          -inf,
          T(0),
          -T(0),
          T(1),
          T(-1),
          T(2),
          T(-2),
          T(0.5),
          T(-0.5),
          T(1) / T(3),
          Limits::denorm_min(),
          -Limits::denorm_min(),
          Limits::min(),
          -Limits::min(),
          Limits::max(),
          -Limits::max(),
          T(6),
          T(-6),
          T(3),
          T(2.5),
          T(-2.5),
          T(100),
          T(-100),
          T(1e-40),
          T(16777217)};
}
// f16 and bf16 by their bits.
std::vector<uint16_t> special_halves(DType dtype) {
  const bool brain = dtype == DType::bf16;
  const uint16_t inf = brain ? 0x7f80 : 0x7c00, one = brain ? 0x3f80 : 0x3c00, third = brain ? 0x3eab : 0x3555,
                 six = brain ? 0x40c0 : 0x4600;
  std::vector<uint16_t> bits;
  for (const unsigned sign : {0u, 0x8000u})
    for (const unsigned magnitude :
         {0u, 1u, unsigned{inf}, inf + 0x40u, inf - 1u, unsigned{one}, unsigned{third}, unsigned{six}, brain ? 0x80u : 0x400u})
      bits.push_back(static_cast<uint16_t>(sign | magnitude));
  return bits;
}

// Element [i][k] of the first input is special value i, of the others value k, and so on.
template <class T>
std::shared_ptr<const Blob> spread(DType dtype, const std::vector<T>& values, uint32_t input, const Shape& shape, uint64_t seed) {
  std::byte* data = nullptr;
  auto blob = Blob::allocate(dtype, shape, &data);
  const auto n = values.size();
  for (size_t i = 0; i < static_cast<size_t>(shape.element_count()); ++i) {
    const size_t at = input == 0 ? i / n : (i + (input - 1) * (i / n + seed)) % n;
    std::memcpy(data + i * sizeof(T), &values[at % n], sizeof(T));
  }
  return blob;
}

template <class T>
bool is_nan(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof(value));
  return std::isnan(value);
}
}  // namespace

std::shared_ptr<const Blob> special_blob(DType dtype, uint32_t input, const Shape& shape, uint64_t seed) {
  switch (dtype) {
    case DType::f32:
      return spread(dtype, special_floats<float>(), input, shape, seed);
    case DType::f64:
      return spread(dtype, special_floats<double>(), input, shape, seed);
    case DType::f16:
    case DType::bf16:
      return spread(dtype, special_halves(dtype), input, shape, seed);
    case DType::i8:
      return spread(dtype, special_integers<int8_t>(), input, shape, seed);
    case DType::i16:
      return spread(dtype, special_integers<int16_t>(), input, shape, seed);
    case DType::i32:
      return spread(dtype, special_integers<int32_t>(), input, shape, seed);
    case DType::i64:
      return spread(dtype, special_integers<int64_t>(), input, shape, seed);
    case DType::u8:
      return spread(dtype, special_integers<uint8_t>(), input, shape, seed);
    case DType::u16:
      return spread(dtype, special_integers<uint16_t>(), input, shape, seed);
    case DType::u32:
      return spread(dtype, special_integers<uint32_t>(), input, shape, seed);
    case DType::u64:
      return spread(dtype, special_integers<uint64_t>(), input, shape, seed);
    case DType::boolean:
      return spread(dtype, std::vector<uint8_t>{0, 1}, input, shape, seed);
    default:
      return nullptr;
  }
}

bool is_nan(DType dtype, const std::byte* p) {
  if (dtype == DType::f32) return is_nan<float>(p);
  if (dtype == DType::f64) return is_nan<double>(p);
  if (dtype != DType::f16 && dtype != DType::bf16) return false;
  uint16_t bits = 0;
  std::memcpy(&bits, p, sizeof(bits));
  return (bits & 0x7fff) > (dtype == DType::f16 ? 0x7c00 : 0x7f80);
}

bool is_zero(DType dtype, const std::byte* p) {
  const auto width = static_cast<size_t>(byte_width(dtype));
  const bool has_sign = dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
  for (size_t i = 0; i < width; ++i)
    if ((p[i] & (has_sign && i + 1 == width ? std::byte{0x7f} : std::byte{0xff})) != std::byte{0}) return false;
  return true;
}

}  // namespace heddle::tool
