#include "generate/stage_chain.h"

#include <algorithm>
#include <string>
#include <vector>

namespace heddle::cuda {

using plugin::CreateContext;
using plugin::Status;

Status append_stage(const std::string& text, int operand, expression::Program* program, int* value) {
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

Status stage_chain(const CreateContext& context, Chain* chain) {
  *chain = {};
  if (context.stage_count() == 0) return {};
  expression::Program& whole = chain->program;
  whole.inputs = {"acc"};
  int value = whole.input("acc");
  for (uint32_t i = 0; i < context.stage_count(); ++i) {
    const heddle_epilogue_stage& stage = context.stage(i);
    int operand = -1;
    if (stage.operand_input >= 0) {
      const auto input = static_cast<uint32_t>(stage.operand_input);
      const bool scalar = stage.operand_kind == HEDDLE_OPERAND_SCALAR;
      if (!scalar && stage.operand_kind != HEDDLE_OPERAND_SAME_SHAPE)
        return plugin::unsupported("an operand of an epilogue that is neither of the output's shape nor of one element");
      if (!context.input(input)) return plugin::invalid("an epilogue names input " + std::to_string(input) + ", which is absent");
      chain->operands.push_back({input, context.input(input)->dtype, scalar});
      operand = whole.input("operand" + std::to_string(chain->operands.size()));
    }
    HEDDLE_PLUGIN_CHECK(append_stage(stage.expression, operand, &whole, &value));
  }
  end_program(&whole, value);
  std::string text;
  return ChainText(*chain, "behind").function(context.output(0)->dtype, &text);
}

bool takes_stages(const CreateContext& context) {
  Chain chain;
  return context.output(0) && (HEDDLE_DTYPE_BIT(context.output(0)->dtype) & plugin::float_dtypes) && stage_chain(context, &chain).ok();
}

uint32_t own_inputs(const CreateContext& context) {
  uint32_t count = context.input_count();
  for (uint32_t i = 0; i < context.stage_count(); ++i)
    if (context.stage(i).operand_input >= 0) count = std::min(count, static_cast<uint32_t>(context.stage(i).operand_input));
  return count;
}

}  // namespace heddle::cuda
