// Writes the source of reductions (text/reduce.cuh): how an element is transformed before it is folded, how two folded values are combined,
// and how the result is finished. Fused elementwise operators may come before and after.
#pragma once

#include <string>

#include "generate/launch_plan.h"
#include "generate/pointwise/fused_expression.h"
#include "heddle/op.h"

namespace heddle::cuda {

enum class ReduceKind : uint8_t {
  sum,
  mean,  // divides by Parameters::divisor
  max,
  min,
  product,
  l1,
  l2,
  sum_square,
  log_sum,
  power,  // (sum |x|^p)^(1/p)
  arg_max,
  arg_min,
  // These use a shift for each output, which an earlier reduction computed:
  log_sum_exp,
  // These give statistics of a row (rows.cuh), for operators that need them before they write elements:
  mean_shift,
  largest_shift,
  finite_shift,  // the largest, or 0 where that is infinite or NaN
  softened,
  softened_log,
  moments,
  moments_beside,  // epsilon is added to the deviation, not to the variance
  inverse_root,    // 1 / sqrt(mean of squares + epsilon)
  norm1,
  norm2,
  first_largest,
};

// How the elements of an output are divided. It is a function of shapes alone, and so is the order of sums.
struct ReduceGeometry {
  bool columns = false;       // neighbouring elements belong to neighbouring outputs
  bool split = false;         // each output in parts
  bool linear = true;         // outputs are numbered as they are stored
  bool wide = false;          // positions need 64 bits
  int width = 1;              // elements read at once
  int lanes = 32;             // adjacent threads, a power of two
  int threads = 256;          // in a block
  int kept = 1, reduced = 1;  // groups of dimensions, at least one of each
};

// The properties that the source of a reduction depends on.
struct ReduceShape {
  ReduceKind kind = ReduceKind::sum;
  bool last_index = false;  // arg_max, arg_min: the last of equal elements
  double exponent = 2;      // for power
  heddle_dtype input = HEDDLE_DTYPE_NONE;
  heddle_dtype output = HEDDLE_DTYPE_NONE;   // dtype of results; kinds for rows give structs of text/folds.cuh
  heddle_dtype working = HEDDLE_DTYPE_NONE;  // f32 or f64: in which floats are computed
  FusedExpression prologue, epilogue;        // applied to elements, and to results of the output's dtype
  ReduceGeometry geometry;
};

// The places of operands and results, and the numbers that the geometry needs.
struct ReduceNumbers {
  int64_t outputs = 0, folded = 0, parts = 1, part = 0, row = 1, divisor = 1;
  double epsilon = 0;
  int64_t kept_extents[HEDDLE_MAX_RANK] = {}, kept_strides[HEDDLE_MAX_RANK] = {}, kept_places[HEDDLE_MAX_RANK] = {};
  int64_t reduced_extents[HEDDLE_MAX_RANK] = {}, reduced_strides[HEDDLE_MAX_RANK] = {};
  uint32_t input = 0;  // of the node
  Address result = {Address::output, 0, 0, 0};
  uint64_t shifts = 0, partial = 0;  // offsets in scratch
};

// Returns true if an earlier reduction must compute a shift for each output.
bool needs_shift(ReduceKind kind);
// Returns the kind of that reduction.
ReduceKind shift_of(ReduceKind kind);
// Returns true if only floats have the kind.
bool of_floats_only(ReduceKind kind);
// Returns true if the result is one of the structs of text/folds.cuh, or a shift, rather than elements of a tensor.
bool is_for_rows(ReduceKind kind);

// The largest size in bytes of a folded value, of the statistics of a row, and of a shift.
inline constexpr int64_t max_folded_bytes = 16;
inline constexpr int64_t max_known_bytes = 24;
inline constexpr int64_t max_shift_bytes = 16;

// Returns the type in which floats are summed that are computed in `computed` (text/folds.cuh): f32 in float with the loss of each
// addition; 16-bit floats, whose results have few digits, and f64 plainly.
std::string sum_type(heddle_dtype input, const std::string& computed);

// Returns the dtype whose compute_type() elements are computed in.
heddle_dtype computed_in(const ReduceShape& shape);

// Appends an entry `name` and, if it is split, "`name`_parts" after it. Errors: a kind that the dtype does not have; those of fused
// expressions.
plugin::Status reduce_source(const ReduceShape& shape, const std::string& name, KernelSource* source);
// Writes the parameters of these entries.
void reduce_parameters(const ReduceShape& shape, const ReduceNumbers& numbers, ParameterWriter& writer);

}  // namespace heddle::cuda
