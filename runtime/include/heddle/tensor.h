// Dtypes, shapes and tensor views for an embedding program. Requires C++17; nothing in this header allocates, except functions that return
// or take a std::string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "heddle/abi.h"
#include "heddle/export.h"

namespace heddle {

// The element types of the ABI with their short names ("f32", "i64", "bool").
enum class DType : int32_t {
  none = HEDDLE_DTYPE_NONE,
  f16 = HEDDLE_F16,
  bf16 = HEDDLE_BF16,
  f32 = HEDDLE_F32,
  f64 = HEDDLE_F64,
  i8 = HEDDLE_I8,
  i16 = HEDDLE_I16,
  i32 = HEDDLE_I32,
  i64 = HEDDLE_I64,
  u8 = HEDDLE_U8,
  u16 = HEDDLE_U16,
  u32 = HEDDLE_U32,
  u64 = HEDDLE_U64,
  boolean = HEDDLE_BOOL,
};
HEDDLE_API const char* to_string(DType dtype);
// Returns DType::none if the text names no dtype.
HEDDLE_API DType dtype_from_string(const std::string& text);
// Returns the bytes of one element; 0 for none and for values outside the enum.
HEDDLE_API int64_t byte_width(DType dtype);

constexpr int max_rank = HEDDLE_MAX_RANK;

// Up to eight extents, held by value. Extents are >= 0 except where a comment says that -1 means unknown.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) {
    for (int64_t dim : dims) push_back(dim);
  }
  Shape(const int64_t* dims, int rank) {
    for (int i = 0; i < rank; ++i) push_back(dims[i]);
  }
  int rank() const noexcept { return rank_; }
  bool empty() const noexcept { return rank_ == 0; }
  // Appends an extent. Requires rank() < max_rank: otherwise the extent is dropped, so check the rank of untrusted data first.
  void push_back(int64_t dim) noexcept {
    if (rank_ < max_rank) dims_[rank_++] = dim;
  }
  int64_t& operator[](int i) noexcept { return dims_[i]; }
  int64_t operator[](int i) const noexcept { return dims_[i]; }
  const int64_t* data() const noexcept { return dims_; }
  int64_t* data() noexcept { return dims_; }
  const int64_t* begin() const noexcept { return dims_; }
  const int64_t* end() const noexcept { return dims_ + rank_; }
  // Returns the product of the extents, saturating at INT64_MAX; negative extents count as 0.
  HEDDLE_API int64_t element_count() const noexcept;
  // Returns the shape as "[2, 3]".
  HEDDLE_API std::string text() const;
  friend bool operator==(const Shape& a, const Shape& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.dims_[i] != b.dims_[i]) return false;
    return true;
  }
  friend bool operator!=(const Shape& a, const Shape& b) noexcept { return !(a == b); }

 private:
  int64_t dims_[max_rank] = {};
  int rank_ = 0;
};

// Computes byte_width * element_count. Returns false if an extent is negative or if the product of byte_width and all extents, with 1 in
// place of each 0, does not fit in 63 bits. (The zeros are replaced by 1 because the strides of an empty tensor must fit in 63 bits too.)
HEDDLE_API bool checked_byte_size(DType dtype, const Shape& shape, int64_t* bytes) noexcept;

// A view of dense row-major bytes that it does not own. They are on the host, except where a comment says that `data` is an address on a
// device.
struct TensorView {
  DType dtype = DType::none;
  Shape shape;
  void* data = nullptr;
  int64_t byte_size() const noexcept { return byte_width(dtype) * shape.element_count(); }
};

}  // namespace heddle
