#include "derive/data_parallel/replicate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/text/text.h"
#include "derive/data_parallel/combined_normalization.h"
#include "derive/data_parallel/join_replicas.h"
#include "derive/data_parallel/replica_choice.h"
#include "derive/emitter.h"
#include "plugin/schema.h"
#include "resolve/resolve.h"
#include "resolve/subnet_ports.h"

namespace heddle {
namespace {

class Replication {
 public:
  // `types`: of the net, where statistics are combined; else null.
  Replication(const Net& net, const RegistrySnapshot& registry, const DataParallelOptions& options, ReplicaChoice choice,
              const PolymorphicTypes* types)
      : from_(net), options_(options), types_(types), choice_(std::move(choice)), net_(net), emitter_(net_, registry) {}

  Result<Replicas> run() {
    net_.nodes.clear();
    net_.values.clear();
    net_.variables.clear();
    net_.inputs.clear();
    net_.outputs.clear();
    net_.sparse_links.clear();
    values_.assign(replicas(), std::vector<ValueId>(from_.values.size()));
    nodes_.assign(replicas(), std::vector<NodeId>(from_.nodes.size()));
    copy_variables();
    copy_inputs_and_constants();
    HEDDLE_CHECK(split_inputs());
    for (uint32_t n = 0; n < from_.nodes.size(); ++n)
      for (size_t k = 0; k < replicas(); ++k)
        if (is_combined(from_.nodes[n])) {
          HEDDLE_CHECK(combine(NodeId(n), k));
        } else if (!is_broadcast(from_.nodes[n])) {
          copy_node(NodeId(n), k);
        }
    HEDDLE_CHECK(synchronise());
    for (size_t k = 0; k < replicas(); ++k)
      for (uint32_t n = 0; n < from_.nodes.size(); ++n)
        for (const NodeId before : from_.nodes[n].control) net_[nodes_[k][n]].control.push_back(nodes_[k][before.index]);
    Replicas made;
    for (size_t k = 0; k < replicas(); ++k) {
      std::vector<std::string>& names = made.values.emplace_back();
      for (const ValueId id : values_[k]) names.push_back(id.valid() ? net_[id].name : std::string());
    }
    for (const std::vector<VariableId>& ids : variables_) {
      std::vector<std::string>& names = made.variables.emplace_back();
      for (const VariableId id : ids) names.push_back(net_[id].name);
    }
    made.choice = std::move(choice_);
    made.net = std::move(net_);
    return made;
  }

 private:
  size_t replicas() const { return choice_.devices.size(); }
  std::string name_of(const std::string& name, size_t replica) {
    return replica == 0 ? name : emitter_.unused_name(fmt::format("{}@{}", name, choice_.devices[replica]));
  }
  ValueId add(Value value) {
    net_.values.push_back(std::move(value));
    return ValueId(net_.values.size() - 1);
  }
  VariableId variable_of(VariableId id, size_t replica) const {
    const std::vector<VariableId>& own = variables_[id.index];
    return own.size() == 1 ? own[0] : own[replica];
  }

  void copy_variables() {
    for (uint32_t v = 0; v < from_.variables.size(); ++v) {
      std::vector<VariableId>& own = variables_.emplace_back();
      for (size_t k = 0; k < (choice_.single[v] ? 1 : replicas()); ++k) {
        Variable copy = from_.variables[v];
        copy.name = name_of(copy.name, k);
        if (k > 0) {
          copy.replica_of = from_.variables[v].name;
          copy.initial = {};
          copy.initializer.clear();
        }
        const ValueId before = copy.first;
        const VariableId id(net_.variables.size());
        Value value = from_[before];
        value.variable = id;
        if (k > 0) value.name = copy.name;
        copy.first = copy.last = add(std::move(value));
        values_[k][before.index] = copy.first;
        net_.variables.push_back(std::move(copy));
        own.push_back(id);
      }
      if (own.size() == 1)
        for (size_t k = 1; k < replicas(); ++k) values_[k][from_.variables[v].first.index] = values_[0][from_.variables[v].first.index];
    }
    if (from_.step_counter.valid()) net_.step_counter = variables_[from_.step_counter.index][0];
  }

