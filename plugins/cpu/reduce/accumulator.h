// The accumulators of reductions: doubles or 64-bit integers, whatever the dtype of the input. Pure.
#pragma once

#include <cstdint>

#include "reduce/reduce_rows.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

// All accumulators are 8 bytes.
union Accumulator {
  double f;
  int64_t i;
  uint64_t u;
};

// Returns the loops that fold a dtype, which is f16, bf16 or given by compute_dtype(), and the dtype of their accumulators.
FoldType fold_type(heddle_dtype folded);
heddle_dtype accumulator_dtype(heddle_dtype folded);
// Returns the fold of no elements: 0, 1, or the end of the range of `dtype`, which is the input's.
Accumulator start_of(Fold fold, heddle_dtype dtype);

}  // namespace heddle::cpu
