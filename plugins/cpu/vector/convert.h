// Conversion of contiguous elements between any two dtypes.
//
// float -> integer truncates toward zero and saturates, NaN gives 0. integer -> integer wraps. Anything -> bool is x != 0. Narrower floats
// round to nearest even, once: f64 and wide integers become f16 or bf16 without an intermediate rounding. Pure; any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "heddle/abi.h"
#include "isa.h"

namespace heddle::cpu {

using ConvertFunction = void (*)(const void* from, void* to, int64_t count);

// The functions compiled per instruction set level: pairs without 16-bit floats, those against f32, and f64 -> f32 rounded to odd (so that
// rounding the result again to 16 bits equals rounding once).
struct ConvertTable {
  ConvertFunction pairs[HEDDLE_DTYPE_COUNT][HEDDLE_DTYPE_COUNT];
  ConvertFunction f16_to_f32, bf16_to_f32, f32_to_f16, f32_to_bf16, f64_to_odd_f32;
};
HEDDLE_DECLARE_ISA_TABLE(ConvertTable, conversions)

// Writes `count` elements at `to`; the memory may not overlap unless the dtypes are equal in width and from == to.
void convert(heddle_dtype from_dtype, const void* from, heddle_dtype to_dtype, void* to, int64_t count);

}  // namespace heddle::cpu
