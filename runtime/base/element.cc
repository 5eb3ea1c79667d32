#include "base/element.h"

#include <cmath>
#include <cstring>

#include "base/half.h"

namespace heddle {
namespace {

template <class T>
double as_double(const void* data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return static_cast<double>(value);
}

}  // namespace

double element(const TensorView& t, int64_t i) {
  switch (t.dtype) {
    case DType::f16:
      return float_of_f16(static_cast<const uint16_t*>(t.data)[i]);
    case DType::bf16:
      return float_of_bf16(static_cast<const uint16_t*>(t.data)[i]);
    case DType::f32:
      return as_double<float>(t.data, i);
    case DType::f64:
      return as_double<double>(t.data, i);
    case DType::i8:
      return as_double<int8_t>(t.data, i);
    case DType::i16:
      return as_double<int16_t>(t.data, i);
    case DType::i32:
      return as_double<int32_t>(t.data, i);
    case DType::i64:
      return as_double<int64_t>(t.data, i);
    case DType::u8:
      return as_double<uint8_t>(t.data, i);
    case DType::u16:
      return as_double<uint16_t>(t.data, i);
    case DType::u32:
      return as_double<uint32_t>(t.data, i);
    case DType::u64:
      return as_double<uint64_t>(t.data, i);
    case DType::boolean:
      return as_double<uint8_t>(t.data, i);
    default:
      return NAN;
  }
}

bool is_float(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

namespace {

template <class T>
int64_t first_not_finite_of(const TensorView& tensor, int64_t first) {
  const auto* const data = static_cast<const std::byte*>(tensor.data);
  for (int64_t i = first, count = tensor.shape.element_count(); i < count; ++i) {
    T value;
    std::memcpy(&value, data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    if (!std::isfinite(value)) return i;
  }
  return -1;
}

}  // namespace

int64_t first_not_finite(const TensorView& tensor, int64_t first) {
  if (!is_float(tensor.dtype) || !tensor.data) return -1;
  if (tensor.dtype == DType::f32) return first_not_finite_of<float>(tensor, first);
  if (tensor.dtype == DType::f64) return first_not_finite_of<double>(tensor, first);
  for (int64_t i = first, count = tensor.shape.element_count(); i < count; ++i)
    if (!std::isfinite(element(tensor, i))) return i;
  return -1;
}

}  // namespace heddle
