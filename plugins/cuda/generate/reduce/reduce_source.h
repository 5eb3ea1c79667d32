// The source of reductions (text/reduce.cuh): what is done to an element before it is folded, how two folded values become one, and what is
// left to do with the result, around which fused elementwise operators may stand.
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
  // With a shift for each output, which an earlier reduction left:
  log_sum_exp,
  // What rows.cuh knows of a row, for operators that need it before they write elements:
  mean_shift,
  largest_shift,
  finite_shift,  // the largest, or 0 where that is infinite or NaN
  softened,
  softened_log,
  moments,
  moments_beside,  // epsilon beside the deviation, not in it
  inverse_root,    // 1 / sqrt(mean of squares + epsilon)
  norm1,
  norm2,
  first_largest,
};

// How the elements of an output are taken. A function of shapes alone, as the order of sums is.
struct ReduceGeometry {
  bool columns = false;       // neighbouring elements belong to neighbouring outputs
  bool split = false;         // each output in parts
  bool linear = true;         // outputs are numbered as they are stored
  bool wide = false;          // positions need 64 bits
  int width = 1;              // elements at once
  int lanes = 32;             // threads beside each other, a power of two
  int threads = 256;          // of a block
  int kept = 1, reduced = 1;  // groups of dimensions, at least one of each
};

// What the source of a reduction depends on.
struct ReduceShape {
  ReduceKind kind = ReduceKind::sum;
  bool last_index = false;  // arg_max, arg_min: of equal elements the last
  double exponent = 2;      // power
  heddle_dtype input = HEDDLE_DTYPE_NONE;
  heddle_dtype output = HEDDLE_DTYPE_NONE;   // of results; kinds for rows give what text/folds.cuh has
  heddle_dtype working = HEDDLE_DTYPE_NONE;  // f32 or f64: that floats are computed in
  FusedExpression prologue, epilogue;        // of elements, and of results of the output's dtype
  ReduceGeometry geometry;
};

// What lies where, beside the numbers that the geometry needs.
struct ReduceNumbers {
  int64_t outputs = 0, folded = 0, parts = 1, part = 0, row = 1, divisor = 1;
  double epsilon = 0;
  int64_t kept_extents[HEDDLE_MAX_RANK] = {}, kept_strides[HEDDLE_MAX_RANK] = {}, kept_places[HEDDLE_MAX_RANK] = {};
  int64_t reduced_extents[HEDDLE_MAX_RANK] = {}, reduced_strides[HEDDLE_MAX_RANK] = {};
  uint32_t input = 0;  // of the node
  Address result = {Address::output, 0, 0, 0};
  uint64_t shifts = 0, partial = 0;  // offsets of scratch
};

// Whether an earlier reduction has to leave a shift for each output.
bool needs_shift(ReduceKind kind);
// The kind of that reduction.
ReduceKind shift_of(ReduceKind kind);
// Whether floats alone have it.
bool of_floats_only(ReduceKind kind);
// Whether what comes out is one of the structs of text/folds.cuh, or a shift, rather than elements of a tensor.
bool is_for_rows(ReduceKind kind);

// Bytes at most of what is folded into, of what is known of a row, and of a shift.
inline constexpr int64_t max_folded_bytes = 16;
inline constexpr int64_t max_known_bytes = 24;
inline constexpr int64_t max_shift_bytes = 16;

// What floats are summed in where they are computed in `computed` (text/folds.cuh): f32 in float with what each addition loses; 16-bit
// floats, whose results have few digits, and f64 plainly.
std::string sum_type(heddle_dtype input, const std::string& computed);

// The dtype whose compute_type() elements are computed in.
heddle_dtype computed_in(const ReduceShape& shape);

// Appends an entry `name`, and behind a split one "`name`_parts".
// Errors: a kind that the dtype has not; those of fused expressions.
plugin::Status reduce_source(const ReduceShape& shape, const std::string& name, KernelSource* source);
// Their parameters.
void reduce_parameters(const ReduceShape& shape, const ReduceNumbers& numbers, ParameterWriter& writer);

}  // namespace heddle::cuda
