// The vectorised loops of pointwise programs: one function per opcode and compute type, one table per instruction set level.
//
// A block is `bytes` bytes of whole vectors (a multiple of instruction_alignment, so that no loop has a remainder). Operands advance by
// `step` = 1, or stay at one vector (`step` = 0) that holds a scalar in every lane. Blocks may be unaligned. The output may be the
// memory of an operand that advances: every vector is read before it is written. Stateless; any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "isa.h"

namespace heddle::cpu {

// The arithmetic of a program. Narrower types are computed in one of these: f16 and bf16 in f32; i8, i16 and u16 in i32, as u8 and bool are
// where a byte does not suffice; u32 in i64.
enum class Compute : uint8_t { f32, f64, i32, i64, u64, u8 };
constexpr int compute_count = 6;

constexpr int64_t instruction_alignment = 64;

struct InstructionOperand {
  const void* data;
  ptrdiff_t step;
};
using InstructionFunction = void (*)(const InstructionOperand* operands, void* out, int64_t bytes);

// Opcodes in addition to expression.h's: copy, wrap to the range of a narrower type, and whole functions that are common enough. The six of
// gelu: by order of the factors (half of x first, half last, half of the sum first), as a product or a quotient of x.
enum Extension : uint8_t {
  copy_value,
  wrap_i8,
  wrap_i16,
  wrap_u8,
  wrap_u16,
  wrap_u32,
  half_power,  // x to the power of 1/2; only the set of f32, whose pow knows roots, cubes and reciprocals, has it
  gelu_value,
  gelu_last = gelu_value + 5,
  multiply_add,  // a * b + c, rounded twice
  clamp_above,   // min(max(a, b), c)
  clamp_below,   // max(min(a, b), c)
  extension_count
};

constexpr int instruction_opcodes = 64;  // at least expression::opcode_count; checked where both are known

struct InstructionSet {
  InstructionFunction functions[instruction_opcodes];  // by expression::Opcode; null: this type does not have it
  InstructionFunction extensions[extension_count];
};

// Tables by Compute.
struct InstructionTable {
  const InstructionSet* sets[compute_count];
};
HEDDLE_DECLARE_ISA_TABLE(InstructionTable, instructions)

}  // namespace heddle::cpu
