// The loops of normalisations on contiguous f32. Moments are taken in two passes: first the sum, then about the mean that it gives, rounded
// to f32. The second pass finds the error of that mean (from the rounding and the first sum), so that rows far from zero lose nothing. In
// place is safe. Stateless; any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "isa.h"

namespace heddle::cpu {

struct NormalizationTable {
  // The sum of x, and of x^2.
  double (*sum)(const float* x, int64_t count);
  double (*sum_of_squares)(const float* x, int64_t count);
  // The sums of x - shift and of (x - shift)^2.
  void (*centred_sums)(const float* x, int64_t count, float shift, double* sum, double* squares);
  // y = ((x - shift) * factor + offset) * scale + bias; scale and bias hold `count` values, null: 1 and 0.
  void (*apply)(const float* x, float* y, int64_t count, float shift, float factor, float offset, const float* scale, const float* bias);
  // y = (x - shift) * factor + offset, and y = x * factor + offset with one of each per element.
  void (*affine)(const float* x, float* y, int64_t count, float shift, float factor, float offset);
  void (*affine_each)(const float* x, float* y, int64_t count, const float* shifts, const float* factors, const float* offsets);
  // y = x / divisor, one per element; 0 where the divisor is 0.
  void (*divide_each)(const float* x, float* y, int64_t count, const float* divisors);
  // y = (x - mean) * factor in f64, rounded once.
  void (*affine_in_double)(const float* x, float* y, int64_t count, double mean, double factor);
  // Adds the sums of x - mean and of its squares, in f64.
  void (*sums_in_double)(const float* x, int64_t count, double mean, double* sum, double* squares);
  // y = x / (bias + alpha * sums)^beta
  void (*local_response)(const float* x, const float* sums, float* y, int64_t count, float bias, float alpha, float beta);
  // sums += x^2
  void (*add_squares)(const float* x, float* sums, int64_t count);
};
HEDDLE_DECLARE_ISA_TABLE(NormalizationTable, normalizations)

}  // namespace heddle::cpu
