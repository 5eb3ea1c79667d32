#include "derive/predictor.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "net/averages.h"

namespace heddle {
namespace {

bool is_a(const Node& node, const char* domain, const char* type) {
  return node.domain == domain && node.type == type;
}

bool is_view_of_training(const Node& node) {
  return is_a(node, "heddle", "StopGradient") || is_a(node, "heddle", "ZeroGradient");
}

// An operator as it is when nothing learns.
void end_training(Node& node) {
  const bool drops = is_a(node, "", "Dropout"), normalises = is_a(node, "", "BatchNormalization");
  if (drops && node.inputs.size() > 2) node.inputs.resize(2);  // without training_mode
  if (!drops && !normalises) return;
  std::erase_if(node.attributes, [](const Attribute& a) { return a.name == "training_mode"; });
  node.outputs.resize(1);
}

// In the nets inside an operator too. What they give is fixed there: a mask is made as before, and running statistics stay what they were.
void end_training_inside(Node& node) {
  for (Attribute& attribute : node.attributes) {
    auto* const subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value);
    if (!subnet) continue;
    auto inner = std::make_shared<Net>(**subnet);
    std::vector<Node> nodes;
    const auto add = [&](Node added) {
      for (size_t i = 0; i < added.outputs.size(); ++i) {
        if (!added.outputs[i].valid()) continue;
        Value& value = (*inner)[added.outputs[i]];
        value.producer = NodeId(nodes.size());
        value.output = static_cast<uint32_t>(i);
      }
      nodes.push_back(std::move(added));
    };
    for (const Node& original : inner->nodes) {
      Node each = original;
      each.control.clear();
      end_training(each);
      end_training_inside(each);
      const bool normalises = is_a(each, "", "BatchNormalization");
      if (!normalises) each.outputs = original.outputs;
      add(each);
      for (size_t i = 1; normalises && i < original.outputs.size(); ++i) {
        if (!original.outputs[i].valid()) continue;
        Node same;
        same.name = fmt::format("{}.{}", original.name, i == 1 ? "running_mean" : "running_variance");
        same.type = "Identity";
        same.device = original.device;
        same.inputs = {original.inputs[i + 2]};
        same.outputs = {original.outputs[i]};
        add(std::move(same));
      }
    }
    inner->nodes = std::move(nodes);
    *subnet = std::move(inner);
  }
}

// In subnets too.
void place_on(const std::string& device, Node& node) {
  node.device = device;
  for (Attribute& attribute : node.attributes) {
    auto* const subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value);
    if (!subnet) continue;
    auto inner = std::make_shared<Net>(**subnet);
    for (Node& each : inner->nodes) place_on(device, each);
    *subnet = std::move(inner);
  }
}

class Extraction {
 public:
  Extraction(const Net& net, const PredictorOptions& options) : net_(net), options_(options) {}

  Result<Net> run() {
    made_.name = options_.name;
    made_.doc = net_.doc;
    made_.operator_sets = net_.operator_sets;
    made_.metadata = net_.metadata;
    forget_averages(made_);
    made_.keep_alive = net_.keep_alive;
    places_.assign(net_.values.size(), ValueId());
    needed_.assign(net_.nodes.size(), false);
    if (options_.outputs.empty()) return Status(Code::invalid_argument, "no output was named", "name what is to be predicted");
    for (const std::string& name : options_.inputs) {
      HEDDLE_TRY(const ValueId value, named(name));
      if (net_[value].kind == Value::Kind::variable)
        return Status(Code::invalid_argument, fmt::format("{} is a variable, and no input", quoted(name)),
                      "leave it out: it keeps its content");
      given_.push_back(value);
    }
    std::vector<ValueId> outputs;
    for (const std::string& name : options_.outputs) {
      HEDDLE_TRY(const ValueId value, named(name));
      outputs.push_back(value);
      HEDDLE_CHECK(need(value));
    }
    find_read(outputs);
    HEDDLE_CHECK(check_read());
    for (const ValueId input : given_.empty() ? net_.inputs : given_)
      if (!given_.empty() || is_read(input)) HEDDLE_CHECK(place(input).status());
    for (size_t i = 0; i < net_.nodes.size(); ++i)
      if (needed_[i]) HEDDLE_CHECK(add(net_.nodes[i]));
    for (const ValueId output : outputs) {
      HEDDLE_TRY(const ValueId value, place(output));
      made_.outputs.push_back(value);
    }
    if (options_.device)
      for (Node& node : made_.nodes) place_on(*options_.device, node);
    HEDDLE_CHECK(rename());
    return std::move(made_);
  }

 private:
  Result<ValueId> named(const std::string& name) const {
    const std::optional<ValueId> value = net_.find_value(name);
    if (value) return *value;
    return Status(Code::unknown_name, fmt::format("the net has no value {}", quoted(name)), "see heddle inspect");
  }

  // All at once: two may change their names.
  Status rename() {
    std::vector<std::pair<ValueId, const std::string*>> all;
    for (const auto& [name, called] : options_.rename) {
      const std::optional<ValueId> found = made_.find_value(name);
      const auto is_among = [&](const std::vector<ValueId>& ports) { return std::find(ports.begin(), ports.end(), *found) != ports.end(); };
      if (!found || !(is_among(made_.inputs) || is_among(made_.outputs)))
        return {Code::unknown_name, fmt::format("what predicts has no input or output {}", quoted(name)), "name one of those to rename it"};
      all.emplace_back(*found, &called);
    }
    for (const auto& [value, called] : all) made_[value].name = *called;
    for (const auto& renamed : all) {
      const std::string& called = *renamed.second;
      if (std::count_if(made_.values.begin(), made_.values.end(), [&](const Value& v) { return v.name == called; }) > 1)
        return {Code::duplicate_name, fmt::format("what predicts has a value {} already", quoted(called)), "choose another name"};
    }
    return {};
  }

