// Loops of recurrent layers, compiled once per instruction set level: products of rows with panels of weights (recurrent_panels.h) and
// activations of rows. Pure; any thread.
#pragma once

#include <stdint.h>

#include "isa.h"

namespace heddle::cpu {

// The loops for one type of element, float or double.
template <class T>
struct RecurrentLoops {
  int64_t panel_columns;  // as many elements as some vectors have
  // y[r][y_first ..] = or += sum over k of a[r][a_first + k] * panel[k], for `panel_columns` elements of each of `rows` rows. One sum over
  // k in ascending order for each element, so that its bits do not depend on the rows beside it.
  void (*multiply)(const T* const* a, int64_t a_first, T* const* y, int64_t y_first, int64_t rows, int64_t depth, const T* panel,
                   bool adds);
  // In place; `count` is a multiple of `panel_columns`. Null: this type has no such loop.
  void (*sigmoid)(T* values, int64_t count);
  void (*tanh)(T* values, int64_t count);
  // The same, and gives the derivatives at the old content of `values`.
  void (*sigmoid_slopes)(T* values, T* slopes, int64_t count);
  void (*tanh_slopes)(T* values, T* slopes, int64_t count);
};
struct RecurrentTable {
  RecurrentLoops<float> of_float;
  RecurrentLoops<double> of_double;
};
HEDDLE_DECLARE_ISA_TABLE(RecurrentTable, recurrent_table)

}  // namespace heddle::cpu