  void copy_inputs_and_constants() {
    for (uint32_t v = 0; v < from_.values.size(); ++v) {
      if (from_.values[v].kind != Value::Kind::input && from_.values[v].kind != Value::Kind::constant) continue;
      const ValueId shared = add(from_.values[v]);
      for (size_t k = 0; k < replicas(); ++k) values_[k][v] = shared;
    }
    for (const ValueId input : from_.inputs) net_.inputs.push_back(values_[0][input.index]);
  }

  Status split_inputs() {
    if (replicas() == 1 && (options_.ranks == 1 || !draws())) return {};
    for (size_t i = 0; i < from_.inputs.size(); ++i) {
      const ValueId input = from_.inputs[i];
      if (!choice_.split[input.index]) continue;
      for (size_t k = 0; k < replicas(); ++k) {
        emitter_.derive_from(fmt::format("{}@{}", from_[input].name, choice_.devices[k]), "cpu");
        std::vector<Attribute> attributes = {{"part", static_cast<int64_t>(k)}, {"parts", static_cast<int64_t>(replicas())}};
        if (options_.ranks > 1) attributes.push_back({"communicator", options_.communicator});
        HEDDLE_TRY(values_[k][input.index], emitter_.emit1("heddle", "Shard", {net_.inputs[i]}, std::move(attributes)));
      }
    }
    return {};
  }

  // Whether the net draws random numbers for rows of the batch.
  bool draws() const {
    return std::any_of(from_.nodes.begin(), from_.nodes.end(), [&](const Node& node) { return is_random(node) && is_of_batch(node); });
  }
  static bool is_random(const Node& node) { return node.schema && node.schema->has_trait(HEDDLE_TRAIT_RANDOM); }
  bool is_of_batch(const Node& node) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId output) { return output.valid() && choice_.of_batch[output.index]; });
  }

  void copy_node(NodeId id, size_t replica) {
    const Node& node = from_[id];
    if (replica > 0 && is_random(node) && !is_of_batch(node)) {  // the same numbers for all rows
      for (const ValueId output : node.outputs)
        if (output.valid()) values_[replica][output.index] = values_[0][output.index];
      nodes_[replica][id.index] = nodes_[0][id.index];
      return;
    }
    const NodeId made(net_.nodes.size());
    Node copy = node;
    copy.name = name_of(node.name, replica);
    copy.device = choice_.is_on_host(from_, node) ? "cpu" : choice_.place_of(replica);
    copy.control.clear();
    for (ValueId& input : copy.inputs)
      if (input.valid()) input = values_[replica][input.index];
    for (size_t i = 0; i < copy.outputs.size(); ++i) {
      const ValueId output = node.outputs[i];
      if (!output.valid()) continue;
      Value value = from_[output];
      value.name = value.name == node.name ? copy.name : name_of(value.name, replica);
      value.producer = made;
      if (replicas() > 1 && value.kind == Value::Kind::node_output) value.type = {};  // declared for the whole batch
      if (value.variable.valid()) value.variable = variable_of(value.variable, replica);
      const VariableId variable = value.variable;
      values_[replica][output.index] = copy.outputs[i] = add(std::move(value));
      if (variable.valid()) net_[variable].last = copy.outputs[i];
    }
    net_.nodes.push_back(std::move(copy));
    nodes_[replica][id.index] = made;
  }

  bool is_combined(const Node& node) const { return types_ && choice_.has_peers && normalizes_batch(node) && is_of_batch(node); }
  Status combine(NodeId id, size_t replica) {
    const Node& node = from_[id];
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(input.valid() ? values_[replica][input.index] : input);
    emitter_.derive_from(name_of(node.name, replica), choice_.place_of(replica));
    HEDDLE_TRY(const std::vector<ValueId> outputs, combined_normalization(emitter_, *types_, node, inputs, options_.communicator));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].valid() || !node.outputs[i].valid()) continue;
      values_[replica][node.outputs[i].index] = outputs[i];
      if (replica == 0) net_[outputs[i]].name = from_[node.outputs[i]].name;
    }
    nodes_[replica][id.index] = net_[outputs[0]].producer;
    return {};
  }

  // Whether the node writes a variable that all replicas have from a value that each computes from its own rows.
  bool is_broadcast(const Node& node) const {
    if (!choice_.has_peers || node.domain != "heddle" || node.type != "Assign" || node.inputs.size() < 2) return false;
    const VariableId variable = from_[node.inputs[0]].variable;
    return variable.valid() && !choice_.single[variable.index] && node.inputs[1].valid() && choice_.of_batch[node.inputs[1].index];
  }

  // Copies these nodes, which write what replica 0 of rank 0 has computed, and refuses other updates by a replica's own rows.
  Status synchronise() {
    std::vector<NodeId> writers;
    for (uint32_t n = 0; n < from_.nodes.size(); ++n) {
      const Node& node = from_.nodes[n];
      if (is_broadcast(node)) writers.emplace_back(n);
      for (const ValueId output : node.outputs)
        if (choice_.has_peers && !is_broadcast(node) && output.valid() && from_[output].variable.valid() && choice_.of_batch[output.index])
          return {Code::invalid_argument,
                  fmt::format("variable {} is updated by operator {} ({}) from rows of the batch, which replicas have parts of",
                              quoted(from_[from_[output].variable].name), quoted(node.name), node.type),
                  "compute its new content, and let heddle::Assign write it: that of the first replica is written on all"};
    }
    // All that is written goes in one step.
    for (size_t k = 0; k < replicas() && !writers.empty(); ++k) {
      std::vector<ValueId> sources;
      for (const NodeId writer : writers) sources.push_back(values_[k][from_[writer].inputs[1].index]);
      emitter_.derive_from(replicas() > 1 ? "statistics@" + choice_.devices[k] : std::string("statistics"), choice_.devices[k]);
      HEDDLE_TRY(const std::vector<ValueId> all, emitter_.emit("heddle", "Broadcast", sources, sources.size(),
                                                               {{"communicator", options_.communicator}, {"root", int64_t{0}}}));
      for (size_t i = 0; i < writers.size(); ++i) {
        copy_node(writers[i], k);
        net_.nodes.back().inputs[1] = all[i];
      }
    }
    return {};
  }

  const Net& from_;
  const DataParallelOptions& options_;
  const PolymorphicTypes* const types_;
  ReplicaChoice choice_;
  Net net_;
  Emitter emitter_;                                 // knows the names of the net that is copied
  std::vector<std::vector<ValueId>> values_;        // by replica, and value of the net that is copied
  std::vector<std::vector<NodeId>> nodes_;          // likewise
  std::vector<std::vector<VariableId>> variables_;  // by variable, and replica; one: it is single
};

}  // namespace

