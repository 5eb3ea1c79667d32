// Tiles of 16-bit floats as f32: for kernels that compute f16 and bf16 by the loops of f32.
//
// Each tile's operands are converted into the scratch of the executing thread, the f32 loops compute there, and the result is rounded once
// as it is stored. Constants are converted once, in prepare, and packed as those of f32 are. Stateless; any thread.
#pragma once

#include <vector>

#include "support/cpu_api.h"

namespace heddle::cpu {

// True if tensors of this dtype are computed through f32 tiles.
constexpr bool in_float_tiles(int32_t dtype) {
  return dtype == HEDDLE_F16 || dtype == HEDDLE_BF16;
}

// Elements of a tensor, from element `first` on: `rows` stretches of `columns` contiguous ones, `apart` elements from one to the next.
struct RowsOfTensor {
  int64_t first = 0, rows = 0, columns = 0, apart = 0;
};
// Converts the tensor's data to dense f32.
void load_floats(heddle_dtype dtype, const void* data, const RowsOfTensor& rows, float* dense);
// Converts dense f32 to the tensor's data, rounded to nearest even.
void store_floats(const float* dense, heddle_dtype dtype, void* data, const RowsOfTensor& rows);

// [compile] Returns a whole constant as f32; empty where it has no content.
std::vector<float> constant_floats(const heddle_tensor& tensor);

}  // namespace heddle::cpu
