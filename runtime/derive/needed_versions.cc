#include "derive/needed_versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/text/text.h"
#include "plugin/schema.h"
#include "resolve/updates.h"

namespace heddle {
namespace {

// Which nodes `nodes` depend on, themselves included; all precede them.
std::vector<bool> ancestors_of(const Net& net, const std::vector<NodeId>& nodes) {
  std::vector<bool> marked(net.nodes.size(), false);
  for (const NodeId node : nodes) marked[node.index] = true;
  for (size_t i = net.nodes.size(); i-- > 0;) {
    if (!marked[i]) continue;
    for (const ValueId input : net.nodes[i].inputs)
      if (input.valid() && net[input].producer.valid()) marked[net[input].producer.index] = true;
    for (const NodeId before : net.nodes[i].control) marked[before.index] = true;
  }
  return marked;
}

// The node that writes each version, by variable and version.
std::map<std::pair<uint32_t, uint32_t>, NodeId> writers_of(const Net& net) {
  std::map<std::pair<uint32_t, uint32_t>, NodeId> writers;
  for (const Value& value : net.values)
    if (value.kind == Value::Kind::variable && value.producer.valid()) writers[{value.variable.index, value.version}] = value.producer;
  return writers;
}

}  // namespace

Status check_needed_versions(const Net& net, const Emitter& emitter) {
  const auto writers = writers_of(net);
  for (size_t i = emitter.first_node(); i < net.nodes.size() && !writers.empty(); ++i) {
    const Node& node = net.nodes[i];
    for (const ValueId input : node.inputs) {
      if (!input.valid() || net[input].kind != Value::Kind::variable) continue;
      const Value& value = net[input];
      const auto writer = writers.find({value.variable.index, value.version + 1});
      if (writer == writers.end() || !ancestors_of(net, {NodeId(i)})[writer->second.index]) continue;
      const NodeId origin = emitter.origin(NodeId(i));
      const Node& overwrites = net[writer->second];
      return {Code::hazard,
              fmt::format("the gradient of {} needs version {} of {}, which {} ({}) overwrites with version {} before",
                          quoted(origin.valid() ? net[origin].name : node.name), value.version, quoted(net[value.variable].name),
                          quoted(overwrites.name), display_name(overwrites.domain, overwrites.type), value.version + 1),
              "update it where nothing that the loss is computed from reads the new version, or stop the gradient"};
    }
  }
  return {};
}

Net with_updates_last(Net net, size_t forward_nodes) {
  std::vector<NodeId> derived;
  for (size_t i = forward_nodes; i < net.nodes.size(); ++i) derived.emplace_back(i);
  const std::vector<bool> needed = ancestors_of(net, derived);
  // The nodes to move to the end: updates that nothing derived needs, and what reads or waits for a moved node.
  std::vector<bool> behind(net.nodes.size(), false);
  for (size_t i = 0; i < forward_nodes; ++i) {
    const Node& node = net.nodes[i];
    bool moves = updates_variable(net, node);
    for (const ValueId input : node.inputs)
      moves = moves || (input.valid() && net[input].producer.valid() && behind[net[input].producer.index]);
    for (const NodeId before : node.control) moves = moves || behind[before.index];
    behind[i] = moves && !needed[i];
  }
  std::vector<NodeId> order, place(net.nodes.size());
  for (const bool last : {false, true})
    for (size_t i = 0; i < net.nodes.size(); ++i)
      if (behind[i] == last) place[i] = NodeId(order.size()), order.emplace_back(i);
  std::vector<Node> nodes;
  nodes.reserve(order.size());
  for (const NodeId id : order) nodes.push_back(std::move(net.nodes[id.index]));
  net.nodes = std::move(nodes);
  for (Node& node : net.nodes)
    for (NodeId& before : node.control) before = place[before.index];
  for (Value& value : net.values)
    if (value.producer.valid()) value.producer = place[value.producer.index];
  return net;
}

}  // namespace heddle
