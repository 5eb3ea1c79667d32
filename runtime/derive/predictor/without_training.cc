#include "derive/predictor/without_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "plugin/schema.h"

namespace heddle {
namespace {

bool is_a(const Node& node, const char* domain, const char* type) {
  return node.domain == domain && node.type == type;
}

// How the ports of an ONNX operator that runs subnets correspond to those of its subnets.
struct SubnetPorts {
  size_t outputs_before = 0;       // outputs of the subnet before those that the operator passes on
  size_t states = 0;               // outputs that the next iteration takes: they stay
  size_t first_capture = 0;        // an input of the operator
  size_t inputs_before = 0;        // inputs of the operator before those that the subnet takes
  bool has_capture_count = false;  // the attribute "captured"
};

std::optional<SubnetPorts> subnet_ports(const Node& node) {
  if (!node.domain.empty()) return std::nullopt;
  const auto captured = static_cast<size_t>(node.int_attribute("captured", 0));
  const size_t others = node.inputs.size() - std::min(node.inputs.size(), captured);
  if (node.type == "If") return SubnetPorts{0, 0, 1, 1, false};
  if (node.type == "Loop" && others >= 2) return SubnetPorts{1, others - 2, others, 0, true};
  const auto slices = static_cast<size_t>(node.int_attribute("num_scan_inputs", 0));
  if (node.type == "Scan" && others >= slices) return SubnetPorts{0, others - slices, others, 0, true};
  return std::nullopt;
}

template <class T>
void keep(std::vector<T>& all, const std::vector<bool>& kept) {
  size_t next = 0;
  for (size_t i = 0; i < all.size(); ++i)
    if (i >= kept.size() || kept[i]) all[next++] = std::move(all[i]);
  all.resize(next);
}

void set(Node& node, const char* name, AttributeValue value) {
  for (Attribute& attribute : node.attributes)
    if (attribute.name == name) attribute.value = std::move(value);
}

// A net inside an operator, without the nodes that only served outputs which are not wanted.
class Body {
 public:
  explicit Body(std::shared_ptr<const Net> net) : held_(std::move(net)), net_(*held_) {}

  // Finds the nodes that remain. `wanted`: by output.
  void sweep(const std::vector<bool>& wanted) {
    wanted_ = wanted;
    wanted_.resize(net_.outputs.size(), false);
    read_.assign(net_.values.size(), false);
    for (size_t k = 0; k < wanted_.size(); ++k)
      if (wanted_[k]) read_[net_.outputs[k].index] = true;
    find_read_before();
    nodes_.resize(net_.nodes.size());
    for (size_t i = nodes_.size(); i-- > 0;) nodes_[i] = needed(net_.nodes[i]);
  }
  size_t input_count() const { return net_.inputs.size(); }
  // Whether any remaining node reads an input.
  bool reads(size_t input) const { return input < net_.inputs.size() && read_[net_.inputs[input].index]; }

