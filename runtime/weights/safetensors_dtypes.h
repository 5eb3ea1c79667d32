// Definitions shared by reader and writer of safetensors: names of dtypes, of padding, of checksums.
#pragma once

#include <string_view>
#include <utility>

#include "heddle/tensor.h"

namespace heddle {

inline constexpr std::pair<std::string_view, DType> safetensors_dtypes[] = {
    {"F16", DType::f16}, {"BF16", DType::bf16}, {"F32", DType::f32},     {"F64", DType::f64}, {"I8", DType::i8},
    {"I16", DType::i16}, {"I32", DType::i32},   {"I64", DType::i64},     {"U8", DType::u8},   {"U16", DType::u16},
    {"U32", DType::u32}, {"U64", DType::u64},   {"BOOL", DType::boolean}};

// Returns DType::none for names that Heddle does not have.
inline DType dtype_of_safetensors(std::string_view name) {
  for (const auto& [text, dtype] : safetensors_dtypes)
    if (text == name) return dtype;
  return DType::none;
}
// Returns an empty name for DType::none.
inline std::string_view safetensors_dtype(DType wanted) {
  for (const auto& [text, dtype] : safetensors_dtypes)
    if (dtype == wanted) return text;
  return {};
}

// Tensors with this prefix exist only to align the next one.
inline constexpr std::string_view safetensors_padding = "__padding__.";
// "xxh64:NAME" in the metadata is the checksum of tensor NAME, in 16 hexadecimal digits.
inline constexpr std::string_view safetensors_checksum = "xxh64:";

}  // namespace heddle
