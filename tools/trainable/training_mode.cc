#include "trainable/training_mode.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::trainable {

std::string unused_name(const Net& net, const std::string& wanted) {
  const auto is_taken = [&](const std::string& name) {
    return net.find_value(name) || std::any_of(net.nodes.begin(), net.nodes.end(), [&](const Node& node) { return node.name == name; });
  };
  std::string name = wanted;
  for (int number = 2; is_taken(name); ++number) name = fmt::format("{}_{}", wanted, number);
  return name;
}

bool is_running_statistic(const Node& node, size_t input) {
  return node.domain.empty() && node.type == "BatchNormalization" && (input == 3 || input == 4);
}

std::vector<char> running_statistics(const Net& net) {
  std::vector<char> marked(net.values.size(), 0);
  for (const Node& node : net.nodes)
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i].valid() && is_running_statistic(node, i)) marked[node.inputs[i].index] = 1;
  return marked;
}

void use_variables(Net& net, const std::vector<char>& marked) {
  const std::vector<char> statistics = running_statistics(net);
  for (size_t i = 0; i < marked.size(); ++i) {
    if (!marked[i]) continue;
    Value& value = net.values[i];
    Variable variable;
    variable.name = value.name;
    variable.type = value.type;
    variable.initial = std::move(value.content);
    variable.trainable = statistics[i] == 0;
    variable.first = variable.last = ValueId(i);
    value.content = {};
    value.kind = Value::Kind::variable;
    value.variable = VariableId(net.variables.size());
    net.variables.push_back(std::move(variable));
  }
}

void train_dropouts(NetBuilder& builder) {
  Net& net = builder.net();
  const bool yes = true;
  ValueId mode;
  for (Node& node : net.nodes) {
    if (!node.domain.empty() || node.type != "Dropout") continue;
    if (!mode.valid()) mode = builder.constant(unused_name(net, "training"), Blob::copy_of(DType::boolean, Shape{}, &yes));
    node.inputs.resize(3);
    node.inputs[2] = mode;
  }
}

void train_normalisations(NetBuilder& builder) {
  Net& net = builder.net();
  const size_t count = net.nodes.size();
  for (size_t n = 0; n < count; ++n) {
    if (!net.nodes[n].domain.empty() || net.nodes[n].type != "BatchNormalization") continue;
    net.nodes[n].attributes.push_back({"training_mode", int64_t{1}});
    for (const int which : {1, 2}) {
      Value output;
      output.name = unused_name(net, fmt::format("{}.{}", net.nodes[n].name, which == 1 ? "next_mean" : "next_var"));
      output.producer = NodeId(n);
      output.output = static_cast<uint32_t>(which);
      net.nodes[n].outputs.emplace_back(net.values.size());
      net.values.push_back(std::move(output));
      const ValueId running = net.nodes[n].inputs[static_cast<size_t>(which) + 2];
      const std::string name = unused_name(net, fmt::format("{}.update", net[running].name));
      builder.updates(builder.add1("Assign", name, {running, net.nodes[n].outputs.back()}, {}, "heddle"), running);
    }
  }
}

}  // namespace heddle::trainable
