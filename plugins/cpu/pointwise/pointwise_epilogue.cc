// Composition of epilogue ops into one expression.
#include "pointwise/pointwise_epilogue.h"

namespace heddle::cpu {

using plugin::invalid;
using plugin::Status;

Status compile_epilogue(const plugin::CreateContext& context, heddle_dtype accumulator, heddle_dtype output_dtype, Program* program,
                        std::vector<EpilogueOperand>* operands) {
  operands->clear();
  ProgramText text;
  text.inputs = {"acc"};
  text.input_dtypes = {accumulator};
  text.output_dtype = output_dtype;
  text.arithmetic = accumulator;
  expression::Program composed;
  composed.inputs = {"acc"};
  int value = composed.input("acc");
  for (uint32_t i = 0; i < context.epilogue_op_count(); ++i) {
    const heddle_epilogue_op& epilogue_op = context.epilogue_op(i);
    expression::Program own;
    own.inputs = {"acc", "operand"};
    std::string error;
    if (!expression::parse(epilogue_op.expression, {}, own, error) || own.inputs.size() > 2)
      return invalid("epilogue \"" + std::string(epilogue_op.expression) + "\": " + (error.empty() ? "it names an unknown value" : error));
    std::vector<int> bind = {value, -1};
    if (epilogue_op.operand_input >= 0) {
      const uint32_t input = static_cast<uint32_t>(epilogue_op.operand_input);
      if (!context.input(input)) return invalid("an epilogue names input " + std::to_string(input) + ", which is absent");
      text.inputs.push_back("operand" + std::to_string(operands->size()));
      text.input_dtypes.push_back(context.input(input)->dtype);
      operands->push_back({input, epilogue_op.operand_kind});
      bind[1] = composed.input(text.inputs.back());
    }
    for (const expression::Instruction& instruction : own.code)
      if (instruction.op == expression::Opcode::input && bind[static_cast<size_t>(instruction.a)] < 0)
        return invalid("epilogue \"" + std::string(epilogue_op.expression) + "\" has no operand");
    value = expression::append(composed, own, bind);
  }
  const size_t result = static_cast<size_t>(value);
  if (result + 1 != composed.code.size()) composed.code.push_back(composed.code[result]);  // the last one is the result
  text.text = expression::print(composed);
  return Program::compile(text, program);
}

}  // namespace heddle::cpu
