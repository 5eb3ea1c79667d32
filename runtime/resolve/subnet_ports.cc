#include "resolve/subnet_ports.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "plugin/schema.h"
#include "resolve/updates.h"

namespace heddle {
namespace {

size_t handed_on(size_t all, uint32_t first) {
  return all - std::min<size_t>(all, first);
}

}  // namespace

Status check_subnet_ports(const Node& node, const heddle_subnet_ports& ports, const Net& subnet) {
  const size_t inputs = ports.own_inputs + handed_on(node.inputs.size(), ports.first_input);
  const size_t outputs = ports.own_outputs + handed_on(node.outputs.size(), ports.first_output);
  if (subnet.inputs.size() != inputs)
    return {Code::subnet_mismatch, fmt::format("it takes {} inputs, is given {}", subnet.inputs.size(), inputs)};
  if (subnet.outputs.size() < outputs)
    return {Code::subnet_mismatch, fmt::format("it has {} outputs, {} are wanted", subnet.outputs.size(), outputs)};
  return {};
}

Status adopt_variables(const Net& net, const Node& node, const heddle_subnet_ports& ports, Net& subnet, Adopted& adopted) {
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    const int input = updated_input(net, node, k);
    if (input < 0 || node.schema->updated_input(k) >= 0) continue;
    const ValueId before = node.inputs[static_cast<size_t>(input)];
    const Variable& updated = net[net[before].variable];
    if (std::count(node.inputs.begin(), node.inputs.end(), before) != 1)
      return {Code::hazard, fmt::format("updates variable {} and takes it twice", quoted(updated.name)), "take it once"};
    if (static_cast<uint32_t>(input) < ports.first_input || k < ports.first_output)
      return {Code::subnet_mismatch, fmt::format("updates variable {}, which it does not hand to its subnets", quoted(updated.name))};
    const ValueId inner = subnet.inputs[ports.own_inputs + static_cast<size_t>(input) - ports.first_input];
    Value& value = subnet[inner];
    if (value.kind != Value::Kind::input) continue;  // it is one already
    Variable variable;
    variable.name = updated.name;
    variable.type = value.type;
    variable.first = variable.last = inner;
    value.kind = Value::Kind::variable;
    value.variable = VariableId(subnet.variables.size());
    adopted.emplace(subnet.outputs[ports.own_outputs + k - ports.first_output].index, value.variable);
    subnet.variables.push_back(std::move(variable));
  }
  return {};
}

void mark_updates(Net& subnet, const Node& node, const Adopted& adopted) {
  if (adopted.empty()) return;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId output = node.outputs[i];
    const auto found = output.valid() ? adopted.find(output.index) : adopted.end();
    if (found == adopted.end() || subnet[output].kind != Value::Kind::node_output) continue;
    const heddle_port* const port = node.schema->output_port(i);
    Variable& variable = subnet[found->second];
    const bool taken = std::find(node.inputs.begin(), node.inputs.end(), variable.last) != node.inputs.end();
    if (!port || !(port->flags & HEDDLE_PORT_MAY_UPDATE) || !taken) continue;
    subnet[output].kind = Value::Kind::variable;
    subnet[output].variable = found->second;
    subnet[output].version = subnet[variable.last].version + 1;
    variable.last = output;
  }
}

}  // namespace heddle
