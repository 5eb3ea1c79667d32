#include "edit/editor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/device_name.h"
#include "infer/infer.h"

namespace heddle {

Editor::Editor(TypedNet net) : net_(std::move(net)) {
  count_uses();
}

void Editor::count_uses() {
  const Net& graph = net_.net;
  uses_.assign(graph.values.size(), 0);
  output_.assign(graph.values.size(), 0);
  readers_.assign(graph.values.size(), {});
  dead_.assign(graph.nodes.size(), 0);
  inserted_.assign(graph.nodes.size(), {});
  ordered_.assign(graph.nodes.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    add_uses(graph.nodes[i].inputs, 1, NodeId(i));
    for (const NodeId before : graph.nodes[i].control) ordered_[i] = ordered_[before.index] = 1;
  }
  // Values that leave the net, or stay in a variable, count as read: they must not be dropped, nor be fused away.
  for (const ValueId id : graph.outputs) {
    output_[id.index] = 1;
    ++uses_[id.index];
  }
  for (const Variable& variable : graph.variables) {
    output_[variable.last.index] = 1;
    ++uses_[variable.last.index];
  }
}

void Editor::add_uses(const std::vector<ValueId>& values, int delta, NodeId reader) {
  for (const ValueId id : values) {
    if (!id.valid()) continue;
    uses_[id.index] += static_cast<uint32_t>(delta);
    auto& readers = readers_[id.index];
    if (delta > 0)
      readers.push_back(reader);
    else if (const auto it = std::find(readers.begin(), readers.end(), reader); it != readers.end())
      readers.erase(it);
  }
}

NodeId Editor::only_reader(ValueId id) const {
  if (is_output(id) || uses_[id.index] != 1 || readers_[id.index].size() != 1) return {};
  const NodeId reader = readers_[id.index][0];
  return ordered(reader) || ordered(graph()[id].producer) ? NodeId() : reader;
}

std::shared_ptr<const Blob> Editor::constant(ValueId id) const {
  return id.valid() && graph()[id].kind == Value::Kind::constant ? net_.known[id.index] : nullptr;
}

ValueId Editor::add_constant(const std::string& name, std::shared_ptr<const Blob> blob) {
  changed_ = true;
  Value value;
  value.name = name;
  value.kind = Value::Kind::constant;
  value.content.blob = blob;
  net_.net.values.push_back(std::move(value));
  net_.types.push_back({blob->dtype, blob->shape});
  net_.known.push_back(std::move(blob));
  uses_.push_back(0);
  output_.push_back(0);
  readers_.emplace_back();
  return ValueId(net_.net.values.size() - 1);
}

DeviceId Editor::device(const std::string& name) {
  if (is_host(name)) return host_device;
  const auto it = std::find(net_.devices.begin(), net_.devices.end(), name);
  const DeviceId id(static_cast<size_t>(it - net_.devices.begin()));
  if (it == net_.devices.end()) net_.devices.push_back(name);
  return id;
}

Result<ValueId> append_node(TypedNet& net, Node node) {
  const OperatorSchema* schema = net.registry->find_operator(node.domain, node.type);
  if (!schema)
    return Status(Code::unknown_operator,
                  fmt::format("a transform needs operator {}, which no loaded plugin has", display_name(node.domain, node.type)),
                  "load the cpu plugin");
  // Transforms are written against the newest semantics, whatever version the net's own operators have.
  node.version = schema->version;
  node.schema = schema;
  const NodeId id(net.net.nodes.size());
  const ValueId output(net.net.values.size());
  Value& value = net.net.values.emplace_back();
  value.name = node.name;
  value.producer = id;
  net.types.emplace_back();
  net.known.emplace_back();
  node.outputs = {output};
  net.net.nodes.push_back(std::move(node));
  Status status = infer_node(net, id);
  const Node& added = net.net[id];
  if (!status.ok()) return std::move(status).at(added.name, added.type).during("while a transform added it");
  return output;
}

Result<ValueId> Editor::add_node(NodeId before, const std::string& type, const std::string& name, std::vector<ValueId> inputs,
                                 std::vector<Attribute> attributes, const std::string& domain) {
  changed_ = true;
  Node node;
  node.name = name;
  node.domain = domain;
  node.type = type;
  // A new node runs where the node that it was made for runs, whether placement is still to come (device) or done (placed).
  if (before.valid()) {
    node.device = graph()[before].device;
    node.placed = graph()[before].placed;
  }
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  HEDDLE_TRY(const ValueId output, append_node(net_, std::move(node)));
  const NodeId id = graph()[output].producer;
  uses_.push_back(0);
  output_.push_back(0);
  readers_.emplace_back();
  add_uses(graph()[id].inputs, 1, id);
  dead_.push_back(0);
  inserted_.emplace_back();
  if (before.valid()) inserted_[before.index].push_back(id);
  return output;
}

void Editor::set_inputs(NodeId node, std::vector<ValueId> inputs) {
  changed_ = true;
  add_uses(net_.net[node].inputs, -1, node);
  net_.net[node].inputs = std::move(inputs);
  add_uses(net_.net[node].inputs, 1, node);
}

void Editor::replace(ValueId from, ValueId to) {
  changed_ = true;
  const std::vector<NodeId> readers = readers_[from.index];  // a copy: set_inputs changes the list
  for (const NodeId reader : readers) {
    std::vector<ValueId> inputs = net_.net[reader].inputs;
    std::replace(inputs.begin(), inputs.end(), from, to);
    set_inputs(reader, std::move(inputs));
  }
  if (!is_output(from)) return;
  // Callers know an output by its name, so the value that replaces it takes over the name.
  for (ValueId& id : net_.net.outputs)
    if (id == from) {
      id = to;
      --uses_[from.index];
      ++uses_[to.index];
    }
  std::swap(net_.net[from].name, net_.net[to].name);
  output_[to.index] = 1;
  output_[from.index] = 0;
}

void Editor::set_output(size_t index, ValueId to) {
  ValueId& output = net_.net.outputs[index];
  const ValueId from = std::exchange(output, to);
  --uses_[from.index];
  ++uses_[to.index];
  const std::vector<ValueId>& outputs = net_.net.outputs;
  output_[from.index] = std::find(outputs.begin(), outputs.end(), from) != outputs.end();
  if (std::exchange(output_[to.index], 1)) return;
  // An input that is an output too keeps its name as input; the new value takes it as output.
  if (net_.net[from].kind == Value::Kind::input)
    net_.net[to].name = net_.net[from].name;
  else
    std::swap(net_.net[from].name, net_.net[to].name);
}

void Editor::make_constant(ValueId id, std::shared_ptr<const Blob> blob) {
  changed_ = true;
  Value& value = net_.net[id];
  const NodeId producer = value.producer;
  // The value keeps its id, so that its readers need no change; only the producer no longer writes it.
  value.kind = Value::Kind::constant;
  value.producer = NodeId();
  value.content.blob = blob;
  net_.types[id.index] = {blob->dtype, blob->shape};
  net_.known[id.index] = std::move(blob);
  if (!producer.valid()) return;
  Node& node = net_.net[producer];
  for (ValueId& output : node.outputs)
    if (output == id) output = ValueId();
  if (std::none_of(node.outputs.begin(), node.outputs.end(), [](ValueId v) { return v.valid(); })) remove(producer);
}

Status Editor::infer_again(NodeId node) {
  changed_ = true;
  return infer_node(net_, node);
}

void Editor::take_over_output(NodeId node, NodeId swallowed) {
  changed_ = true;
  const ValueId inner = net_.net[node].outputs[0];
  const ValueId outer = net_.net[swallowed].outputs[0];
  remove(swallowed);
  net_.net[node].outputs[0] = outer;
  net_.net[outer].producer = node;
  net_.net[outer].output = 0;
  net_.net[inner].producer = NodeId();
  net_.net[swallowed].outputs[0] = ValueId();
  // The node may read values computed between the two: it moves to the place of the swallowed node.
  inserted_[swallowed.index].push_back(node);
}

void Editor::remove(NodeId node) {
  if (dead(node)) return;
  changed_ = true;
  dead_[node.index] = 1;
  add_uses(net_.net[node].inputs, -1, node);
}

// A node that waits for a removed one must wait for what that one waited for: the producers of its inputs and its own control inputs.
void Editor::inherit_control() {
  Net& graph = net_.net;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    std::vector<NodeId>& control = graph.nodes[i].control;
    if (dead_[i] || std::none_of(control.begin(), control.end(), [&](NodeId c) { return dead(c); })) continue;
    // Dead nodes may wait for dead nodes: walk back until live ones are met. Each node once, as paths through a net can be exponentially
    // many.
    std::vector<NodeId> open = std::move(control), kept;
    std::vector<char> seen(graph.nodes.size(), 0);
    while (!open.empty()) {
      const NodeId before = open.back();
      open.pop_back();
      if (std::exchange(seen[before.index], 1)) continue;
      if (!dead(before)) {
        kept.push_back(before);
        continue;
      }
      for (const ValueId v : graph[before].inputs)
        if (v.valid() && graph[v].producer.valid()) open.push_back(graph[v].producer);
      open.insert(open.end(), graph[before].control.begin(), graph[before].control.end());
    }
    std::sort(kept.begin(), kept.end());
    control = std::move(kept);
  }
}