  bool is_given(ValueId id) const { return std::find(given_.begin(), given_.end(), id) != given_.end(); }

  // Whether an operator that is needed reads it, or it is an output.
  bool is_read(ValueId id) const { return read_[id.index]; }
  void find_read(const std::vector<ValueId>& outputs) {
    read_.assign(net_.values.size(), false);
    for (const ValueId output : outputs) read_[output.index] = true;
    for (size_t i = 0; i < net_.nodes.size(); ++i) {
      if (!needed_[i]) continue;
      Node node = net_.nodes[i];
      end_training(node);
      for (const ValueId input : node.inputs)
        if (input.valid()) read_[input.index] = true;
    }
  }
  // What the operators that are needed read must not be something that only training makes: a mask, statistics of the batch.
  Status check_read() const {
    for (size_t i = 0; i < net_.nodes.size(); ++i) {
      if (!needed_[i]) continue;
      Node node = net_.nodes[i];
      end_training(node);
      for (size_t k = node.outputs.size(); k < net_.nodes[i].outputs.size(); ++k)
        if (const ValueId gone = net_.nodes[i].outputs[k]; gone.valid() && is_read(gone))
          return {Code::invalid_argument,
                  fmt::format("{} is needed, which operator {} makes in training alone", quoted(net_[gone].name), quoted(node.name)),
                  "name an output of what is computed without gradients"};
    }
    return {};
  }

  // Marks what makes it.
  Status need(ValueId id) {
    std::vector<ValueId> open = {id};
    while (!open.empty()) {
      const ValueId next = open.back();
      open.pop_back();
      if (!next.valid() || is_given(next)) continue;
      const Value& value = net_[next];
      if (value.kind == Value::Kind::variable && value.version > 0)
        return {Code::invalid_argument,
                fmt::format("{} is made of {}, which the net has updated", quoted(net_[id].name), quoted(value.name)),
                "name an output that comes before the updates"};
      if (value.kind == Value::Kind::input && !given_.empty())
        return {Code::missing_input, fmt::format("{} needs input {} too", quoted(net_[id].name), quoted(value.name)),
                "name it among the inputs, or another value between them"};
      if (!value.producer.valid() || needed_[value.producer.index]) continue;
      needed_[value.producer.index] = true;
      Node node = net_[value.producer];
      end_training(node);
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
    return {};
  }

  // The value in the net that is made.
  Result<ValueId> place(ValueId id) {
    if (!id.valid() || places_[id.index].valid()) return id.valid() ? places_[id.index] : id;
    Value value = net_[id];
    const ValueId made(made_.values.size());
    if (is_given(id) || value.kind == Value::Kind::input) {
      value.kind = Value::Kind::input;
      value.producer = {};
      if (value.type.dtype == DType::none)
        return Status(Code::invalid_argument, fmt::format("{} says no dtype and dims: it can't be given", quoted(value.name)),
                      "name inputs of the net");
      made_.inputs.push_back(made);
    }
    if (value.kind == Value::Kind::variable) {
      Variable variable = net_[value.variable];
      variable.first = variable.last = made;
      variable.trainable = false;
      value.variable = VariableId(made_.variables.size());
      made_.variables.push_back(std::move(variable));
    }
    made_.values.push_back(std::move(value));
    return places_[id.index] = made;
  }

  Status add(const Node& original) {
    Node node = original;
    end_training(node);
    end_training_inside(node);
    node.control.clear();
    for (ValueId& input : node.inputs) {
      HEDDLE_TRY(input, place(input));
    }
    if (is_view_of_training(node)) {
      const std::string& name = net_[original.outputs[0]].name;
      if (std::find(options_.outputs.begin(), options_.outputs.end(), name) == options_.outputs.end()) {
        places_[original.outputs[0].index] = node.inputs[0];
        return {};
      }
      node.domain.clear();  // an output keeps its name
      node.type = "Identity";
      node.version = 0;
    }
    const NodeId id(made_.nodes.size());
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i].valid()) continue;
      Value value = net_[original.outputs[i]];
      // What a Scan or Loop has stacked for its gradient alone is not wanted of it any more.
      if (node.has_subnet() && value.kind == Value::Kind::node_output && !is_read(original.outputs[i])) {
        node.outputs[i] = {};
        continue;
      }
      value.producer = id;
      places_[original.outputs[i].index] = node.outputs[i] = ValueId(made_.values.size());
      made_.values.push_back(std::move(value));
    }
    made_.nodes.push_back(std::move(node));
    return {};
  }

  const Net& net_;
  const PredictorOptions& options_;
  Net made_;
  std::vector<ValueId> given_;
  std::vector<ValueId> places_;  // by value of the net: in the one that is made
  std::vector<bool> needed_;     // by node
  std::vector<bool> read_;       // by value of the net
};

}  // namespace

Result<Net> predictor(const Net& net, const PredictorOptions& options) {
  return Extraction(net, options).run();
}

}  // namespace heddle
