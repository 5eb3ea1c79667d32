#include "device/locations.h"

#include <algorithm>

#include "base/device_name.h"
#include "plugin/schema.h"

namespace heddle {

bool is_copy(const Node& node) {
  return node.type == "Copy" && node.domain == "heddle";
}

uint32_t Locations::intern(const std::string& name) {
  if (is_host(name)) return host;
  const auto it = std::find(names_.begin(), names_.end(), name);
  if (it != names_.end()) return static_cast<uint32_t>(it - names_.begin());
  names_.push_back(name);
  return static_cast<uint32_t>(names_.size() - 1);
}

Locations::Locations(const Net& net, const std::string& default_device) : net_(net) {
  const auto on_host = [](const Node& node) { return node.device.empty() || is_host(node.device); };
  if (is_host(default_device) && std::all_of(net.nodes.begin(), net.nodes.end(), on_host)) return;
  values_.assign(net.values.size(), host);
  for (const Node& node : net.nodes) {
    nodes_.push_back(intern(full_device_name(node.device, default_device)));
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (!node.outputs[k].valid()) continue;
      const heddle_port* port = node.schema->output_port(k);
      values_[node.outputs[k].index] = port && (port->flags & HEDDLE_PORT_HOST) ? host : nodes_.back();
    }
  }
  locate_variables();
}

uint32_t Locations::wanted(NodeId node, size_t i) const {
  const Node& n = net_[node];
  const uint32_t here = nodes_[node.index];
  if (is_copy(n)) {
    const uint32_t there = of(n.inputs[0]);
    return here == host || there == host || here == there ? there : host;
  }
  const heddle_port* port = n.schema->input_port(i);
  return port && (port->flags & (HEDDLE_PORT_HOST | HEDDLE_PORT_SHAPE_OPERAND)) ? host : here;
}

void Locations::locate_variables() {
  constexpr uint32_t nowhere = UINT32_MAX;
  std::vector<uint32_t> home(net_.variables.size(), nowhere), reader(net_.variables.size(), nowhere);
  for (size_t i = 0; i < net_.nodes.size(); ++i) {
    const Node& node = net_.nodes[i];
    for (const ValueId v : node.outputs)
      if (v.valid() && net_[v].variable.valid() && home[net_[v].variable.index] == nowhere) home[net_[v].variable.index] = nodes_[i];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (!node.inputs[k].valid() || !net_[node.inputs[k]].variable.valid() || is_copy(node)) continue;
      uint32_t& seen = reader[net_[node.inputs[k]].variable.index];
      const uint32_t there = wanted(NodeId(i), k);
      seen = seen == nowhere || seen == there ? there : host;
    }
  }
  for (size_t i = 0; i < net_.values.size(); ++i) {
    if (!net_.values[i].variable.valid()) continue;
    const uint32_t variable = net_.values[i].variable.index;
    values_[i] = home[variable] != nowhere ? home[variable] : reader[variable] != nowhere ? reader[variable] : host;
  }
}

}  // namespace heddle
