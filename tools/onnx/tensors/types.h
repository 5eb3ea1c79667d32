// ONNX's element types (TensorProto.DataType numbers) and ours.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/tensor.h"

namespace heddle::importer {

// DType::none when Heddle has no such element type.
DType dtype_from_onnx(int64_t data_type);
// 0 (UNDEFINED) for DType::none.
int32_t dtype_to_onnx(DType dtype);
// ONNX's name of the number, e.g. "FLOAT8E4M3FN", or "data type 99".
std::string onnx_type_name(int64_t data_type);
// The number of an ONNX name such as "FLOAT"; 0 when there is none. Opset 1 wrote types this way.
int32_t onnx_type_number(std::string_view name);

}  // namespace heddle::importer
