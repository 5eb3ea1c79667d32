#include "verify/structure_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/text/text.h"
#include "infer/infer.h"
#include "plugin/schema.h"
#include "resolve/updates.h"

namespace heddle {
namespace {

Status broken(std::string what) {
  return {Code::internal, std::move(what), "this is a defect of Heddle or of a plugin: please report it with the net"};
}

std::string text_of(const TensorType& type) {
  return std::string(to_string(type.dtype)) + (type.dynamic ? std::string("[?]") : type.shape.text());
}

// Extents known only in the run can not be compared, and folding may find them out.
bool agree(const TensorType& a, const TensorType& b) {
  return a.dtype == b.dtype && (a.late() || b.late() || a.shape == b.shape);
}

class StructureCheck {
 public:
  StructureCheck(TypedNet& typed, Evaluator* evaluator) : typed_(typed), net_(typed.net), evaluator_(evaluator) {}

  Status run() {
    const size_t count = net_.values.size();
    if (typed_.types.size() != count || typed_.known.size() != count)
      return broken(fmt::format("{} values have {} types", count, typed_.types.size()));
    HEDDLE_CHECK(check_variables());
    for (size_t i = 0; i < net_.nodes.size(); ++i) {
      const NodeId id(i);
      Status status = check_node(id);
      if (status.ok()) status = check_types(id);
      if (!status.ok()) return std::move(status).at(net_[id].name, display_name(net_[id].domain, net_[id].type)).in_net(net_.name);
    }
    HEDDLE_CHECK(check_hazards());
    return check_outputs();
  }

 private:
  bool exists(ValueId id) const { return id.index < net_.values.size(); }

  // Checks that `id` exists before a node at `position` runs.
  Status check_source(ValueId id, size_t position) const {
    if (!exists(id)) return broken("reads a value that is not in the net");
    const Value& value = net_[id];
    if (!value.producer.valid()) {
      const bool given = value.kind != Value::Kind::node_output && (value.kind != Value::Kind::variable || value.version == 0);
      return given ? Status() : broken(fmt::format("reads {}, which nothing makes", quoted(value.name)));
    }
    if (value.producer.index >= net_.nodes.size())
      return broken(fmt::format("reads {}, whose producer is not in the net", quoted(value.name)));
    const Node& producer = net_[value.producer];
    if (value.producer.index >= position)
      return broken(fmt::format("reads {}, which {} makes only after it", quoted(value.name), quoted(producer.name)));
    if (value.output >= producer.outputs.size() || producer.outputs[value.output] != id)
      return broken(fmt::format("reads {}, which {} does not make any more", quoted(value.name), quoted(producer.name)));
    return {};
  }

  Status check_node(NodeId id) const {
    const Node& node = net_[id];
    if (!node.schema) return broken("is not resolved");
    for (const ValueId v : node.inputs)
      if (v.valid()) HEDDLE_CHECK(check_source(v, id.index));
    const heddle_operator& op = *node.schema->op;
    for (uint32_t i = 0; i < op.input_count; ++i)
      if ((i >= node.inputs.size() || !node.inputs[i].valid()) && !(op.inputs[i]->flags & HEDDLE_PORT_OPTIONAL))
        return broken(fmt::format("has lost its input {}", quoted(op.inputs[i]->name)));
    for (const NodeId before : node.control)
      if (before.index >= id.index) return broken("waits for an operator that follows it");
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (!node.outputs[k].valid()) continue;
      if (!exists(node.outputs[k])) return broken("makes a value that is not in the net");
      const Value& value = net_[node.outputs[k]];
      if (value.producer != id || value.output != k) return broken(fmt::format("makes {}, which has another producer", quoted(value.name)));
    }
    return {};
  }

  // Returns the writer of the version that follows version `v`; invalid: there is none.
  NodeId overwriter(ValueId v) const {
    if (!v.valid() || !net_[v].variable.valid()) return {};
    const std::vector<ValueId>& versions = versions_[net_[v].variable.index];
    const size_t next = size_t{net_[v].version} + 1;
    return next < versions.size() ? net_[versions[next]].producer : NodeId();
  }

