#include "onnx/graph/declared_types.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text.h"
#include "onnx/tensors/types.h"

namespace heddle::importer {
namespace {

using ::onnx::TypeProto;
using ::onnx::ValueInfoProto;

// "An identifier" names one extent wherever it occurs; exporters write "?" and the like for axes of which they know nothing, not even that
// two of them are equal.
bool is_identifier(const std::string& name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto may_follow = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && is_letter(name.front()) && std::all_of(name.begin(), name.end(), may_follow);
}

const char* kind_name(const TypeProto& type) {
  switch (type.value_case()) {
    case TypeProto::kTensorType:
      return "a tensor";
    case TypeProto::kSequenceType:
      return "a sequence";
    case TypeProto::kMapType:
      return "a map";
    case TypeProto::kOptionalType:
      return "an optional";
    case TypeProto::kSparseTensorType:
      return "a sparse tensor";
    case TypeProto::kOpaqueType:
      return "opaque";
    default:
      return "of no type";
  }
}

Status check_tensor(const ValueInfoProto& info) {
  if (info.type().value_case() == TypeProto::VALUE_NOT_SET)
    return {Code::syntax, fmt::format("input {} has no type", quoted(info.name())), "export the model again, with types of inputs"};
  if (!info.type().has_tensor_type())
    return {Code::unsupported, fmt::format("input {} is {}", quoted(info.name()), kind_name(info.type())),
            "Heddle's values are dense tensors"};
  const auto& tensor = info.type().tensor_type();
  if (dtype_from_onnx(tensor.elem_type()) == DType::none)
    return {Code::unsupported, fmt::format("input {} is of element type {}", quoted(info.name()), onnx_type_name(tensor.elem_type())),
            "Heddle has f16, bf16, f32, f64, signed and unsigned integers of 8 to 64 bits and bool"};
  if (tensor.shape().dim_size() > max_rank)
    return {Code::unsupported, fmt::format("input {} has {} dimensions", quoted(info.name()), tensor.shape().dim_size()),
            fmt::format("Heddle's tensors have at most {}", max_rank)};
  return {};
}

}  // namespace

Result<DeclaredType> input_type(const ValueInfoProto& info) {
  HEDDLE_CHECK(check_tensor(info));
  const auto& tensor = info.type().tensor_type();
  DeclaredType type;
  type.dtype = dtype_from_onnx(tensor.elem_type());
  type.ranked = tensor.has_shape();
  Shape known;
  for (int i = 0; i < tensor.shape().dim_size(); ++i) {
    const auto& dim = tensor.shape().dim(i);
    const bool number = dim.has_dim_value() && dim.dim_value() >= 0;  // some exporters write -1 for "any"
    if (number) known.push_back(dim.dim_value());
    if (number)
      type.dims.push_back(Dim::of(dim.dim_value()));
    else
      type.dims.push_back(Dim::named(is_identifier(dim.dim_param()) ? dim.dim_param() : fmt::format("{}_dim_{}", info.name(), i)));
  }
  int64_t bytes = 0;
  if (!checked_byte_size(type.dtype, known, &bytes))
    return Status(Code::limit_exceeded,
                  fmt::format("input {} of shape {} is too large for any machine", quoted(info.name()), known.text()));
  return type;
}

DeclaredType stated_type(const ValueInfoProto& info) {
  DeclaredType type;
  const auto& tensor = info.type().tensor_type();
  type.dtype = dtype_from_onnx(tensor.elem_type());
  if (!tensor.has_shape() || tensor.shape().dim_size() > max_rank) return type;
  for (const auto& dim : tensor.shape().dim()) {
    if (!dim.has_dim_value() || dim.dim_value() < 0) {
      type.dims.clear();
      return type;
    }
    type.dims.push_back(Dim::of(dim.dim_value()));
  }
  type.ranked = type.dtype != DType::none;
  return type;
}

Hint stated_hint(const ValueInfoProto& info) {
  const auto& tensor = info.type().tensor_type();
  return {dtype_from_onnx(tensor.elem_type()), tensor.has_shape() ? tensor.shape().dim_size() : -1};
}

}  // namespace heddle::importer
