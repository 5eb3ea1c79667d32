// The scratch of one executing thread while it runs a pointwise program; offsets in bytes, everything 64-byte aligned.
#pragma once

#include <cstdint>

#include "pointwise/pointwise_instructions.h"

namespace heddle::cpu {

// A register holds block_bytes: several stay in the first level cache together with the operands that stream through.
constexpr int64_t block_bytes = 2048;

struct FrameLayout {
  FrameLayout(size_t slot_count, size_t register_count, size_t input_count) {
    const auto take = [&](uint64_t size) {
      const uint64_t at = bytes;
      bytes += (size + instruction_alignment - 1) / instruction_alignment * instruction_alignment;
      return at;
    };
    slots = take(slot_count * sizeof(InstructionOperand));
    cursors = take(input_count * sizeof(const char*));
    registers = take(register_count * block_bytes);
    inputs = take(input_count * block_bytes);
    staging = take(2 * block_bytes);
    output = take(block_bytes);
  }
  uint64_t slots = 0;      // InstructionOperand each
  uint64_t cursors = 0;    // the begin of the current row of each input
  uint64_t registers = 0;  // block_bytes each
  uint64_t inputs = 0;     // a block of converted or gathered values each
  uint64_t staging = 0;    // gathered values before conversion: as many elements as a block, up to 8 bytes each
  uint64_t output = 0;     // a block of results before conversion
  uint64_t bytes = 0;
};

}  // namespace heddle::cpu
