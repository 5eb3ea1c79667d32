// The loops of normalisations' gradients for both working types.
#pragma once

#include "normalization/normalization_gradient.h"

namespace heddle::cpu {

inline void gradient_sums(const float* x, const float* dy, const float* scale, int64_t n, float shift, double* sum, double* products) {
  isa_normalization_gradients().sums(x, dy, scale, n, shift, sum, products);
}
inline void gradient_sums(const double* x, const double* dy, const double* scale, int64_t n, double shift, double* sum, double* products) {
  double s = 0, p = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double h = scale ? dy[i] * scale[i] : dy[i];
    s += h, p += h * (x[i] - shift);
  }
  *sum = s, *products = p;
}
inline void gradient_apply(const float* x, const float* dy, const float* scale, float* dx, int64_t n,
                           const GradientNumbers<float>& numbers) {
  isa_normalization_gradients().apply(x, dy, scale, dx, n, numbers);
}
inline void gradient_apply(const double* x, const double* dy, const double* scale, double* dx, int64_t n,
                           const GradientNumbers<double>& numbers) {
  const GradientNumbers<double> k = numbers;
  for (int64_t i = 0; i < n; ++i)
    dx[i] = (dy[i] * (scale ? scale[i] : k.gain) - k.level) * k.factor + ((x[i] - k.shift) * k.slope + k.offset);
}
// Splits the mean in two parts: the level, and a remainder that goes into the offset.
template <class T>
GradientNumbers<T> gradient_numbers(T shift, double gain, double mean, double factor, double slope, double offset) {
  const T level = static_cast<T>(mean);
  return {shift,
          static_cast<T>(gain),
          level,
          static_cast<T>(factor),
          static_cast<T>(slope),
          static_cast<T>(offset - (mean - static_cast<double>(level)) * factor)};
}
inline void gradient_add_row(const float* x, const float* dy, int64_t n, float shift, float factor, float offset, double* scales,
                             double* biases) {
  isa_normalization_gradients().add_row(x, dy, n, shift, factor, offset, scales, biases);
}
inline void gradient_add_row(const double* x, const double* dy, int64_t n, double shift, double factor, double offset, double* scales,
                             double* biases) {
  for (int64_t i = 0; i < n; ++i) scales[i] += dy[i] * ((x[i] - shift) * factor + offset), biases[i] += dy[i];
}

}  // namespace heddle::cpu
