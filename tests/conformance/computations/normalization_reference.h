// Functions that the references of normalisations share: mean and variance of a set of numbers, and a number normalised by them.
#pragma once

#include <cmath>
#include <vector>

#include "conformance/cases/rounding.h"

namespace heddle::conformance {

struct Moments {
  Number mean = 0, variance = 0;        // of the population
  Number magnitude = 0, deviation = 0;  // the means of |x| and of |x - mean|
  Number error = 1;                     // error of the sums, in units of the last place: f64 has nothing wider to add in
};

inline Moments moments_of(const std::vector<Number>& x, DType dtype) {
  Moments m;
  const auto count = static_cast<Number>(x.size());
  for (const Number n : x) {
    m.mean += n / count;
    m.magnitude += std::fabs(n) / count;
  }
  for (const Number n : x) {
    m.variance += (n - m.mean) * (n - m.mean) / count;
    m.deviation += std::fabs(n - m.mean) / count;
  }
  if (dtype == DType::f64) m.error = walk(x.size());
  return m;
}

// A number, and the magnitude that its error is relative to.
struct Normalized {
  Number value = 0, scale = 0;
};
// `terms`: the magnitude of the terms of a mean that was summed in the dtype itself; 0: it was summed in a wider one.
inline Normalized normalized(Number x, const Moments& m, Number divisor, Number terms) {
  const Number value = (x - m.mean) / divisor;
  return {value, (std::fabs(value) + terms / divisor) * m.error};
}
// Computes in f32 or f64 from differences to a number near the mean, which lose no digits of numbers that are close to each other. 16-bit
// floats are summed in f32.
inline Normalized centred(Number x, const Moments& m, Number divisor, DType dtype) {
  return normalized(x, m, divisor, dtype == DType::f32 || dtype == DType::f64 ? m.deviation : 0);
}
inline Normalized scaled(const Normalized& n, Number scale, Number bias) {
  return {n.value * scale + bias, n.scale * std::fabs(scale) + std::fabs(bias)};
}

inline void store(Numbers& y, size_t i, const Normalized& n) {
  y.values[i] = n.value;
  y.scale[i] = once_rounded(y.dtype, n.scale);
}
inline Numbers zeros_with_scale(DType dtype, const Shape& shape) {
  Numbers y = zeros(dtype, shape);
  y.scale = y.values;
  return y;
}

}  // namespace heddle::conformance