  // Returns the remaining net. `taken`: by input, whether it is passed.
  std::shared_ptr<const Net> made(const std::vector<bool>& taken) {
    made_ = net_;
    made_.values.clear();
    made_.nodes.clear();
    made_.inputs.clear();
    made_.outputs.clear();
    places_.assign(net_.values.size(), ValueId());
    for (size_t i = 0; i < net_.inputs.size(); ++i)
      if (taken[i]) made_.inputs.push_back(place(net_.inputs[i]));
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i]) continue;
      add(std::move(*nodes_[i]));
      for (Node& same : running_statistics(net_.nodes[i])) add(std::move(same));
    }
    for (size_t k = 0; k < wanted_.size(); ++k)
      if (wanted_[k]) made_.outputs.push_back(place(net_.outputs[k]));
    return std::make_shared<const Net>(std::move(made_));
  }

 private:
  void find_read_before() {
    read_before_.assign(net_.values.size(), false);
    for (const ValueId output : net_.outputs) read_before_[output.index] = true;
    for (const Node& node : net_.nodes)
      for (const ValueId input : node.inputs)
        if (input.valid()) read_before_[input.index] = true;
  }

  // Returns the node in its inference form. None: all its outputs that were read before are unread now. A node whose outputs were never
  // read has an effect of its own, and stays.
  std::optional<Node> needed(const Node& node) {
    bool any = false, any_before = false;
    std::vector<bool> wanted;
    for (const ValueId output : node.outputs) {
      wanted.push_back(output.valid() && read_[output.index]);
      any = any || wanted.back();
      any_before = any_before || (output.valid() && read_before_[output.index]);
    }
    if (any_before && !any) return std::nullopt;
    if (!any_before) wanted.assign(wanted.size(), true);
    Node made = without_training(node, wanted);
    const auto read = [&](const Node& reader) {
      for (const ValueId input : reader.inputs)
        if (input.valid()) read_[input.index] = true;
    };
    read(made);
    for (const Node& same : running_statistics(node)) read(same);
    return made;
  }

  // Returns nodes that give the running statistics, which BatchNormalization was given, in place of those that it computes in training.
  std::vector<Node> running_statistics(const Node& node) const {
    std::vector<Node> all;
    if (!is_a(node, "", "BatchNormalization")) return all;
    for (size_t i = 1; i < node.outputs.size() && i + 2 < node.inputs.size(); ++i) {
      if (!node.outputs[i].valid() || !read_[node.outputs[i].index]) continue;
      Node same;
      same.name = unused_name(fmt::format("{}.{}", node.name, i == 1 ? "running_mean" : "running_variance"));
      same.type = "Identity";
      same.device = node.device;
      same.inputs = {node.inputs[i + 2]};
      same.outputs = {node.outputs[i]};
      all.push_back(std::move(same));
    }
    return all;
  }

  std::string unused_name(std::string name) const {
    const auto has_it = [&](const Node& node) { return node.name == name; };
    while (std::any_of(net_.nodes.begin(), net_.nodes.end(), has_it)) name += '_';
    return name;
  }

  ValueId place(ValueId id) {
    if (!id.valid() || places_[id.index].valid()) return id.valid() ? places_[id.index] : id;
    made_.values.push_back(net_[id]);
    return places_[id.index] = ValueId(made_.values.size() - 1);
  }
  void add(Node node) {
    node.control.clear();
    for (ValueId& input : node.inputs) input = place(input);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i].valid()) continue;
      node.outputs[i] = place(node.outputs[i]);
      Value& value = made_[node.outputs[i]];
      value.producer = NodeId(made_.nodes.size());
      value.output = static_cast<uint32_t>(i);
    }
    made_.nodes.push_back(std::move(node));
  }

  std::shared_ptr<const Net> held_;
  const Net& net_;
  Net made_;
  std::vector<bool> wanted_;                // by output
  std::vector<bool> read_, read_before_;    // by value: in the remaining net, and in the net as it was
  std::vector<std::optional<Node>> nodes_;  // the remaining form of each
  std::vector<ValueId> places_;
};

// Converts the nets inside an operator to their inference form. `given`: by output of each.
void end_training_inside(Node& node, const std::vector<bool>& given, const SubnetPorts* ports) {
  std::vector<std::pair<AttributeValue*, Body>> bodies;
  size_t inputs = 0;
  for (Attribute& attribute : node.attributes) {
    const auto* const subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value);
    if (!subnet) continue;
    Body& body = bodies.emplace_back(&attribute.value, Body(*subnet)).second;
    body.sweep(ports ? given : std::vector<bool>((*subnet)->outputs.size(), true));
    inputs = std::max(inputs, body.input_count());
  }
  // Inputs that none of them reads any more are not passed to them.
  std::vector<bool> taken(inputs, true);
  const size_t first = ports ? ports->first_capture - ports->inputs_before : inputs;
  for (size_t i = first; i < inputs; ++i)
    taken[i] = std::any_of(bodies.begin(), bodies.end(), [&](const auto& body) { return body.second.reads(i); });
  for (auto& [value, body] : bodies) *value = body.made(taken);
  if (!ports) return;
  const int64_t captured = std::count(taken.begin() + static_cast<std::ptrdiff_t>(std::min(first, inputs)), taken.end(), true);
  taken.insert(taken.begin(), ports->inputs_before, true);
  keep(node.inputs, taken);
  if (ports->has_capture_count) set(node, "captured", captured);
}

