// The dtype numbers of ONNX (TensorProto.DataType), which attributes like `to` and `dtype` contain.
#pragma once

#include <cstdint>
#include <string>

#include "heddle/op.h"

namespace heddle::operators {

// HEDDLE_DTYPE_NONE for types that Heddle does not have (strings, complex numbers, 8-bit floats).
inline heddle_dtype dtype_from_onnx(int64_t number) {
  static constexpr heddle_dtype table[] = {HEDDLE_DTYPE_NONE, HEDDLE_F32, HEDDLE_U8,         HEDDLE_I8,         HEDDLE_U16, HEDDLE_I16,
                                           HEDDLE_I32,        HEDDLE_I64, HEDDLE_DTYPE_NONE, HEDDLE_BOOL,       HEDDLE_F16, HEDDLE_F64,
                                           HEDDLE_U32,        HEDDLE_U64, HEDDLE_DTYPE_NONE, HEDDLE_DTYPE_NONE, HEDDLE_BF16};
  return number >= 0 && number < static_cast<int64_t>(sizeof(table) / sizeof(table[0])) ? table[number] : HEDDLE_DTYPE_NONE;
}

// The inverse; 0 for a dtype that ONNX does not have.
inline int64_t onnx_from_dtype(heddle_dtype dtype) {
  for (int64_t number = 1; number <= 16; ++number)
    if (dtype_from_onnx(number) == dtype) return number;
  return 0;
}

// Replaces *dtype by the dtype of the attribute; if that is absent, *dtype keeps its value.
inline plugin::Status dtype_attribute(const plugin::Attributes& attributes, const char* name, heddle_dtype* dtype) {
  if (!attributes.has(name)) return {};
  *dtype = dtype_from_onnx(attributes.i(name));
  if (*dtype != HEDDLE_DTYPE_NONE) return {};
  return plugin::invalid(std::string(name) + " is " + std::to_string(attributes.i(name)) + ", which is no element type of Heddle");
}

}  // namespace heddle::operators
