#include "tensors/convert.h"

#include <cstring>

#include "base/element.h"
#include "base/half.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

void store(std::byte* to, DType dtype, double value) {
  const auto put = [&](auto number) { std::memcpy(to, &number, sizeof(number)); };
  switch (dtype) {
    case DType::f16:
      return put(f16_of_float(static_cast<float>(value)));
    case DType::bf16:
      return put(bf16_of_float(static_cast<float>(value)));
    case DType::f32:
      return put(static_cast<float>(value));
    case DType::f64:
      return put(value);
    case DType::boolean:
      return put(static_cast<uint8_t>(value != 0));
    default: {
      const auto integer = static_cast<int64_t>(value);
      std::memcpy(to, &integer, static_cast<size_t>(byte_width(dtype)));  // its low bytes
    }
  }
}

}  // namespace

std::shared_ptr<const Blob> blob_of_numbers(DType dtype, const Shape& shape, const std::vector<double>& numbers) {
  std::byte* data = nullptr;
  auto blob = Blob::allocate(dtype, shape, &data);
  for (size_t i = 0; i < numbers.size(); ++i) store(data + i * static_cast<size_t>(byte_width(dtype)), dtype, numbers[i]);
  return blob;
}

std::shared_ptr<const Blob> converted(const Blob& from, DType dtype) {
  std::byte* data = nullptr;
  auto blob = Blob::allocate(dtype, from.shape, &data);
  const TensorView view{from.dtype, from.shape, const_cast<std::byte*>(from.data)};
  for (int64_t i = 0; i < from.shape.element_count(); ++i) store(data + i * byte_width(dtype), dtype, element(view, i));
  return blob;
}

bool is_whole(DType dtype) {
  switch (dtype) {
    case DType::u8:
    case DType::i8:
    case DType::u16:
    case DType::i16:
    case DType::u32:
    case DType::i32:
    case DType::u64:
    case DType::i64:
      return true;
    default:
      return false;
  }
}

bool whole_element(const TensorView& view, int64_t i, int64_t* number) {
  if (view.dtype == DType::i64) {
    *number = static_cast<const int64_t*>(view.data)[i];
  } else if (view.dtype == DType::u64) {
    const uint64_t exact = static_cast<const uint64_t*>(view.data)[i];
    *number = static_cast<int64_t>(exact);
    return exact <= INT64_MAX;
  } else {
    *number = static_cast<int64_t>(element(view, i));  // a double holds each of these
  }
  return true;
}

bool store_whole(void* data, DType dtype, int64_t i, int64_t number) {
  if (dtype == DType::i64) {
    static_cast<int64_t*>(data)[i] = number;
    return true;
  }
  static_cast<int32_t*>(data)[i] = static_cast<int32_t>(number);
  return number >= INT32_MIN && number <= INT32_MAX;
}

}  // namespace heddle::tool
