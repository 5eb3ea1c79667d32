#include "resolve/subnet_ports.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text.h"
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
    if (value.kind != Value::Kind::input) continue;  // it is a version already
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

void disown_variables(Net& net) {
  for (Node& node : net.nodes)
    for (Attribute& attribute : node.attributes) {
      auto* const subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value);
      if (!subnet) continue;
      auto inner = std::make_shared<Net>(**subnet);
      for (Value& value : inner->values) {
        if (value.kind != Value::Kind::variable) continue;
        value.kind = value.producer.valid() ? Value::Kind::node_output : Value::Kind::input;
        value.variable = {};
        value.version = 0;
      }
      inner->variables.clear();
      disown_variables(*inner);
      *subnet = std::move(inner);
    }
}

namespace {

// The first input of an operator that is passed to its subnets.
uint32_t first_handed_on(const OperatorSchema& schema) {
  uint32_t first = UINT32_MAX;
  for (uint32_t i = 0; i < schema.op->attribute_count; ++i)
    if (const heddle_subnet_ports* const ports = schema.op->attributes[i]->ports) first = std::min(first, ports->first_input);
  return first;
}

// The input that the producer of `value` updates. Invalid: it updates none, or it is ambiguous, or it is `first`, where the chain ends.
ValueId version_before(const Net& subnet, const OperatorSchema& schema, const Value& value, ValueId first) {
  const Node& node = subnet[value.producer];
  if (const int declared = schema.updated_input(value.output); declared >= 0)
    return static_cast<size_t>(declared) < node.inputs.size() ? node.inputs[static_cast<size_t>(declared)] : ValueId();
  const heddle_port* const port = schema.output_port(value.output);
  if (!port || !(port->flags & HEDDLE_PORT_MAY_UPDATE)) return {};
  ValueId only;
  for (size_t i = first_handed_on(schema); i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    if (input == first) return {};
    if (!input.valid() || subnet[input].kind != Value::Kind::node_output) continue;
    if (only.valid()) return {};
    only = input;
  }
  return only;
}

}  // namespace

void trace_updates(const Net& subnet, const std::function<const OperatorSchema*(const Node&)>& schema_of, Adopted& adopted) {
  const Adopted ends = adopted;
  for (const auto& [end, variable] : ends) {
    bool in_place = false;  // the operator on the value updates it in place: it must be a version
    for (ValueId at(end); subnet[at].kind == Value::Kind::node_output && subnet[at].producer.valid();) {
      const OperatorSchema* const schema = schema_of(subnet[subnet[at].producer]);
      if (!schema) break;
      const bool declared = schema->updated_input(subnet[at].output) >= 0;
      // Without a later update, the output of an If is a value of its own, and copied.
      if (!declared && !in_place) break;
      in_place = true;
      at = version_before(subnet, *schema, subnet[at], subnet[variable].first);
      if (!at.valid() || subnet[at].kind != Value::Kind::node_output || !adopted.emplace(at.index, variable).second) break;
    }
  }
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
