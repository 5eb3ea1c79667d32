// Helpers of kernels that add up floats: the type of the sums, and the dispatch by element type.
#pragma once

#include <type_traits>

#include "shared/dtype_dispatch.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

// Sums of 16-bit floats are f32, others have their own type.
template <class T>
using FloatSum = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Calls f(Tag<T>) for the element type of a float dtype and returns its result.
template <class F>
auto with_float(heddle_dtype dtype, F&& f) {
  switch (dtype) {
    case HEDDLE_F16:
      return f(Tag<f16>());
    case HEDDLE_BF16:
      return f(Tag<bf16>());
    case HEDDLE_F64:
      return f(Tag<double>());
    default:
      return f(Tag<float>());
  }
}

}  // namespace heddle::cpu
