// The loops of lookups in tables, of one instruction set level each: sums of the rows of a bag, and products of two rows. Stateless; any
// thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "heddle/abi.h"
#include "isa.h"

namespace heddle::cpu {

// A stretch of the lookups of one bag, in some columns of the table.
struct BagStretch {
  const void* table;   // the first of the columns in the first row
  int64_t row_length;  // elements from one row to the next
  int64_t rows;
  int64_t columns;
  const void* indices;  // of the stretch
  bool wide_indices;    // i64, else i32
  int64_t count;
  int64_t readable;     // indices from the first of the stretch on that may be read, so that rows are fetched before their turn
  const void* weights;  // one for each lookup, in the dtype of the sums; null: all are 1
};

// Writes the sum of the rows to `sums`, or adds it to their content; in f32 for 16-bit floats, otherwise in their own type. Rows are added
// in the order of their indices. Returns the number of lookups before the first index outside [0, rows), which is `count` if all are
// inside.
using BagSum = int64_t (*)(const BagStretch& bag, void* sums, bool adds);
// Returns the sum of a[i] * b[i], added up in the same type.
using RowProduct = double (*)(const void* a, const void* b, int64_t count);

// Functions by dtype; null: the dtype is no float.
struct BagTable {
  BagSum sum[HEDDLE_DTYPE_COUNT];
  RowProduct product[HEDDLE_DTYPE_COUNT];
};
HEDDLE_DECLARE_ISA_TABLE(BagTable, bags)

}  // namespace heddle::cpu
