#include "derive/reverse/gradient_paths.h"

#include <algorithm>

#include "plugin/schema.h"

namespace heddle {

bool carries_gradient(const Node& node, size_t input, const PolymorphicTypes& types) {
  const ValueId id = node.inputs[input];
  if (!id.valid() || !types.is_real(id)) return false;
  const heddle_port* const port = node.schema->input_port(input);
  return !port || (port->flags & HEDDLE_PORT_NOT_DIFFERENTIABLE) == 0;
}

bool gives_gradient(const Node& node, size_t output, const PolymorphicTypes& types) {
  const ValueId id = node.outputs[output];
  if (!id.valid() || !types.is_real(id)) return false;
  const heddle_port* const port = node.schema->output_port(output);
  return !port || (port->flags & HEDDLE_PORT_NOT_DIFFERENTIABLE) == 0;
}

bool sends_zeros(const Node& node) {
  return node.domain == "heddle" && node.type == "ZeroGradient";
}

std::vector<bool> dependents(const Net& net, const PolymorphicTypes& types, const std::vector<ValueId>& wanted) {
  std::vector<bool> depends(net.values.size(), false);
  for (const ValueId id : wanted) depends[id.index] = true;
  for (const Node& node : net.nodes) {
    bool any = false;
    for (size_t i = 0; i < node.inputs.size() && !any; ++i) any = carries_gradient(node, i, types) && depends[node.inputs[i].index];
    for (size_t i = 0; any && i < node.outputs.size(); ++i)
      if (gives_gradient(node, i, types)) depends[node.outputs[i].index] = true;
  }
  return depends;
}

std::vector<bool> reached_from(const Net& net, const PolymorphicTypes& types, const std::vector<bool>& depends,
                               const std::vector<ValueId>& from) {
  std::vector<bool> reached(net.values.size(), false);
  for (const ValueId id : from) reached[id.index] = depends[id.index];
  for (size_t n = net.nodes.size(); n-- > 0;) {
    const Node& node = net.nodes[n];
    const bool arrives = sends_zeros(node) || std::any_of(node.outputs.begin(), node.outputs.end(),
                                                          [&](ValueId output) { return output.valid() && reached[output.index]; });
    for (size_t i = 0; arrives && i < node.inputs.size(); ++i)
      if (carries_gradient(node, i, types) && depends[node.inputs[i].index]) reached[node.inputs[i].index] = true;
  }
  return reached;
}

}  // namespace heddle
