// Writes the source of operators that read a row as a whole and then write its elements (text/rows.cuh): softmaxes and normalisations.
#pragma once

#include <string>

#include "generate/launch_plan.h"
#include "generate/pointwise/fused_expression.h"
#include "generate/reduce/reduce_source.h"
#include "heddle/op.h"

namespace heddle::cuda {

enum class RowKind : uint8_t {
  softmax,
  log_softmax,
  hardmax,
  moments,         // (x - mean) / sqrt(variance + epsilon)
  moments_beside,  // (x - mean) / (sqrt(variance) + epsilon)
  squares,         // x / sqrt(mean of squares + epsilon)
  norm1,
  norm2,
};

// Selects the element of a parameter (a scale, a bias) for an element of a row.
enum class PerRow : uint8_t {
  none,
  one,       // the same for all
  position,  // by position
  repeated,  // by position, repeatedly
  channel,   // by channel: rows are groups of neighbouring channels, in turn
};

struct RowShape {
  RowKind kind = RowKind::softmax;
  heddle_dtype input = HEDDLE_DTYPE_NONE, output = HEDDLE_DTYPE_NONE;
  heddle_dtype working = HEDDLE_DTYPE_NONE;  // f64: floats are computed in it
  // Inputs 1 and 2 of the node.
  PerRow scale = PerRow::none, bias = PerRow::none;
  heddle_dtype scale_dtype = HEDDLE_DTYPE_NONE, bias_dtype = HEDDLE_DTYPE_NONE;
  // Outputs 1 and 2 of the node: mean and inverse deviation of each row. NONE: it is not requested.
  heddle_dtype mean = HEDDLE_DTYPE_NONE, inverse = HEDDLE_DTYPE_NONE;
  FusedExpression prologue, epilogue;
  uint32_t result = 0;  // the output of the node that receives the elements

  // The geometry. Rows are held in registers by one or more threads, or elements are computed from statistics of their rows.
  bool held = true;
  bool strided = false;     // held: elements of a row are strided
  bool one_channel = true;  // packs lie in one channel
  bool wide = false;
  int width = 1, lanes = 32, threads = 128;
  int packs = 1;   // held: of a thread
  int groups = 1;  // not held: of dimensions
};

struct RowNumbers {
  int64_t rows = 0, columns = 0, inner = 1, count = 0;
  double epsilon = 0;
  int64_t scale_repeat = 1, bias_repeat = 1;      // elements of repeated parameters
  int64_t groups = 1, channels = 1, spatial = 1;  // for parameters by channel; channels of one group
  int64_t extents[HEDDLE_MAX_RANK] = {}, row_strides[HEDDLE_MAX_RANK] = {}, position_strides[HEDDLE_MAX_RANK] = {};
  uint64_t known = 0;  // offset in scratch
};

// Returns the kind of reduction that computes the statistics of a row that is not held.
ReduceKind known_of(RowKind kind);

// Appends an entry `name`. Errors: those of fused expressions.
plugin::Status row_source(const RowShape& shape, const std::string& name, KernelSource* source);
void row_parameters(const RowShape& shape, const RowNumbers& numbers, ParameterWriter& writer);

}  // namespace heddle::cuda
