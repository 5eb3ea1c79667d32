// Conversions that go through f32: chunks of a small buffer on the stack, so that every inner loop stays vectorised.
#include "vector/convert.h"

#include <algorithm>
#include <cstring>

#include "heddle/op.h"

namespace heddle::cpu {
namespace {

constexpr int64_t chunk = 256;

bool is_half(heddle_dtype dtype) {
  return dtype == HEDDLE_F16 || dtype == HEDDLE_BF16;
}
// True if f32 holds every value of the dtype.
bool fits_f32(heddle_dtype dtype) {
  return dtype == HEDDLE_F32 || is_half(dtype) || plugin::byte_width(dtype) <= 2;
}

// Changes 64-bit integers that f64 doesn't hold to ones that it holds: the bits it would round away become one bit, in the place above
// them, which shows f64_to_odd_f32 that something was lost.
void fit_f64(heddle_dtype from, const void* source, uint64_t* fitting, int64_t n) {
  constexpr uint64_t beyond = 0x7ff;
  std::memcpy(fitting, source, static_cast<size_t>(n) * sizeof(uint64_t));
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t x = fitting[i], sign = from == HEDDLE_I64 ? uint64_t{0} - (x >> 63) : 0;
    if (((x ^ sign) >> 53) != 0) fitting[i] = (x & ~beyond) | ((x & beyond) != 0 ? beyond + 1 : 0);
  }
}

void to_f32(const ConvertTable& table, heddle_dtype from, const void* source, float* destination, int64_t n) {
  if (from == HEDDLE_F16) return table.f16_to_f32(source, destination, n);
  if (from == HEDDLE_BF16) return table.bf16_to_f32(source, destination, n);
  if (fits_f32(from)) return table.pairs[from][HEDDLE_F32](source, destination, n);
  if (from == HEDDLE_F64) return table.f64_to_odd_f32(source, destination, n);
  uint64_t fitting[chunk];
  if (plugin::byte_width(from) == 8) {
    fit_f64(from, source, fitting, n);
    source = fitting;
  }
  double wide[chunk];
  table.pairs[from][HEDDLE_F64](source, wide, n);
  table.f64_to_odd_f32(wide, destination, n);
}

void from_f32(const ConvertTable& table, const float* source, heddle_dtype to, void* destination, int64_t n) {
  if (to == HEDDLE_F16) return table.f32_to_f16(source, destination, n);
  if (to == HEDDLE_BF16) return table.f32_to_bf16(source, destination, n);
  table.pairs[HEDDLE_F32][to](source, destination, n);
}

}  // namespace

void convert(heddle_dtype from_dtype, const void* from, heddle_dtype to_dtype, void* to, int64_t count) {
  if (count <= 0) return;
  const ConvertTable& table = isa_conversions();
  const size_t from_width = plugin::byte_width(from_dtype), to_width = plugin::byte_width(to_dtype);
  if (from_dtype == to_dtype) {
    if (from != to) std::memcpy(to, from, static_cast<size_t>(count) * to_width);
    return;
  }
  if (!is_half(from_dtype) && !is_half(to_dtype)) return table.pairs[from_dtype][to_dtype](from, to, count);
  if (from_dtype == HEDDLE_F32) return from_f32(table, static_cast<const float*>(from), to_dtype, to, count);
  if (to_dtype == HEDDLE_F32 && is_half(from_dtype)) return to_f32(table, from_dtype, from, static_cast<float*>(to), count);
  const char* source = static_cast<const char*>(from);
  char* destination = static_cast<char*>(to);
  for (int64_t i = 0; i < count; i += chunk) {
    const int64_t n = std::min(chunk, count - i);
    float middle[chunk];
    to_f32(table, from_dtype, source, middle, n);
    from_f32(table, middle, to_dtype, destination, n);
    source += static_cast<size_t>(n) * from_width;
    destination += static_cast<size_t>(n) * to_width;
  }
}

}  // namespace heddle::cpu
