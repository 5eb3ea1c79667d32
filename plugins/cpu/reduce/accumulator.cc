#include "reduce/accumulator.h"

#include <limits>

#include "shared/dtype_dispatch.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

// The range of a dtype, for the extremum of no elements.
template <class T>
Accumulator extremum(Fold fold, T Accumulator::*member) {
  Accumulator a = {};
  if (fold == fold_max)
    a.*member = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  else
    a.*member = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  return a;
}
// Bounds of the integers that are folded in int64_t.
int64_t lowest_of(heddle_dtype dtype) {
  if (dtype == HEDDLE_I64) return std::numeric_limits<int64_t>::lowest();
  const int bits = 8 * static_cast<int>(byte_width(dtype));
  return dtype == HEDDLE_I8 || dtype == HEDDLE_I16 || dtype == HEDDLE_I32 ? -(int64_t{1} << (bits - 1)) : 0;
}
int64_t highest_of(heddle_dtype dtype) {
  if (dtype == HEDDLE_I64) return std::numeric_limits<int64_t>::max();
  if (dtype == HEDDLE_BOOL) return 1;
  const int bits = 8 * static_cast<int>(byte_width(dtype));
  return (int64_t{1} << (lowest_of(dtype) < 0 ? bits - 1 : bits)) - 1;
}

}  // namespace

FoldType fold_type(heddle_dtype folded) {
  switch (folded) {
    case HEDDLE_F32:
      return fold_f32;
    case HEDDLE_F64:
      return fold_f64;
    case HEDDLE_I64:
      return fold_i64;
    case HEDDLE_U64:
      return fold_u64;
    case HEDDLE_F16:
      return fold_f16;
    case HEDDLE_BF16:
      return fold_bf16;
    default:
      return fold_i32;
  }
}

heddle_dtype accumulator_dtype(heddle_dtype folded) {
  if (folded == HEDDLE_F32 || folded == HEDDLE_F64 || folded == HEDDLE_F16 || folded == HEDDLE_BF16) return HEDDLE_F64;
  return folded == HEDDLE_U64 ? HEDDLE_U64 : HEDDLE_I64;
}

Accumulator start_of(Fold fold, heddle_dtype dtype) {
  const heddle_dtype accumulator = accumulator_dtype(compute_dtype(dtype));
  Accumulator a = {};
  if (fold == fold_product) {
    if (accumulator == HEDDLE_F64)
      a.f = 1;
    else
      a.i = 1;
  }
  if (fold != fold_max && fold != fold_min) return a;
  if (accumulator == HEDDLE_F64) return extremum(fold, &Accumulator::f);
  if (accumulator == HEDDLE_U64) return extremum(fold, &Accumulator::u);
  a.i = fold == fold_max ? lowest_of(dtype) : highest_of(dtype);
  return a;
}

}  // namespace heddle::cpu
