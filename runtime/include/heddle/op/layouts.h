// Physical orders of dense tensors: formats() offers layouts, and prepare sees the layout that was chosen.
//
//   static std::vector<heddle_format> formats(const CreateContext& c) {
//     heddle_format row_major = {}, last = {};
//     last.inputs[0] = last.outputs[0] = channels_last(c.input(0)->rank);
//     return {row_major, last};
//   }
#pragma once

#include <cstdint>
#include <initializer_list>

#include "heddle/abi.h"

namespace heddle {
namespace plugin {

// Returns the layout with these dimensions, listed from the outermost to the innermost: {0, 2, 3, 1} is channels-last of NCHW. {}:
// row-major, for any rank.
inline heddle_layout ordered(std::initializer_list<int> dimensions) {
  heddle_layout layout = {};
  for (const int dimension : dimensions)
    if (layout.rank < HEDDLE_MAX_RANK) layout.order[layout.rank++] = static_cast<uint8_t>(dimension);
  return layout;
}
// Returns {0, 2, ..., rank - 1, 1}; requires a `rank` of 2 or more.
inline heddle_layout channels_last(int rank) {
  heddle_layout layout = {};
  layout.rank = static_cast<uint8_t>(rank);
  for (int i = 1; i + 1 < rank; ++i) layout.order[i] = static_cast<uint8_t>(i + 1);
  layout.order[rank - 1] = 1;
  return layout;
}

// Computes the strides in elements, by dimension, of a dense view in its own layout; `strides` must have room for as many entries as the
// tensor has dimensions.
inline void strides_of(const heddle_tensor& tensor, int64_t* strides) {
  int64_t stride = 1;
  for (int i = tensor.rank - 1; i >= 0; --i) {
    const int dimension = tensor.layout.rank == tensor.rank ? tensor.layout.order[i] : i;
    strides[dimension] = stride;
    stride *= tensor.dims[dimension];
  }
}

}  // namespace plugin
}  // namespace heddle
