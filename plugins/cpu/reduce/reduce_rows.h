// The loops of reductions: contiguous elements folded into one accumulator (row), or rows element by element into many (columns).
//
// Accumulators are double for floats, int64_t for signed integers, uint64_t for u64. Orders of summation are fixed functions of the count.
// sum_of_exp subtracts `shift` (one value for a row, one per column). Stateless; any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "isa.h"

namespace heddle::cpu {

enum Fold : uint8_t { fold_sum, fold_abs, fold_square, fold_product, fold_max, fold_min, fold_exp, fold_count };
enum FoldType : uint8_t { fold_f32, fold_f64, fold_i32, fold_i64, fold_u64, fold_f16, fold_bf16, fold_type_count };

struct FoldFunctions {
  void (*row)(const void* x, int64_t count, const void* shift, void* accumulator);
  // `rows` rows of `count` elements, `stride` elements apart, in their order.
  void (*columns)(const void* x, int64_t rows, int64_t stride, int64_t count, const void* shift, void* accumulators);
};
struct FoldTable {
  FoldFunctions functions[fold_type_count][fold_count];  // null: sums of exponentials of integers
};
HEDDLE_DECLARE_ISA_TABLE(FoldTable, folds)

}  // namespace heddle::cpu
