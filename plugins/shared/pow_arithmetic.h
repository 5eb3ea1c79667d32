// The dtype in which Pow computes, where base and exponent differ in dtype.
#pragma once

#include "shared/operator_api.h"

namespace heddle::operators {

// The result has the base's dtype. Integers and floats together are computed in f64.
inline heddle_dtype pow_arithmetic(heddle_dtype base, heddle_dtype exponent) {
  const auto is_float = [](heddle_dtype d) { return (plugin::float_dtypes & HEDDLE_DTYPE_BIT(d)) != 0; };
  if (base == exponent) return base;
  if (is_float(base)) return exponent == HEDDLE_F64 ? HEDDLE_F64 : base;
  return is_float(exponent) ? HEDDLE_F64 : HEDDLE_I64;
}

}  // namespace heddle::operators