Result<ReplicatedNet> replicate(const Net& net, const std::shared_ptr<const RegistrySnapshot>& registry, Evaluator& evaluator,
                                const DataParallelOptions& options, const std::vector<std::string>& losses,
                                const std::vector<std::pair<std::string, int64_t>>& symbols, const Limits& limits) {
  HEDDLE_TRY(ReplicaChoice choice, choose_replicas(net, options));
  std::optional<PolymorphicTypes> types;
  if (options.combine_statistics) {
    HEDDLE_TRY(types, PolymorphicTypes::infer(net, registry, evaluator, symbols, limits));
  }
  HEDDLE_TRY(Replicas replicas, Replication(net, *registry, options, std::move(choice), types ? &*types : nullptr).run());
  HEDDLE_TRY(replicas.net, resolve(std::move(replicas.net), registry, limits));
  ReplicatedNet made;
  HEDDLE_TRY(made.losses, join_replicas(net, registry, evaluator, options, losses, symbols, limits, replicas));
  HEDDLE_TRY(made.net, resolve(std::move(replicas.net), registry, limits));
  disown_variables(made.net);
  const std::string key = ranks_key(options.communicator);
  std::erase_if(made.net.metadata, [&](const auto& entry) { return entry.first == key; });
  if (options.ranks > 1) made.net.metadata.emplace_back(key, fmt::to_string(options.ranks));
  made.variables = std::move(replicas.variables);
  return made;
}

}  // namespace heddle
