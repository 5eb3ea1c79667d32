// The epilogue of a compute kernel: all epilogue ops fused into it as one Program over "acc" and the epilogue ops' operands.
#pragma once

#include <vector>

#include "heddle/op.h"
#include "pointwise/pointwise_program.h"

namespace heddle::cpu {

// An operand of the composed program, input i + 1 of it (input 0 is the value computed so far).
struct EpilogueOperand {
  uint32_t input;  // among the node's inputs
  int32_t kind;    // HEDDLE_OPERAND_SAME_SHAPE, ...
};

// Composes the epilogue ops of `context`; the accumulator has dtype `accumulator`, results are written as `output_dtype`. Call it in
// accepts_epilogue too: an epilogue that it rejects (an operation without a form for these dtypes) is then rejected there. Allocates:
// [compile] only. Without epilogue ops the program copies.
plugin::Status compile_epilogue(const plugin::CreateContext& context, heddle_dtype accumulator, heddle_dtype output_dtype, Program* program,
                                std::vector<EpilogueOperand>* operands);

}  // namespace heddle::cpu
