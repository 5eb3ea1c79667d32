// Helpers of the normalisation operators: row arithmetic in f32 (vectorised) or f64, and conversion of rows of other dtypes to it.
#pragma once

#include <cmath>
#include <string>

#include "normalization/normalization_rows.h"
#include "shared/onnx_dtype.h"
#include "support/cpu_api.h"
#include "vector/convert.h"

namespace heddle::cpu {

// The dtype in which rows of `dtype` are normalised.
inline heddle_dtype working_dtype(heddle_dtype dtype) {
  return dtype == HEDDLE_F64 ? HEDDLE_F64 : HEDDLE_F32;
}
// The same where stash_type (ONNX's number of a dtype) requires f64. Narrower ones are computed in f32, more precisely than required.
inline heddle_dtype working_dtype(heddle_dtype dtype, heddle_dtype stash) {
  return stash == HEDDLE_F64 ? HEDDLE_F64 : working_dtype(dtype);
}
// Reads the attribute stash_type, which is one of `allowed`. Errors: invalid.
inline Status read_stash_type(const Attributes& attributes, heddle_dtype_set allowed, heddle_dtype* stash) {
  const int64_t number = attributes.i("stash_type");
  *stash = dtype_from_onnx(number);
  if (*stash != HEDDLE_DTYPE_NONE && (allowed & HEDDLE_DTYPE_BIT(*stash))) return {};
  return invalid("stash_type is " + std::to_string(number) + ", expected " +
                 ((allowed & HEDDLE_DTYPE_BIT(HEDDLE_F64)) ? "1 (f32), 10 (f16), 11 (f64) or 16 (bf16)" : "1 (f32) or 16 (bf16)"));
}
// Calls f(float()) or f(double()) for a working dtype.
template <class F>
void with_working(heddle_dtype dtype, F&& f) {
  if (dtype == HEDDLE_F64)
    f(double());
  else
    f(float());
}

// Row functions of normalization_rows.h for both working types.
inline double row_sum(const float* x, int64_t n) {
  return isa_normalizations().sum(x, n);
}
inline double row_sum(const double* x, int64_t n) {
  double s = 0;
  for (int64_t i = 0; i < n; ++i) s += x[i];
  return s;
}
inline double row_squares(const float* x, int64_t n) {
  return isa_normalizations().sum_of_squares(x, n);
}
inline double row_squares(const double* x, int64_t n) {
  double s = 0;
  for (int64_t i = 0; i < n; ++i) s += x[i] * x[i];
  return s;
}
inline void row_centred(const float* x, int64_t n, float shift, double* sum, double* squares) {
  isa_normalizations().centred_sums(x, n, shift, sum, squares);
}
inline void row_centred(const double* x, int64_t n, double shift, double* sum, double* squares) {
  double s = 0, q = 0;
  for (int64_t i = 0; i < n; ++i) s += x[i] - shift, q += (x[i] - shift) * (x[i] - shift);
  *sum = s, *squares = q;
}
inline void row_apply(const float* x, float* y, int64_t n, float shift, float factor, float offset, const float* scale, const float* bias) {
  isa_normalizations().apply(x, y, n, shift, factor, offset, scale, bias);
}
inline void row_apply(const double* x, double* y, int64_t n, double shift, double factor, double offset, const double* scale,
                      const double* bias) {
  for (int64_t i = 0; i < n; ++i) y[i] = ((x[i] - shift) * factor + offset) * (scale ? scale[i] : 1) + (bias ? bias[i] : 0);
}
inline void row_affine(const float* x, float* y, int64_t n, float shift, float factor, float offset) {
  isa_normalizations().affine(x, y, n, shift, factor, offset);
}
inline void row_affine(const double* x, double* y, int64_t n, double shift, double factor, double offset) {
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - shift) * factor + offset;
}
inline void row_affine_each(const float* x, float* y, int64_t n, const float* shifts, const float* factors, const float* offsets) {
  isa_normalizations().affine_each(x, y, n, shifts, factors, offsets);
}
inline void row_affine_each(const double* x, double* y, int64_t n, const double* shifts, const double* factors, const double* offsets) {
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - shifts[i]) * factors[i] + offsets[i];
}
inline void row_sums_in_double(const float* x, int64_t n, double mean, double* sum, double* squares) {
  isa_normalizations().sums_in_double(x, n, mean, sum, squares);
}
inline void row_sums_in_double(const double* x, int64_t n, double mean, double* sum, double* squares) {
  for (int64_t i = 0; i < n; ++i) *sum += x[i] - mean, *squares += (x[i] - mean) * (x[i] - mean);
}
inline void row_affine_in_double(const float* x, float* y, int64_t n, double mean, double factor) {
  isa_normalizations().affine_in_double(x, y, n, mean, factor);
}
inline void row_affine_in_double(const double* x, double* y, int64_t n, double mean, double factor) {
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * factor;
}
inline void row_divide_each(const float* x, float* y, int64_t n, const float* divisors) {
  isa_normalizations().divide_each(x, y, n, divisors);
}
inline void row_divide_each(const double* x, double* y, int64_t n, const double* divisors) {
  for (int64_t i = 0; i < n; ++i) y[i] = divisors[i] == 0 ? 0 : x[i] / divisors[i];
}

// The mean is shift + rest. Elements are centred as (x - shift) - rest: near the mean the first difference is exact.
template <class T>
struct Moments {
  T shift = 0;
  double rest = 0, variance = 0;
  // If x has infinities the shift is the mean, and the rest is ignored.
  double mean() const { return static_cast<double>(shift) + (std::isfinite(shift) ? rest : 0); }
};
template <class T>
Moments<T> row_moments(const T* x, int64_t n) {
  const auto count = static_cast<double>(n);
  const T shift = static_cast<T>(row_sum(x, n) / count);
  double sum = 0, squares = 0;
  row_centred(x, n, shift, &sum, &squares);
  const double rest = sum / count, variance = squares / count - rest * rest;
  return {shift, rest, variance < 0 ? 0 : variance};
}

// Element `i` of a tensor's bytes.
inline const char* at(const heddle_tensor& tensor, int64_t i) {
  return static_cast<const char*>(tensor.data) + i * static_cast<int64_t>(byte_width(tensor.dtype));
}
inline char* at(heddle_tensor& tensor, int64_t i) {
  return static_cast<char*>(tensor.data) + i * static_cast<int64_t>(byte_width(tensor.dtype));
}

// `n` elements from `i` on as T: where they lie, or converted into `buffer`.
template <class T>
const T* as_working(const heddle_tensor& tensor, int64_t i, int64_t n, T* buffer) {
  if (tensor.dtype == dtype_of<T>::id) return reinterpret_cast<const T*>(at(tensor, i));
  convert(tensor.dtype, at(tensor, i), dtype_of<T>::id, buffer, n);
  return buffer;
}
// Returns where to write results; store_working then moves them to their final place.
template <class T>
T* target(heddle_tensor& tensor, int64_t i, T* buffer) {
  return tensor.dtype == dtype_of<T>::id ? reinterpret_cast<T*>(at(tensor, i)) : buffer;
}
template <class T>
void store_working(heddle_tensor& tensor, int64_t i, int64_t n, const T* values) {
  if (tensor.dtype != dtype_of<T>::id) convert(dtype_of<T>::id, values, tensor.dtype, at(tensor, i), n);
}

}  // namespace heddle::cpu
