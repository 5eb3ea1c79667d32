// Tiles of 16-bit floats. See float_tiles.h.
#include "support/float_tiles.h"

#include "shared/scalar.h"
#include "vector/convert.h"

namespace heddle::cpu {

void load_floats(heddle_dtype dtype, const void* data, const RowsOfTensor& rows, float* dense) {
  const auto width = static_cast<int64_t>(byte_width(dtype));
  const auto* from = static_cast<const char*>(data) + rows.first * width;
  if (rows.rows == 1 || rows.apart == rows.columns) return convert(dtype, from, HEDDLE_F32, dense, rows.rows * rows.columns);
  for (int64_t row = 0; row < rows.rows; ++row)
    convert(dtype, from + row * rows.apart * width, HEDDLE_F32, dense + row * rows.columns, rows.columns);
}

void store_floats(const float* dense, heddle_dtype dtype, void* data, const RowsOfTensor& rows) {
  const auto width = static_cast<int64_t>(byte_width(dtype));
  auto* to = static_cast<char*>(data) + rows.first * width;
  if (rows.rows == 1 || rows.apart == rows.columns) return convert(HEDDLE_F32, dense, dtype, to, rows.rows * rows.columns);
  for (int64_t row = 0; row < rows.rows; ++row)
    convert(HEDDLE_F32, dense + row * rows.columns, dtype, to + row * rows.apart * width, rows.columns);
}

std::vector<float> constant_floats(const heddle_tensor& tensor) {
  if (!tensor.data) return {};
  std::vector<float> floats(static_cast<size_t>(tensor.element_count));
  convert(static_cast<heddle_dtype>(tensor.dtype), tensor.data, HEDDLE_F32, floats.data(), tensor.element_count);
  return floats;
}

}  // namespace heddle::cpu
