#include "onnx/tensors/types.h"

#include <fmt/format.h>

#include <array>

namespace heddle::importer {
namespace {

struct ElementType {
  const char* name;
  DType dtype;
};
// Indexed by TensorProto.DataType.
constexpr std::array<ElementType, 24> element_types = {{{"UNDEFINED", DType::none},
                                                        {"FLOAT", DType::f32},
                                                        {"UINT8", DType::u8},
                                                        {"INT8", DType::i8},
                                                        {"UINT16", DType::u16},
                                                        {"INT16", DType::i16},
                                                        {"INT32", DType::i32},
                                                        {"INT64", DType::i64},
                                                        {"STRING", DType::none},
                                                        {"BOOL", DType::boolean},
                                                        {"FLOAT16", DType::f16},
                                                        {"DOUBLE", DType::f64},
                                                        {"UINT32", DType::u32},
                                                        {"UINT64", DType::u64},
                                                        {"COMPLEX64", DType::none},
                                                        {"COMPLEX128", DType::none},
                                                        {"BFLOAT16", DType::bf16},
                                                        {"FLOAT8E4M3FN", DType::none},
                                                        {"FLOAT8E4M3FNUZ", DType::none},
                                                        {"FLOAT8E5M2", DType::none},
                                                        {"FLOAT8E5M2FNUZ", DType::none},
                                                        {"UINT4", DType::none},
                                                        {"INT4", DType::none},
                                                        {"FLOAT4E2M1", DType::none}}};

bool listed(int64_t data_type) {
  return data_type >= 0 && data_type < static_cast<int64_t>(element_types.size());
}

}  // namespace

DType dtype_from_onnx(int64_t data_type) {
  return listed(data_type) ? element_types[static_cast<size_t>(data_type)].dtype : DType::none;
}

int32_t dtype_to_onnx(DType dtype) {
  if (dtype == DType::none) return 0;
  for (size_t i = 0; i < element_types.size(); ++i)
    if (element_types[i].dtype == dtype) return static_cast<int32_t>(i);
  return 0;
}

std::string onnx_type_name(int64_t data_type) {
  return listed(data_type) ? element_types[static_cast<size_t>(data_type)].name : fmt::format("data type {}", data_type);
}

int32_t onnx_type_number(std::string_view name) {
  for (size_t i = 1; i < element_types.size(); ++i)
    if (element_types[i].name == name) return static_cast<int32_t>(i);
  return 0;
}

}  // namespace heddle::importer
