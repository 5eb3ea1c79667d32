#include "transform/fusible_program.h"

#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "plugin/pointwise_lowering.h"

namespace heddle {
namespace {

double first_of(const Blob& blob) {
  if (blob.dtype == DType::f32) return static_cast<double>(*reinterpret_cast<const float*>(blob.data));
  const uint16_t bits = *reinterpret_cast<const uint16_t*>(blob.data);
  return static_cast<double>(blob.dtype == DType::f16 ? float_of_f16(bits) : float_of_bf16(bits));
}

}  // namespace

bool has_pointwise(const TypedNet& net) {
  return std::any_of(net.net.nodes.begin(), net.net.nodes.end(), has_pointwise_form);
}

bool is_fused(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

bool program_of(const Node& node, expression::Program& program) {
  if (!has_pointwise_form(node)) return false;
  Result<expression::Program> form = pointwise_form(node);
  if (form.ok()) program = std::move(*form);
  return form.ok();
}

bool one_dtype(const TypedNet& net, const Node& node) {
  const DType dtype = net.type(node.outputs[0]).dtype;
  for (const ValueId id : node.inputs)
    if (!id.valid() || net.type(id).dtype != dtype) return false;
  return true;
}

void inline_scalars(const Editor& editor, const std::vector<ValueId>& inputs, expression::Program& program, std::vector<char>& literal) {
  using expression::Opcode;
  literal.assign(inputs.size(), 0);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto blob = editor.constant(inputs[i]);
    if (!blob || !is_fused(blob->dtype) || blob->shape.element_count() != 1) continue;
    const double value = first_of(*blob);
    if (std::isnan(value)) continue;
    for (expression::Instruction& instruction : program.code)
      if (instruction.op == Opcode::input && instruction.a == static_cast<int32_t>(i)) instruction = {Opcode::constant, -1, -1, -1, value};
    literal[i] = 1;
  }
}

bool reads_updated_variable(const Net& net, const Node& node) {
  for (const ValueId id : node.inputs)
    if (id.valid() && net[id].kind == Value::Kind::variable && net[net[id].variable].last != id) return true;
  return false;
}

}  // namespace heddle
