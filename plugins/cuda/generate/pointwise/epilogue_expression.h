// Reads the epilogue that the host fused into a node as a fused expression.
#pragma once

#include <cstdint>
#include <string>

#include "generate/pointwise/fused_expression.h"
#include "heddle/op.h"

namespace heddle::cuda {

// Appends one epilogue op's text, of "acc" and "operand", to a program whose value so far is *value. `operand` is the instruction that
// loads its operand; -1 if it has none. Errors: a text that cannot be read, or that names an operand where there is none.
plugin::Status append_epilogue_op(const std::string& text, int operand, expression::Program* program, int* value);
// Ends the program with `value` as its result.
void end_program(expression::Program* program, int value);

// Errors: unsupported, for operands that are neither of the output's shape nor of one element, and for operations that the output's dtype
// does not have.
plugin::Status epilogue_expression(const plugin::CreateContext& context, FusedExpression* fused);
// Returns the answer of accepts_epilogue.
bool takes_epilogue_ops(const plugin::CreateContext& context);
// Returns the number of the node's own inputs, which the inputs of epilogue ops follow.
uint32_t own_inputs(const plugin::CreateContext& context);

}  // namespace heddle::cuda
