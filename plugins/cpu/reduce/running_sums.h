// Running sums of one instruction set level: CumSum. Stateless; any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "heddle/abi.h"
#include "isa.h"

namespace heddle::cpu {

// Lines of `length` elements, each of which gets the sum of those before it in its line, and of itself unless `exclusive`. y may be x.
// Distances are in elements; that of the elements of a line is negative where it is walked from its end.
struct RunningSums {
  const void* x;
  void* y;
  int64_t length, step;
  int64_t lines, distance;  // lines are next to each other, or the elements of a line are (step 1 or -1)
  bool exclusive;
};

// Adds up in the type of the elements, integers without their sign; `sums` holds one number for each line, and is continued.
struct RunningSumTable {
  void (*add_up[HEDDLE_DTYPE_COUNT])(const RunningSums& lines, void* sums);  // null: 16-bit floats
};
HEDDLE_DECLARE_ISA_TABLE(RunningSumTable, running_sums)

}  // namespace heddle::cpu
