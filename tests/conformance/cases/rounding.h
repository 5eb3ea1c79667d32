// How far from the exact result an implementation may be that computes in the dtype itself, or in f32.
#pragma once

#include <cmath>

#include "conformance/reference.h"

namespace heddle::conformance {

// What n roundings come to in units of the last place, each at most half a one: they add up as a random walk does, of which sqrt(n) is
// some 3.5 standard deviations.
inline Number walk(size_t n) {
  return std::sqrt(static_cast<Number>(n));
}

// The scale of what is computed in f32, or something wider, and then rounded once: terms of 16-bit floats have errors of f32.
inline Number once_rounded(DType dtype, Number scale) {
  return dtype == DType::f16 ? std::ldexp(scale, 11 - 24) : dtype == DType::bf16 ? std::ldexp(scale, 8 - 24) : scale;
}

}  // namespace heddle::conformance
