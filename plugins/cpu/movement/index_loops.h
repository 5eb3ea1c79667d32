// Loops of Range and GatherElements of one instruction set level. Stateless; any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "heddle/abi.h"
#include "isa.h"

namespace heddle::cpu {

// A row of GatherElements: element c is from[index * stride + c * step], where negative indices count from the end of `bound`.
struct GatheredRow {
  const void* from;
  const void* indices;
  void* to;
  int64_t count, bound, stride, step;
};

struct IndexTable {
  // Functions by the logarithm of the width of an element (1, 2, 4, 8 bytes), then by that of an index (4, 8 bytes). They return the number
  // of elements before the first index outside, which is `count` if all are inside.
  int64_t (*gather[4][2])(const GatheredRow& row);
  // y[i - first] = start + i * step for i in [first, last): floats round twice, integers wrap. Null: Range has no such dtype.
  void (*count_up[HEDDLE_DTYPE_COUNT])(const void* start, const void* step, int64_t first, int64_t last, void* y);
};
HEDDLE_DECLARE_ISA_TABLE(IndexTable, index_loops)

}  // namespace heddle::cpu