void leave_out_ports(Node& node, const SubnetPorts& ports, const std::vector<bool>& wanted) {
  std::vector<bool> given(ports.outputs_before, true), kept;
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    kept.push_back(k < ports.states || wanted[k]);
    given.push_back(kept.back());
    if (!wanted[k]) node.outputs[k] = {};
  }
  given.resize(std::max(given.size(), ports.outputs_before + ports.states), true);
  keep(node.outputs, kept);
  const std::vector<bool> scans(kept.begin() + static_cast<std::ptrdiff_t>(std::min(ports.states, kept.size())), kept.end());
  for (const char* name : {"scan_output_axes", "scan_output_directions"}) {
    const AttributeValue* const listed = node.find(name);
    if (!listed || !std::holds_alternative<std::vector<int64_t>>(*listed)) continue;
    auto values = std::get<std::vector<int64_t>>(*listed);
    keep(values, scans);
    set(node, name, std::move(values));
  }
  end_training_inside(node, given, &ports);
}

}  // namespace

bool may_leave_out(const Node& node, size_t output) {
  if (node.schema) {
    const heddle_port* const port = node.schema->output_port(output);
    return port && (port->flags & HEDDLE_PORT_OPTIONAL) != 0;
  }
  struct Known {
    std::string_view domain, type;
    size_t first;  // the first of these outputs
  };
  static constexpr auto known = std::to_array<Known>({{"", "BatchNormalization", 1},
                                                      {"", "GRU", 0},
                                                      {"", "LSTM", 0},
                                                      {"", "LayerNormalization", 1},
                                                      {"", "MaxPool", 1},
                                                      {"", "RNN", 0},
                                                      {"", "SoftmaxCrossEntropyLoss", 1},
                                                      {"", "Unique", 1},
                                                      {"heddle", "EmbeddingBag", 1},
                                                      {"heddle", "SparseLengthsMean", 1},
                                                      {"heddle", "SparseLengthsSum", 1},
                                                      {"heddle", "SparseLengthsWeightedSum", 1}});
  return std::any_of(known.begin(), known.end(),
                     [&](const Known& one) { return one.domain == node.domain && one.type == node.type && output >= one.first; });
}

void end_training(Node& node) {
  const bool drops = is_a(node, "", "Dropout"), normalises = is_a(node, "", "BatchNormalization");
  if (drops && node.inputs.size() > 2) node.inputs.resize(2);  // without training_mode
  if (!drops && !normalises) return;
  std::erase_if(node.attributes, [](const Attribute& a) { return a.name == "training_mode"; });
  node.outputs.resize(1);
}

Node without_training(const Node& node, const std::vector<bool>& wanted) {
  Node made = node;
  end_training(made);
  // A mask that something inside reads is computed as before.
  const bool is_mask_wanted = is_a(node, "", "Dropout") && node.outputs.size() > 1 && wanted[1];
  if (is_mask_wanted) made.outputs = node.outputs;
  if (const auto ports = subnet_ports(made)) {
    leave_out_ports(made, *ports, wanted);
  } else {
    for (size_t k = 0; k < made.outputs.size(); ++k)
      if (!wanted[k] && (made.has_subnet() || may_leave_out(made, k))) made.outputs[k] = {};
    end_training_inside(made, {}, nullptr);
  }
  while (!made.outputs.empty() && !made.outputs.back().valid()) made.outputs.pop_back();
  return made;
}

}  // namespace heddle
