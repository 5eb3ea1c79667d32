#include "generate/pointwise/epilogue_expression.h"

#include <algorithm>
#include <string>
#include <vector>

namespace heddle::cuda {

using plugin::CreateContext;
using plugin::Status;

Status append_epilogue_op(const std::string& text, int operand, expression::Program* program, int* value) {
  expression::Program own;
  own.inputs = {"acc", "operand"};
  std::string error;
  if (!expression::parse(text, {}, own, error) || own.inputs.size() > 2)
    return plugin::invalid("epilogue \"" + text + "\": " + (error.empty() ? "it names an unknown value" : error));
  const std::vector<int> bind = {*value, operand};
  for (const expression::Instruction& instruction : own.code)
    if (instruction.op == expression::Opcode::input && bind[static_cast<size_t>(instruction.a)] < 0)
      return plugin::invalid("epilogue \"" + text + "\" has no operand");
  *value = expression::append(*program, own, bind);
  return {};
}

void end_program(expression::Program* program, int value) {
  if (static_cast<size_t>(value) + 1 != program->code.size()) program->code.push_back(program->code[static_cast<size_t>(value)]);
}

Status epilogue_expression(const CreateContext& context, FusedExpression* fused) {
  *fused = {};
  if (context.epilogue_op_count() == 0) return {};
  expression::Program& whole = fused->program;
  whole.inputs = {"acc"};
  int value = whole.input("acc");
  for (uint32_t i = 0; i < context.epilogue_op_count(); ++i) {
    const heddle_epilogue_op& epilogue_op = context.epilogue_op(i);
    int operand = -1;
    if (epilogue_op.operand_input >= 0) {
      const auto input = static_cast<uint32_t>(epilogue_op.operand_input);
      const bool scalar = epilogue_op.operand_kind == HEDDLE_OPERAND_SCALAR;
      if (!scalar && epilogue_op.operand_kind != HEDDLE_OPERAND_SAME_SHAPE)
        return plugin::unsupported("an operand of an epilogue that is neither of the output's shape nor of one element");
      if (!context.input(input)) return plugin::invalid("an epilogue names input " + std::to_string(input) + ", which is absent");
      fused->operands.push_back({input, context.input(input)->dtype, scalar});
      operand = whole.input("operand" + std::to_string(fused->operands.size()));
    }
    HEDDLE_PLUGIN_CHECK(append_epilogue_op(epilogue_op.expression, operand, &whole, &value));
  }
  end_program(&whole, value);
  std::string text;
  return FusedExpressionText(*fused, "epilogue").function(context.output(0)->dtype, &text);
}

bool takes_epilogue_ops(const CreateContext& context) {
  FusedExpression fused;
  return context.output(0) && (HEDDLE_DTYPE_BIT(context.output(0)->dtype) & plugin::float_dtypes) &&
         epilogue_expression(context, &fused).ok();
}

uint32_t own_inputs(const CreateContext& context) {
  uint32_t count = context.input_count();
  for (uint32_t i = 0; i < context.epilogue_op_count(); ++i)
    if (context.epilogue_op(i).operand_input >= 0) count = std::min(count, static_cast<uint32_t>(context.epilogue_op(i).operand_input));
  return count;
}

}  // namespace heddle::cuda
