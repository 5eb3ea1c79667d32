// The epilogue ops of an epilogue that the host fused behind a node, as a fused.
#pragma once

#include <cstdint>
#include <string>

#include "generate/pointwise/fused_expression.h"
#include "heddle/op.h"

namespace heddle::cuda {

// Appends one epilogue op's text, of "acc" and "operand", to a program whose value so far is *value. `operand`: the instruction that stands
// for its operand; -1: it has none. Errors: a text that can not be read, or that names an operand where there is none.
plugin::Status append_epilogue_op(const std::string& text, int operand, expression::Program* program, int* value);
// When nothing stands behind the value that the program is for.
void end_program(expression::Program* program, int value);

// Errors: unsupported, of operands that are neither of the output's shape nor of one element, and of operations that the output's dtype
// does not have.
plugin::Status epilogue_expression(const plugin::CreateContext& context, FusedExpression* fused);
// What accepts_epilogue answers.
bool takes_epilogue_ops(const plugin::CreateContext& context);
// The node's own inputs: those of epilogue ops stand behind them.
uint32_t own_inputs(const plugin::CreateContext& context);

}  // namespace heddle::cuda