// Returns the live nodes in the order of the new net: each after the nodes that were inserted before it. Insertions nest (a node may be
// inserted before an inserted one) as deep as a fusion chain is long, so the walk has a stack of its own.
std::vector<NodeId> Editor::final_order() const {
  const size_t count = net_.net.nodes.size();
  // A node may have been inserted in several places: it goes to the last of them, where all that it reads has been computed.
  std::vector<uint32_t> last_place(count, UINT32_MAX);
  for (size_t i = 0; i < inserted_.size(); ++i)
    for (const NodeId id : inserted_[i]) last_place[id.index] = static_cast<uint32_t>(i);
  std::vector<NodeId> order;
  std::vector<std::pair<uint32_t, size_t>> stack;
  for (size_t i = 0; i < count; ++i) {
    if (last_place[i] != UINT32_MAX) continue;
    stack.emplace_back(static_cast<uint32_t>(i), 0);
    while (!stack.empty()) {
      auto& [at, next] = stack.back();
      if (next < inserted_[at].size()) {
        const NodeId child = inserted_[at][next++];
        if (last_place[child.index] == at) stack.emplace_back(child.index, 0);
        continue;
      }
      // A dead node is walked all the same: the nodes inserted before it take its place.
      if (!dead_[at]) order.emplace_back(at);
      stack.pop_back();
    }
  }
  return order;
}

