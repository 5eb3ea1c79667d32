#include "generate/stage_chain.h"

#include <algorithm>
#include <string>
#include <vector>

namespace heddle::cuda {

using plugin::CreateContext;
using plugin::Status;

Status stage_chain(const CreateContext& context, Chain* chain) {
  *chain = {};
  if (context.stage_count() == 0) return {};
  expression::Program& whole = chain->program;
  whole.inputs = {"acc"};
  int value = whole.input("acc");
  for (uint32_t i = 0; i < context.stage_count(); ++i) {
    const heddle_epilogue_stage& stage = context.stage(i);
    expression::Program own;
    own.inputs = {"acc", "operand"};
    std::string error;
    if (!expression::parse(stage.expression, {}, own, error) || own.inputs.size() > 2)
      return plugin::invalid("epilogue \"" + std::string(stage.expression) +
                             "\": " + (error.empty() ? "it names an unknown value" : error));
    std::vector<int> bind = {value, -1};
    if (stage.operand_input >= 0) {
      const auto input = static_cast<uint32_t>(stage.operand_input);
      const bool scalar = stage.operand_kind == HEDDLE_OPERAND_SCALAR;
      if (!scalar && stage.operand_kind != HEDDLE_OPERAND_SAME_SHAPE)
        return plugin::unsupported("an operand of an epilogue that is neither of the output's shape nor of one element");
      if (!context.input(input)) return plugin::invalid("an epilogue names input " + std::to_string(input) + ", which is absent");
      chain->operands.push_back({input, context.input(input)->dtype, scalar});
      bind[1] = whole.input("operand" + std::to_string(chain->operands.size()));
    }
    for (const expression::Instruction& instruction : own.code)
      if (instruction.op == expression::Opcode::input && bind[static_cast<size_t>(instruction.a)] < 0)
        return plugin::invalid("epilogue \"" + std::string(stage.expression) + "\" has no operand");
    value = expression::append(whole, own, bind);
  }
  if (static_cast<size_t>(value) + 1 != whole.code.size()) whole.code.push_back(whole.code[static_cast<size_t>(value)]);
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
