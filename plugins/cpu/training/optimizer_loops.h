// The loops of optimizers on contiguous f32 and f64. Every element is computed alone and in the same way wherever it lies, so ranges may be
// cut anywhere; `next` may be the memory that is read. Stateless; any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "isa.h"

namespace heddle::cpu {

// Below, g is the gradient plus decay * w.
enum UpdateRule : uint8_t {
  update_plain,     // w -= rate * g
  update_momentum,  // v = momentum * v + g, w -= rate * v; with nesterov w -= rate * (g + momentum * v)
  update_adagrad,   // s += g^2, w -= rate * g / (sqrt(s) + epsilon)
  update_rms_prop,  // s = keep * s + add * g^2, and likewise
  update_adam,      // m += (1 - momentum) * (g - m), s as above, w = w * shrink - rate * m / (sqrt(s) / root + epsilon)
  update_rule_count
};
constexpr int max_update_states = 2;

template <class T>
struct UpdateNumbers {
  T rate, decay, shrink, momentum, towards /* 1 - momentum */, keep, add, root, epsilon;
  bool nesterov;
};
template <class T>
using UpdateLoop = void (*)(const T* w, const T* const* states, const T* gradient, T* next_w, T* const* next_states, int64_t count,
                            const UpdateNumbers<T>& numbers);

// Rows of a table, none of them there twice, and the gradient of each.
template <class T>
struct RowStretch {
  static constexpr int64_t max_rows = 16;
  int64_t count = 0;
  int64_t rows[max_rows];
  const T* gradients[max_rows];
};
// The rows are updated in place. With each of them a row of `next` is prefetched: processors drop some of many prefetches at once.
template <class T>
struct UpdatedRows {
  T* w;
  T* states[max_update_states];
  int64_t length;
  const RowStretch<T>&now, &next;
};
template <class T>
using UpdateRowsLoop = void (*)(const UpdatedRows<T>& rows, const UpdateNumbers<T>& numbers);

struct OptimizerTable {
  UpdateLoop<float> f32[update_rule_count];
  UpdateLoop<double> f64[update_rule_count];
  UpdateRowsLoop<float> f32_rows[update_rule_count];
  UpdateRowsLoop<double> f64_rows[update_rule_count];
  // Returns the sum of g^2.
  double (*f32_squares)(const float* w, const float* gradient, int64_t count, float decay);
  double (*f64_squares)(const double* w, const double* gradient, int64_t count, double decay);
  // sum = a + b, of which `sum` may be one.
  void (*f32_add)(const float* a, const float* b, float* sum, int64_t count);
  void (*f64_add)(const double* a, const double* b, double* sum, int64_t count);
  // sum = a + factor * b, each rounded; a null `a` means zeros.
  void (*f32_add_scaled)(const float* a, float factor, const float* b, float* sum, int64_t count);
  void (*f64_add_scaled)(const double* a, double factor, const double* b, double* sum, int64_t count);
};
HEDDLE_DECLARE_ISA_TABLE(OptimizerTable, optimizers)

}  // namespace heddle::cpu