namespace {

// Maps the ids of the edited net to those of the new one; invalid for those that are dropped.
struct Renumbering {
  std::vector<ValueId> values;
  std::vector<NodeId> nodes;

  void apply(ValueId& id) const {
    if (id.valid()) id = values[id.index];
  }
  void apply(std::vector<ValueId>& ids) const {
    for (ValueId& id : ids) apply(id);
  }
};

// Marks, by ValueId, the values that a node reads or writes, and those of the net's boundary or state. Ports stay even without a reader.
std::vector<char> live_values(const Net& graph, const std::vector<NodeId>& order) {
  std::vector<char> live(graph.values.size(), 0);
  const auto mark = [&](ValueId id) {
    if (id.valid()) live[id.index] = 1;
  };
  for (const NodeId id : order) {
    for (const ValueId v : graph[id].inputs) mark(v);
    for (const ValueId v : graph[id].outputs) mark(v);
  }
  for (const ValueId v : graph.inputs) mark(v);
  for (const ValueId v : graph.outputs) mark(v);
  for (const Variable& v : graph.variables) mark(v.first), mark(v.last);
  return live;
}

// Moves live values, with type and content; they stay in their old order.
Renumbering renumber(TypedNet& from, const std::vector<NodeId>& order, TypedNet* to) {
  Net& graph = from.net;
  Renumbering ids{std::vector<ValueId>(graph.values.size()), std::vector<NodeId>(graph.nodes.size())};
  const std::vector<char> live = live_values(graph, order);
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (!live[i]) continue;
    ids.values[i] = ValueId(to->net.values.size());
    to->net.values.push_back(std::move(graph.values[i]));
    to->types.push_back(from.types[i]);
    to->known.push_back(std::move(from.known[i]));
  }
  for (size_t i = 0; i < order.size(); ++i) ids.nodes[order[i].index] = NodeId(i);
  return ids;
}

void move_nodes(Net& graph, const std::vector<NodeId>& order, const Renumbering& ids, Net* result) {
  for (const NodeId id : order) {
    Node node = std::move(graph[id]);
    ids.apply(node.inputs);
    ids.apply(node.outputs);
    std::vector<NodeId> control;
    for (const NodeId c : node.control)
      if (ids.nodes[c.index].valid()) control.push_back(ids.nodes[c.index]);
    node.control = std::move(control);
    result->nodes.push_back(std::move(node));
  }
  // Sets producers anew from the outputs: after edits such as take_over_output, a value's producer may be dead or another.
  for (Value& value : result->values) value.producer = NodeId();
  for (size_t i = 0; i < result->nodes.size(); ++i)
    for (size_t k = 0; k < result->nodes[i].outputs.size(); ++k) {
      const ValueId output = result->nodes[i].outputs[k];
      if (!output.valid()) continue;
      (*result)[output].producer = NodeId(i);
      (*result)[output].output = static_cast<uint32_t>(k);
    }
}

// Moves ports, variables and sparse links. A link is a hint: it is dropped when one of its values is.
void move_boundary(Net& graph, const Renumbering& ids, Net* result) {
  result->variables = std::move(graph.variables);
  for (Variable& v : result->variables) ids.apply(v.first), ids.apply(v.last);
  result->inputs = std::move(graph.inputs);
  ids.apply(result->inputs);
  result->outputs = std::move(graph.outputs);
  ids.apply(result->outputs);
  for (SparseLink link : graph.sparse_links) {
    ids.apply(link.of), ids.apply(link.indices), ids.apply(link.values);
    if (link.of.valid() && link.indices.valid() && link.values.valid()) result->sparse_links.push_back(std::move(link));
  }
}

}  // namespace

TypedNet Editor::finish() {
  if (!changed_) return std::move(net_);
  inherit_control();
  Net& graph = net_.net;
  TypedNet out;
  out.registry = net_.registry;
  out.shape_inputs = net_.shape_inputs;
  out.limits = net_.limits;
  out.devices = std::move(net_.devices);
  out.input_places = std::move(net_.input_places);
  out.output_places = std::move(net_.output_places);
  Net& result = out.net;
  result.name = std::move(graph.name);
  result.doc = std::move(graph.doc);
  result.operator_sets = std::move(graph.operator_sets);
  result.metadata = std::move(graph.metadata);
  result.keep_alive = std::move(graph.keep_alive);
  result.step_counter = graph.step_counter;
  const std::vector<NodeId> order = final_order();
  const Renumbering ids = renumber(net_, order, &out);
  move_nodes(graph, order, ids, &result);
  move_boundary(graph, ids, &result);
  return out;
}

}  // namespace heddle
