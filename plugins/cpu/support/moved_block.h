// The loops that move elements without regard to their meaning, of one instruction set level each. Stateless; any thread.
#pragma once

#include <stdint.h>

#include "isa.h"

namespace heddle::cpu {

// Three nested dimensions of elements; strides are in bytes. Source and target do not overlap.
struct MovedBlock {
  struct Dimension {
    int64_t extent, source, target;
  };
  const char* source;
  char* target;
  Dimension plane, row, column;
};
using MoveFunction = void (*)(const MovedBlock& block);

// Functions by the logarithm of the width of an element: 1, 2, 4, 8 or 16 bytes.
struct MoveTable {
  static constexpr int widths = 5;
  MoveFunction copy[widths];       // columns are contiguous in both
  MoveFunction fill[widths];       // columns are contiguous in the target, and all the same element of the source
  MoveFunction transpose[widths];  // columns are contiguous in the target, rows in the source
  MoveFunction gather[widths];     // columns are contiguous in the target
  MoveFunction scatter[widths];    // any strides
  // Writes `count` copies of the element at `value`.
  void (*repeat[widths])(void* target, const void* value, int64_t count);
};
HEDDLE_DECLARE_ISA_TABLE(MoveTable, moves)

// The index in a MoveTable of a width of 1, 2, 4, 8 or 16 bytes.
static inline int width_index(int64_t width) {
  return __builtin_ctzll(static_cast<unsigned long long>(width));
}

}  // namespace heddle::cpu