  // Readers of a version run before the writer of the next one, so no reader may depend on that writer.
  Status check_hazards() const {
    std::vector<std::vector<NodeId>> successors(net_.nodes.size());
    std::vector<uint32_t> waiting(net_.nodes.size(), 0);
    const auto add = [&](NodeId from, NodeId to) {
      successors[from.index].push_back(to);
      ++waiting[to.index];
    };
    bool any = false;
    for (size_t i = 0; i < net_.nodes.size(); ++i) {
      for (const ValueId v : net_.nodes[i].inputs) {
        if (v.valid() && net_[v].producer.valid()) add(net_[v].producer, NodeId(i));
        const NodeId writer = overwriter(v);
        if (!writer.valid() || writer.index == i) continue;
        add(NodeId(i), writer);
        any = true;
      }
      for (const NodeId before : net_.nodes[i].control) add(before, NodeId(i));
    }
    if (!any) return {};
    std::vector<NodeId> ready;
    for (size_t i = 0; i < waiting.size(); ++i)
      if (waiting[i] == 0) ready.emplace_back(i);
    while (!ready.empty()) {
      const NodeId done = ready.back();
      ready.pop_back();
      for (const NodeId next : successors[done.index])
        if (--waiting[next.index] == 0) ready.push_back(next);
    }
    for (size_t i = 0; i < waiting.size(); ++i)
      for (const ValueId v : net_.nodes[i].inputs)
        if (const NodeId writer = overwriter(v); waiting[i] > 0 && writer.valid() && writer.index != i && waiting[writer.index] > 0)
          return broken(fmt::format("reads {} and depends on {}, which overwrites it", quoted(net_[v].name), quoted(net_[writer].name)))
              .at(net_.nodes[i].name, display_name(net_.nodes[i].domain, net_.nodes[i].type))
              .in_net(net_.name);
    return {};
  }

  Status check_types(NodeId id) {
    const Node& node = net_[id];
    HEDDLE_TRY(const std::vector<TensorType> types, inferred_types(typed_, id, evaluator_), "when it was inferred again");
    for (size_t k = 0; k < types.size(); ++k) {
      const ValueId v = node.outputs[k];
      if (v.valid() && !agree(types[k], typed_.type(v)) && !typed_.known[v.index])
        return broken(
            fmt::format("makes {}, which is taken for {} and is {}", quoted(net_[v].name), text_of(typed_.type(v)), text_of(types[k])));
      if (v.valid() && types[k].dtype != typed_.type(v).dtype)
        return broken(fmt::format("makes {}, which is taken for {} and is {}", quoted(net_[v].name), to_string(typed_.type(v).dtype),
                                  to_string(types[k].dtype)));
    }
    return {};
  }

  // Checks that each version is made from the one before.
  Status check_variables() {
    versions_.resize(net_.variables.size());
    for (size_t i = 0; i < net_.values.size(); ++i) {
      const Value& value = net_.values[i];
      if (!value.variable.valid()) continue;
      if (value.variable.index >= versions_.size())
        return broken(fmt::format("value {} is of a variable that is not there", quoted(value.name)));
      std::vector<ValueId>& versions = versions_[value.variable.index];
      if (versions.size() <= value.version) versions.resize(size_t{value.version} + 1);
      versions[value.version] = ValueId(i);
    }
    for (size_t i = 0; i < net_.variables.size(); ++i) {
      const Variable& variable = net_.variables[i];
      const std::vector<ValueId>& versions = versions_[i];
      if (versions.empty() || versions.front() != variable.first || versions.back() != variable.last)
        return broken(fmt::format("variable {} does not begin or end with its own versions", quoted(variable.name)));
      for (size_t k = 1; k < versions.size(); ++k)
        if (!updates(versions[k], versions[k - 1]))
          return broken(fmt::format("version {} of variable {} is not made from the one before", k, quoted(variable.name)));
    }
    return {};
  }
  bool updates(ValueId version, ValueId before) const {
    if (!version.valid() || !before.valid() || net_[version].producer.index >= net_.nodes.size()) return false;
    const Node& node = net_[net_[version].producer];
    const int input = node.schema && net_[version].output < node.outputs.size() ? updated_input(net_, node, net_[version].output) : -1;
    return input >= 0 && static_cast<size_t>(input) < node.inputs.size() && node.inputs[static_cast<size_t>(input)] == before;
  }

  Status check_outputs() const {
    for (const ValueId id : net_.inputs)
      if (!exists(id)) return broken("an input of the net is none of its values").in_net(net_.name);
    for (const ValueId id : net_.outputs) {
      Status status = check_source(id, net_.nodes.size());
      if (!status.ok()) return broken(fmt::format("the net, at its outputs, {}", status.diagnostic().message)).in_net(net_.name);
    }
    return {};
  }

  TypedNet& typed_;
  const Net& net_;
  Evaluator* const evaluator_;
  std::vector<std::vector<ValueId>> versions_;  // by variable
};

void add_sources(const Net& net, const Node& node, std::vector<NodeId>& sources) {
  for (const ValueId v : node.inputs)
    if (v.valid() && net[v].producer.valid()) sources.push_back(net[v].producer);
}

}  // namespace

