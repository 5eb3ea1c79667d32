// Softmax, log-softmax and hardmax of f32: rows (elements contiguous) and columns (elements of one softmax a stride apart). In place is
// safe. NaN and +inf give NaN, as follows from exp and division. Stateless; any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "isa.h"

namespace heddle::cpu {

enum SoftmaxKind : uint8_t { softmax_plain, softmax_log, softmax_hard, softmax_kind_count };

constexpr int64_t softmax_columns = 128;  // at most this many columns in one call

struct SoftmaxTable {
  // `rows` rows of `count` elements, one after the other.
  void (*rows[softmax_kind_count])(const float* x, float* y, int64_t rows, int64_t count);
  // `scratch`: 2 * softmax_columns floats.
  void (*columns[softmax_kind_count])(const float* x, float* y, int64_t count, int64_t stride, int64_t columns, float* scratch);
};
HEDDLE_DECLARE_ISA_TABLE(SoftmaxTable, softmaxes)

}  // namespace heddle::cpu
