#include "derive/reverse/net_part.h"

#include <utility>

namespace heddle {

std::vector<bool> needed_nodes(const Net& net, const std::vector<ValueId>& values) {
  std::vector<bool> needed(net.nodes.size(), false);
  const auto need = [&](ValueId id) {
    if (id.valid() && net[id].producer.valid()) needed[net[id].producer.index] = true;
  };
  for (const ValueId id : values) need(id);
  for (size_t i = net.nodes.size(); i-- > 0;)
    for (size_t k = 0; needed[i] && k < net.nodes[i].inputs.size(); ++k) need(net.nodes[i].inputs[k]);
  return needed;
}

Net net_part(const Net& net, const std::vector<ValueId>& inputs, const std::vector<ValueId>& outputs) {
  Net part;
  part.name = net.name;
  part.operator_sets = net.operator_sets;
  part.keep_alive = net.keep_alive;
  std::vector<ValueId> places(net.values.size());
  const auto place = [&](ValueId id) {
    if (!id.valid() || places[id.index].valid()) return id.valid() ? places[id.index] : id;
    part.values.push_back(net[id]);
    return places[id.index] = ValueId(part.values.size() - 1);
  };
  for (const ValueId input : inputs) {
    Value& value = part[place(input)];
    value.kind = Value::Kind::input;  // a former variable is read like any other value
    value.variable = {};
    part.inputs.push_back(places[input.index]);
  }
  const std::vector<bool> needed = needed_nodes(net, outputs);
  for (size_t i = 0; i < net.nodes.size(); ++i) {
    if (!needed[i]) continue;
    Node node = net.nodes[i];
    node.control.clear();
    for (ValueId& input : node.inputs) input = place(input);
    for (ValueId& output : node.outputs) {
      output = place(output);
      if (output.valid()) part[output].producer = NodeId(part.nodes.size());
    }
    part.nodes.push_back(std::move(node));
  }
  for (const ValueId output : outputs) part.outputs.push_back(place(output));
  return part;
}

}  // namespace heddle
