// Products of integer matrices whose columns are contiguous, by vectors. Arithmetic wraps, so signed and unsigned integers share loops.
// Stateless; any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "isa.h"

namespace heddle::cpu {

// Adds to `rows` rows of y the products of as many rows of a with b, over `depth` of its rows. Strides in elements.
template <class U>
struct IntegerRows {
  const U* a;
  const U* b;
  U* y;
  int64_t rows, columns, depth;
  int64_t a_row, a_column, b_row, y_row;
};
struct IntegerProducts {
  void (*add_32)(const IntegerRows<uint32_t>& product);
  void (*add_64)(const IntegerRows<uint64_t>& product);
};
HEDDLE_DECLARE_ISA_TABLE(IntegerProducts, integer_products)

}  // namespace heddle::cpu
