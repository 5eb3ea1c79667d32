// Element types: dtypes of C++ types, and sets of dtypes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heddle/abi.h"
#include "heddle/op/half_floats.h"

namespace heddle {
namespace plugin {

template <class T>
struct dtype_of;
#define HEDDLE_DTYPE_OF_(type, value)         \
  template <>                                 \
  struct dtype_of<type> {                     \
    static constexpr heddle_dtype id = value; \
  };
HEDDLE_DTYPE_OF_(f16, HEDDLE_F16)
HEDDLE_DTYPE_OF_(bf16, HEDDLE_BF16)
HEDDLE_DTYPE_OF_(float, HEDDLE_F32)
HEDDLE_DTYPE_OF_(double, HEDDLE_F64)
HEDDLE_DTYPE_OF_(int8_t, HEDDLE_I8)
HEDDLE_DTYPE_OF_(int16_t, HEDDLE_I16)
HEDDLE_DTYPE_OF_(int32_t, HEDDLE_I32)
HEDDLE_DTYPE_OF_(int64_t, HEDDLE_I64)
HEDDLE_DTYPE_OF_(uint8_t, HEDDLE_U8)
HEDDLE_DTYPE_OF_(uint16_t, HEDDLE_U16)
HEDDLE_DTYPE_OF_(uint32_t, HEDDLE_U32)
HEDDLE_DTYPE_OF_(uint64_t, HEDDLE_U64)
HEDDLE_DTYPE_OF_(bool, HEDDLE_BOOL)
#undef HEDDLE_DTYPE_OF_

template <class... T>
constexpr heddle_dtype_set dtypes() {
  return (HEDDLE_DTYPE_BIT(dtype_of<T>::id) | ... | 0u);
}
constexpr heddle_dtype_set any_dtype = ((1u << HEDDLE_DTYPE_COUNT) - 1u) & ~1u;
constexpr heddle_dtype_set float_dtypes = dtypes<f16, bf16, float, double>();
constexpr heddle_dtype_set signed_dtypes = float_dtypes | dtypes<int8_t, int16_t, int32_t, int64_t>();
constexpr heddle_dtype_set integer_dtypes = dtypes<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>();
constexpr heddle_dtype_set numeric_dtypes = float_dtypes | integer_dtypes;
constexpr heddle_dtype_set index_dtypes = dtypes<int32_t, int64_t>();
// Returns the name that nets, examples and messages use: "f32".
inline const char* dtype_name(heddle_dtype d) {
  static constexpr const char* names[HEDDLE_DTYPE_COUNT] = {"none", "f16", "bf16", "f32", "f64", "i8",  "i16",
                                                            "i32",  "i64", "u8",   "u16", "u32", "u64", "bool"};
  return d >= 0 && d < HEDDLE_DTYPE_COUNT ? names[d] : "unknown";
}
inline size_t byte_width(heddle_dtype d) {
  switch (d) {
    case HEDDLE_I8:
    case HEDDLE_U8:
    case HEDDLE_BOOL:
      return 1;
    case HEDDLE_F16:
    case HEDDLE_BF16:
    case HEDDLE_I16:
    case HEDDLE_U16:
      return 2;
    case HEDDLE_F32:
    case HEDDLE_I32:
    case HEDDLE_U32:
      return 4;
    case HEDDLE_F64:
    case HEDDLE_I64:
    case HEDDLE_U64:
      return 8;
    default:
      return 0;
  }
}

}  // namespace plugin
}  // namespace heddle
