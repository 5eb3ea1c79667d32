#include "generate/pointwise/fused_expression.h"

#include <algorithm>

#include "generate/dtype_names.h"
#include "generate/pointwise/element_source.h"

namespace heddle::cuda {

using plugin::Status;

size_t FusedExpressionText::widest() const {
  size_t bytes = 0;
  for (const FusedExpression::Operand& operand : fused_.operands)
    if (!operand.scalar) bytes = std::max<size_t>(bytes, plugin::byte_width(operand.dtype));
  return bytes;
}

void FusedExpressionText::parameters(ParameterWriter& writer) const {
  for (size_t i = 0; i < fused_.operands.size(); ++i)
    writer.address_of_many("const ", stored_type(fused_.operands[i].dtype), name_, i, Address::input, fused_.operands[i].input);
}

Status FusedExpressionText::function(heddle_dtype arithmetic, std::string* text) const {
  if (fused_.empty()) return {};
  if (fused_.operands.size() > max_fused_operands)
    return plugin::unsupported("a fused expression of " + std::to_string(fused_.operands.size()) + " operands, expected at most " +
                               std::to_string(max_fused_operands));
  if (fused_.program.inputs.size() > fused_.operands.size() + 1)
    return plugin::invalid("a fused expression names more operands than it has");
  for (const FusedExpression::Operand& operand : fused_.operands)
    if (operand.dtype != HEDDLE_BOOL && operand.dtype != arithmetic)
      return plugin::unsupported("the operands of a fused expression must have the dtype of its element, or bool");
  expression::Program whole = fused_.program;  // one parameter for each operand, whether the text names it or not
  while (whole.inputs.size() < fused_.operands.size() + 1) whole.inputs.push_back("unused" + std::to_string(whole.inputs.size()));
  std::string function;
  HEDDLE_PLUGIN_CHECK(element_function(whole, arithmetic, std::string(name_) + "_chain", &function));
  *text += function;
  return {};
}

std::string FusedExpressionText::reads(const std::string& at) const {
  std::string text;
  for (size_t i = 0; i < fused_.operands.size(); ++i) {
    const std::string name = name_ + std::to_string(i), type = stored_type(fused_.operands[i].dtype), pack = "Pack<" + type + ", W>";
    text += fused_.operands[i].scalar ? "    const " + type + " " + name + " = *p." + name + ";\n"
                                      : "    const " + pack + " " + name + " = *(const " + pack + "*)(p." + name + " + " + at + ");\n";
  }
  return text;
}

std::string FusedExpressionText::call(const std::string& value, heddle_dtype arithmetic) const {
  if (fused_.empty()) return value;
  const std::string type = compute_type(arithmetic);
  std::string text = std::string(name_) + "_chain((" + type + ")(" + value + ")";
  for (size_t i = 0; i < fused_.operands.size(); ++i)
    text += ", To<" + type + ">::from(" + name_ + std::to_string(i) + (fused_.operands[i].scalar ? ")" : ".element[e])");
  return text + ")";
}

std::string load_member(heddle_dtype dtype, const FusedExpressionText& prologue) {
  const std::string pack = "Pack<" + std::string(stored_type(dtype)) + ", W>";
  return "  template <int W>\n  HEDDLE_INLINE_MEMBER void load(const Parameters& p, Index at, C (&x)[W]) {\n    const " + pack +
         " v = *(const " + pack + "*)(p.x + at);\n" + prologue.reads("at") +
         "    for (int e = 0; e < W; ++e) x[e] = " + prologue.call("To<C>::from(v.element[e])", dtype) + ";\n  }\n";
}

std::string store_member(heddle_dtype dtype, const FusedExpressionText& epilogue) {
  const std::string type = stored_type(dtype), pack = "Pack<" + type + ", W>";
  return "  template <int W>\n  HEDDLE_INLINE_MEMBER void store(const Parameters& p, Index at, const C (&v)[W]) {\n" +
         epilogue.reads("at") + "    " + pack + " y;\n    for (int e = 0; e < W; ++e) y.element[e] = Stored<" + type + ">::of(" +
         epilogue.call("v[e]", dtype) + ");\n    *(" + pack + "*)(p.y + at) = y;\n  }\n";
}

}  // namespace heddle::cuda
