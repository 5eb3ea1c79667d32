// Strides of dense tensors, and the layouts that an operator offers. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/operator_api.h"

namespace heddle::operators {

// Row-major strides, in elements.
inline void dense_strides(Dims dims, int64_t* strides) {
  int64_t stride = 1;
  for (int i = dims.rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= dims.data[i];
  }
}
// The choices of an operator whose ports can all be row-major or all channels-last: both for rank 3 to 5 and up to HEDDLE_FORMAT_PORTS
// ports, else row-major alone.
std::vector<heddle_format> uniform_formats(const CreateContext& context, uint32_t inputs, uint32_t outputs);

}  // namespace heddle::operators
