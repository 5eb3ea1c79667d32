#include "infer/shape_operands.h"

#include <fmt/format.h>

#include "base/text/option_names.h"
#include "base/text/text.h"
#include "plugin/schema.h"

namespace heddle {
namespace {

// Whether the content of a net's input is followed.
bool decides_shapes(const Value& input, bool relevant, const Limits& limits) {
  int64_t elements = 1;
  for (const Dim& dim : input.type.dims) elements *= dim.value > 0 ? dim.value : 1;
  return relevant && may_decide_shapes(input.type.dtype) && elements <= limits.evaluated_elements;
}

}  // namespace

std::vector<char> shape_relevant_values(const Net& net, bool conditions, bool outputs) {
  std::vector<char> relevant(net.values.size(), 0);
  for (size_t i = 0; outputs && i < net.outputs.size(); ++i) relevant[net.outputs[i].index] = 1;
  for (size_t i = net.nodes.size(); i-- > 0;) {
    const Node& node = net.nodes[i];
    if (!node.schema) continue;
    bool wanted = false;
    for (const ValueId id : node.outputs) wanted = wanted || (id.valid() && relevant[id.index]);
    const bool through = wanted && !node.schema->has_trait(HEDDLE_TRAIT_SHAPE_ONLY) && !node.schema->has_trait(HEDDLE_TRAIT_IMPURE);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const heddle_port* port = node.schema->input_port(k);
      const bool condition = conditions && port && port->dtypes == HEDDLE_DTYPE_BIT(HEDDLE_BOOL) && node.has_subnet();
      const bool operand = condition || (port && (port->flags & HEDDLE_PORT_SHAPE_OPERAND));
      if (node.inputs[k].valid() && (operand || through)) relevant[node.inputs[k].index] = 1;
    }
  }
  return relevant;
}

bool may_decide_shapes(DType dtype) {
  return dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::none;
}

Status missing_content(const std::string& input) {
  return {Code::missing_input,
          fmt::format("the content of input {} decides shapes and must be known when the net is prepared", quoted(input)),
          hint_with("give it with ", option_names::input_data.text(input))};
}

std::vector<uint32_t> shape_deciding_inputs(const Net& net, const Limits& limits) {
  const std::vector<char> relevant = shape_relevant_values(net, false);
  std::vector<uint32_t> positions;
  for (size_t i = 0; i < net.inputs.size(); ++i)
    if (decides_shapes(net[net.inputs[i]], relevant[net.inputs[i].index], limits)) positions.push_back(static_cast<uint32_t>(i));
  return positions;
}

}  // namespace heddle