Status check_structure(TypedNet& net, Evaluator* evaluator) {
  return StructureCheck(net, evaluator).run();
}

std::vector<NetPromises::Port> NetPromises::ports(const TypedNet& net, const std::vector<ValueId>& values) {
  std::vector<Port> list;
  for (const ValueId id : values) list.push_back({net.net[id].name, net.type(id)});
  return list;
}

NetPromises::NetPromises(const TypedNet& net) : inputs_(ports(net, net.net.inputs)), outputs_(ports(net, net.net.outputs)) {
  for (const Variable& variable : net.net.variables) variables_.push_back({variable.name, net.net[variable.last].version});
  const std::vector<Node>& nodes = net.net.nodes;
  if (std::all_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.control.empty(); })) return;
  for (const Node& node : nodes) add_sources(net.net, node, nodes_.emplace_back(Waiting{node.name, node.control, {}}).producers);
}

Status NetPromises::same_ports(const char* what, const std::vector<Port>& before, const std::vector<Port>& after) {
  for (size_t i = 0; i < before.size(); ++i) {
    if (i >= after.size() || after[i].name != before[i].name)
      return broken(fmt::format("the net has lost its {} {}", what, quoted(before[i].name)));
    if (!agree(before[i].type, after[i].type))
      return broken(
          fmt::format("{} {} of the net was {} and is {}", what, quoted(before[i].name), text_of(before[i].type), text_of(after[i].type)));
  }
  if (after.size() > before.size()) return broken(fmt::format("the net has one more {}: {}", what, quoted(after.back().name)));
  return {};
}

Status NetPromises::kept_by(const TypedNet& net) const {
  HEDDLE_CHECK(same_ports("input", inputs_, ports(net, net.net.inputs)).in_net(net.net.name));
  HEDDLE_CHECK(same_ports("output", outputs_, ports(net, net.net.outputs)).in_net(net.net.name));
  for (size_t i = 0; i < variables_.size(); ++i) {
    const bool there = i < net.net.variables.size() && net.net.variables[i].name == variables_[i].name;
    if (!there || net.net[net.net.variables[i].last].version != variables_[i].last)
      return broken(fmt::format("an update of variable {} is lost", quoted(variables_[i].name))).in_net(net.net.name);
  }
  return nodes_.empty() ? Status() : order_kept(net.net).in_net(net.net.name);
}

// A removed node passes on what it waited for to the nodes that waited for it. Takes nodes times waiting ones: left out where that is long.
Status NetPromises::order_kept(const Net& net) const {
  const auto same = [](const Waiting& before, const Node& now) { return before.name == now.name && before.control == now.control; };
  if (std::equal(nodes_.begin(), nodes_.end(), net.nodes.begin(), net.nodes.end(), same)) return {};
  constexpr size_t max_looks = size_t{1} << 24;
  const auto waits = [](const Waiting& waiting) { return !waiting.control.empty(); };
  if (static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(), waits)) * net.nodes.size() > max_looks) return {};
  std::unordered_map<std::string, NodeId> left;  // invalid: several nodes have the name
  for (size_t i = 0; i < net.nodes.size(); ++i)
    if (const auto [it, fresh] = left.try_emplace(net.nodes[i].name, NodeId(i)); !fresh) it->second = NodeId();
  const auto find = [&](const std::string& name) {
    const auto it = left.find(name);
    return it == left.end() ? NodeId() : it->second;
  };
  for (const Waiting& waiting : nodes_) {
    const NodeId now = find(waiting.name);
    if (waiting.control.empty() || !now.valid()) continue;
    std::vector<char> behind(net.nodes.size(), 0);  // the nodes that `now` runs after
    std::vector<NodeId> open = {now};
    while (!open.empty()) {
      const NodeId at = open.back();
      open.pop_back();
      if (std::exchange(behind[at.index], 1)) continue;
      add_sources(net, net[at], open);
      open.insert(open.end(), net[at].control.begin(), net[at].control.end());
    }
    std::vector<char> seen(nodes_.size(), 0);
    open = waiting.control;
    while (!open.empty()) {
      const NodeId at = open.back();
      open.pop_back();
      if (std::exchange(seen[at.index], 1)) continue;
      const Waiting& awaited = nodes_[at.index];
      if (const NodeId there = find(awaited.name); there.valid()) {
        if (!behind[there.index])
          return broken(fmt::format("does not wait for {} any more", quoted(awaited.name))).at(waiting.name, net[now].type);
        continue;
      }
      open.insert(open.end(), awaited.producers.begin(), awaited.producers.end());
      open.insert(open.end(), awaited.control.begin(), awaited.control.end());
    }
  }
  return {};
}

}  // namespace heddle
