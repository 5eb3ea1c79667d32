#include "heddle/tensor.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"

namespace heddle {
namespace {

struct DTypeInfo {
  const char* name;
  int64_t width;
};
constexpr DTypeInfo dtypes[HEDDLE_DTYPE_COUNT] = {{"none", 0}, {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}, {"i8", 1},  {"i16", 2},
                                                  {"i32", 4},  {"i64", 8}, {"u8", 1},   {"u16", 2}, {"u32", 4}, {"u64", 8}, {"bool", 1}};

}  // namespace

const char* to_string(DType dtype) {
  const auto i = static_cast<size_t>(dtype);
  return i < HEDDLE_DTYPE_COUNT ? dtypes[i].name : "invalid";
}

DType dtype_from_string(const std::string& text) {
  for (int i = 1; i < HEDDLE_DTYPE_COUNT; ++i)
    if (text == dtypes[i].name) return static_cast<DType>(i);
  return DType::none;
}

int64_t byte_width(DType dtype) {
  const auto i = static_cast<size_t>(dtype);
  return i < HEDDLE_DTYPE_COUNT ? dtypes[i].width : 0;
}

int64_t Shape::element_count() const noexcept {
  int64_t n = 1;
  bool overflow = false;
  for (int64_t dim : *this) {
    if (dim <= 0) return 0;
    if (!checked_multiply(n, dim, &n)) overflow = true;
  }
  return overflow ? INT64_MAX : n;
}

std::string Shape::text() const try { return fmt::format("[{}]", fmt::join(begin(), end(), ", ")); } catch (...) {
  return "[...]";  // it needs no memory
}

bool checked_byte_size(DType dtype, const Shape& shape, int64_t* bytes) noexcept {
  int64_t n = byte_width(dtype);
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim < 0 || !checked_multiply(n, std::max<int64_t>(dim, 1), &n)) return false;
    empty = empty || dim == 0;
  }
  *bytes = empty ? 0 : n;
  return true;
}

}  // namespace heddle
