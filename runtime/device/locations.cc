#include "device/locations.h"

#include <algorithm>

#include "plugin/schema.h"

namespace heddle {

bool is_copy(const Node& node) {
  return node.type == "Copy" && node.domain == "heddle";
}

Locations::Locations(const TypedNet& net) : net_(net.net) {
  const auto on_host = [](const Node& node) { return node.placed == host_device; };
  const auto host = [](DeviceId id) { return id == host_device; };
  const bool ports_on_host = std::all_of(net.input_places.begin(), net.input_places.end(), host) &&
                             std::all_of(net.output_places.begin(), net.output_places.end(), host);
  all_on_host_ = ports_on_host && std::all_of(net_.nodes.begin(), net_.nodes.end(), on_host);
  if (all_on_host_) return;
  values_.assign(net_.values.size(), host_device);
  for (size_t i = 0; i < net.input_places.size(); ++i) values_[net_.inputs[i].index] = net.input_places[i];
  for (size_t i = 0; i < net_.nodes.size(); ++i) add(NodeId(i));
  locate_variables();
}

void Locations::add(NodeId id) {
  const Node& node = net_[id];
  nodes_.push_back(node.placed);
  values_.resize(net_.values.size(), host_device);
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    if (!node.outputs[k].valid()) continue;
    const heddle_port* port = node.schema->output_port(k);
    values_[node.outputs[k].index] = port && (port->flags & HEDDLE_PORT_HOST) ? host_device : node.placed;
  }
}

DeviceId Locations::wanted(NodeId node, size_t i) const {
  const Node& n = net_[node];
  const DeviceId here = nodes_[node.index];
  if (is_copy(n)) return of(n.inputs[0]);
  const heddle_port* port = n.schema->input_port(i);
  return port && (port->flags & (HEDDLE_PORT_HOST | HEDDLE_PORT_SHAPE_OPERAND)) ? host_device : here;
}

void Locations::locate_variables() {
  constexpr DeviceId nowhere;
  std::vector<DeviceId> home(net_.variables.size(), nowhere), reader(net_.variables.size(), nowhere);
  for (size_t i = 0; i < net_.nodes.size(); ++i) {
    const Node& node = net_.nodes[i];
    for (const ValueId v : node.outputs)
      if (v.valid() && net_[v].variable.valid() && home[net_[v].variable.index] == nowhere) home[net_[v].variable.index] = nodes_[i];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (!node.inputs[k].valid() || !net_[node.inputs[k]].variable.valid() || is_copy(node)) continue;
      DeviceId& seen = reader[net_[node.inputs[k]].variable.index];
      const DeviceId there = wanted(NodeId(i), k);
      seen = seen == nowhere || seen == there ? there : host_device;
    }
  }
  for (size_t i = 0; i < net_.values.size(); ++i) {
    if (!net_.values[i].variable.valid()) continue;
    const uint32_t variable = net_.values[i].variable.index;
    values_[i] = home[variable] != nowhere ? home[variable] : reader[variable] != nowhere ? reader[variable] : host_device;
  }
}

}  // namespace heddle
