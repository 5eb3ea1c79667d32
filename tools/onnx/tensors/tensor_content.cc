#include "onnx/tensors/tensor_content.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "base/text/text.h"
#include "onnx/tensors/external_data.h"
#include "onnx/tensors/types.h"

namespace heddle::importer {
namespace {

using ::onnx::TensorProto;

Status corrupt(const TensorProto& tensor, const std::string& what) {
  return {Code::file_corrupt, fmt::format("tensor {} {}", quoted(tensor.name()), what), "export the model again"};
}

Result<Shape> shape_of(const TensorProto& tensor) {
  if (tensor.dims_size() > max_rank)
    return Status(Code::unsupported, fmt::format("tensor {} has {} dimensions", quoted(tensor.name()), tensor.dims_size()),
                  fmt::format("Heddle's tensors have at most {}", max_rank));
  Shape shape;
  for (int64_t dim : tensor.dims()) {
    if (dim < 0) return corrupt(tensor, fmt::format("has a dimension of {}", dim));
    shape.push_back(dim);
  }
  return shape;
}

Status wrong_count(const TensorProto& tensor, int64_t given, int64_t wanted) {
  return corrupt(tensor, fmt::format("holds {} elements where its dims ask for {}", given, wanted));
}

// Copies a typed field into elements of T, and refuses values outside T's range.
template <class T, class Field>
Status narrow(const TensorProto& tensor, const Field& field, int64_t count, std::byte* bytes) {
  if (field.size() != count) return wrong_count(tensor, field.size(), count);
  for (int64_t i = 0; i < count; ++i) {
    const auto wide = field.Get(static_cast<int>(i));
    const T element = static_cast<T>(wide);
    if (static_cast<decltype(wide)>(element) != wide)
      return corrupt(tensor, fmt::format("holds {}, out of range of {}", wide, onnx_type_name(tensor.data_type())));
    std::memcpy(bytes + static_cast<size_t>(i) * sizeof(T), &element, sizeof(T));
  }
  return {};
}

// Float fields are copied as they are: a NaN does not compare equal to itself.
template <class Field>
Status copy(const TensorProto& tensor, const Field& field, int64_t count, std::byte* bytes) {
  if (field.size() != count) return wrong_count(tensor, field.size(), count);
  if (count > 0) std::memcpy(bytes, field.data(), static_cast<size_t>(count) * sizeof(*field.data()));
  return {};
}

Status booleans(const TensorProto& tensor, int64_t count, std::byte* bytes) {
  const auto& field = tensor.int32_data();
  if (field.size() != count) return wrong_count(tensor, field.size(), count);
  for (int64_t i = 0; i < count; ++i) bytes[i] = std::byte{field.Get(static_cast<int>(i)) != 0};
  return {};
}

Status copy_typed(const TensorProto& tensor, DType dtype, int64_t count, std::byte* bytes) {
  switch (dtype) {
    case DType::f32:
      return copy(tensor, tensor.float_data(), count, bytes);
    case DType::f64:
      return copy(tensor, tensor.double_data(), count, bytes);
    case DType::i64:
      return copy(tensor, tensor.int64_data(), count, bytes);
    case DType::u64:
      return copy(tensor, tensor.uint64_data(), count, bytes);
    case DType::i32:
      return copy(tensor, tensor.int32_data(), count, bytes);
    case DType::u32:
      return narrow<uint32_t>(tensor, tensor.uint64_data(), count, bytes);
    case DType::i16:
      return narrow<int16_t>(tensor, tensor.int32_data(), count, bytes);
    case DType::i8:
      return narrow<int8_t>(tensor, tensor.int32_data(), count, bytes);
    case DType::u16:
    case DType::f16:
    case DType::bf16:  // the 16-bit floats lie in int32_data as bit patterns
      return narrow<uint16_t>(tensor, tensor.int32_data(), count, bytes);
    case DType::u8:
      return narrow<uint8_t>(tensor, tensor.int32_data(), count, bytes);
    case DType::boolean:
      return booleans(tensor, count, bytes);
    case DType::none:
      break;
  }
  return {Code::internal, "a tensor without an element type reached copy_typed"};
}

// The number of elements that the message itself holds, which limits the size of allocations.
int64_t typed_count(const TensorProto& tensor, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return tensor.float_data_size();
    case DType::f64:
      return tensor.double_data_size();
    case DType::i64:
      return tensor.int64_data_size();
    case DType::u32:
    case DType::u64:
      return tensor.uint64_data_size();
    default:
      return tensor.int32_data_size();
  }
}

// Booleans of Heddle are 0 or 1; files may hold any non-zero byte.
void normalise_booleans(std::byte* bytes, int64_t count) {
  for (int64_t i = 0; i < count; ++i) bytes[i] = std::byte{bytes[i] != std::byte{0}};
}

Status check_kind(const TensorProto& tensor) {
  if (dtype_from_onnx(tensor.data_type()) == DType::none)
    return {Code::unsupported, fmt::format("tensor {} is of element type {}", quoted(tensor.name()), onnx_type_name(tensor.data_type())),
            "Heddle has f16, bf16, f32, f64, signed and unsigned integers of 8 to 64 bits and bool"};
  if (tensor.has_segment()) return {Code::unsupported, fmt::format("tensor {} is split into segments", quoted(tensor.name())), {}};
  return {};
}

}  // namespace

Result<std::shared_ptr<const Blob>> content_of(const TensorProto& tensor, ExternalData& external, const Limits& limits) {
  HEDDLE_CHECK(check_kind(tensor));
  const DType dtype = dtype_from_onnx(tensor.data_type());
  HEDDLE_TRY(const Shape shape, shape_of(tensor));
  int64_t bytes = 0;
  if (!checked_byte_size(dtype, shape, &bytes) || bytes > limits.tensor_bytes)
    return over_limit(limits, &Limits::tensor_bytes, fmt::format("tensor {} has shape {}", quoted(tensor.name()), shape.text()));
  const bool is_external = tensor.data_location() == TensorProto::EXTERNAL;
  const bool raw = tensor.has_raw_data() && !is_external;
  const int64_t count = shape.element_count();
  if (is_external) {
    HEDDLE_TRY(auto blob, read_external_data(tensor, dtype, shape, external));
    return std::shared_ptr<const Blob>(std::move(blob));
  }
  if (raw && static_cast<int64_t>(tensor.raw_data().size()) != bytes)
    return corrupt(tensor, fmt::format("holds {} bytes where its dims ask for {}", tensor.raw_data().size(), bytes));
  if (!raw && typed_count(tensor, dtype) != count) return wrong_count(tensor, typed_count(tensor, dtype), count);
  std::byte* data = nullptr;
  auto blob = Blob::allocate(dtype, shape, &data);
  if (raw) {
    if (bytes > 0) std::memcpy(data, tensor.raw_data().data(), static_cast<size_t>(bytes));
    if (dtype == DType::boolean) normalise_booleans(data, count);
  } else {
    HEDDLE_CHECK(copy_typed(tensor, dtype, count, data));
  }
  return std::shared_ptr<const Blob>(std::move(blob));
}

}  // namespace heddle::importer
