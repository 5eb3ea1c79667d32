// The loops of normalisations' gradients on contiguous f32, and the same in f64. Sums are made in four interleaved accumulators of f32, a
// stretch of 4096 elements at a time, and then in f64: one fixed order per instruction set level. In place is safe. Stateless; any thread.
//
// A normalised row is y = (x - mean) * inverse * scale + bias. With h = dy * scale, m = mean of h and c = mean of h * (x - mean), its
// gradient is
//
//   dx = inverse * (h - m) - inverse^3 * c * (x - mean)
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "isa.h"

namespace heddle::cpu {

// The level is close to the mean of dy * scale, and `offset` makes up for the difference: where most of dy cancels with its mean, no
// precision is lost.
template <class T>
struct GradientNumbers {
  T shift, gain, level, factor, slope, offset;
};

struct NormalizationGradientTable {
  // The sums of dy * scale and of dy * scale * (x - shift); scale holds `count` values, null: 1.
  void (*sums)(const float* x, const float* dy, const float* scale, int64_t count, float shift, double* sum, double* products);
  // dx = (dy * scale - level) * factor + (x - shift) * slope + offset; scale holds `count` values, null: all are `gain`.
  void (*apply)(const float* x, const float* dy, const float* scale, float* dx, int64_t count, const GradientNumbers<float>& numbers);
  // biases += dy, scales += dy * ((x - shift) * factor + offset), element by element.
  void (*add_row)(const float* x, const float* dy, int64_t count, float shift, float factor, float offset, double* scales, double* biases);
};
HEDDLE_DECLARE_ISA_TABLE(NormalizationGradientTable, normalization_gradients)

}  // namespace heddle::cpu
