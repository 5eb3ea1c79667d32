// The allowed distance from the exact result for an implementation that computes in the dtype itself, or in f32.
#pragma once

#include <cmath>

#include "conformance/reference.h"

namespace heddle::conformance {

// Returns the error of n roundings in units of the last place, each at most half a unit: they add up like a random walk, for which sqrt(n)
// is about 3.5 standard deviations.
inline Number walk(size_t n) {
  return std::sqrt(static_cast<Number>(n));
}

// Returns the scale of a value that is computed in f32, or a wider dtype, and then rounded once: terms of 16-bit floats have errors of f32.
inline Number once_rounded(DType dtype, Number scale) {
  return dtype == DType::f16 ? std::ldexp(scale, 11 - 24) : dtype == DType::bf16 ? std::ldexp(scale, 8 - 24) : scale;
}

}  // namespace heddle::conformance
