#include "derive/predictor/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/device_name.h"
#include "base/text/text.h"
#include "derive/predictor/without_training.h"
#include "net/averages.h"
#include "net/batch_parts.h"

namespace heddle {
namespace {

bool is_view_of_training(const Node& node) {
  return node.domain == "heddle" && (node.type == "StopGradient" || node.type == "ZeroGradient");
}

// Places the operators of subnets, too.
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
    std::erase_if(made_.metadata, [](const auto& entry) { return entry.first.starts_with(ranks_key({})); });  // it predicts alone
    forget_averages(made_);
    made_.keep_alive = net_.keep_alive;
    places_.assign(net_.values.size(), ValueId());
    needed_.resize(net_.nodes.size());
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
    }
    HEDDLE_CHECK(find_needed(outputs));
    HEDDLE_CHECK(check_read());
    find_replica();
    for (const ValueId input : given_.empty() ? net_.inputs : given_)
      if (!given_.empty() || is_read(input)) HEDDLE_CHECK(place(input).status());
    for (size_t i = 0; i < net_.nodes.size(); ++i) {
      if (!needed_[i]) continue;
      if (!of_first_replica_ || !is_shard(net_.nodes[i])) {
        HEDDLE_CHECK(add(std::move(*needed_[i]), net_.nodes[i]));
      } else {  // there is one replica: it gets the whole batch
        HEDDLE_TRY(places_[net_.nodes[i].outputs[0].index], place(net_.nodes[i].inputs[0]));
      }
    }
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

  // Renames all at once: two may exchange their names.
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

  // Finds out whether all that is needed is the first replica of a data-parallel net. Then it is not divided any more, and its operators
  // name no device, as before that net was derived.
  void find_replica() {
    for (size_t i = 0; i < net_.nodes.size(); ++i) {
      if (!needed_[i] || !is_shard(net_.nodes[i])) continue;
      of_first_replica_ = net_.nodes[i].int_attribute("part", 0) == 0;
      if (!of_first_replica_) return;
    }
    if (!of_first_replica_) return;
    for (std::optional<Node>& node : needed_)
      if (node && allows_host(node->device)) node->device = {};
  }

  bool is_given(ValueId id) const { return std::find(given_.begin(), given_.end(), id) != given_.end(); }

  // Whether an operator that is needed reads it, or it is an output.
  bool is_read(ValueId id) const { return wanted_for_[id.index].valid(); }

  // Visits operators from the last to the first, so that all readers of an output have been seen before its producer.
  Status find_needed(const std::vector<ValueId>& outputs) {
    wanted_for_.assign(net_.values.size(), ValueId());
    for (const ValueId output : outputs) HEDDLE_CHECK(read(output, output));
    for (size_t i = net_.nodes.size(); i-- > 0;) {
      const Node& node = net_.nodes[i];
      std::vector<bool> wanted;
      ValueId wanted_for;
      for (const ValueId output : node.outputs) {
        wanted.push_back(output.valid() && is_read(output) && !is_given(output));
        if (wanted.back() && !wanted_for.valid()) wanted_for = wanted_for_[output.index];
      }
      if (!wanted_for.valid()) continue;
      needed_[i] = without_training(node, wanted);
      HEDDLE_CHECK(check_updates(node, *needed_[i], wanted_for));
      for (const ValueId input : needed_[i]->inputs) HEDDLE_CHECK(read(input, wanted_for));
    }
    return {};
  }
  // Refuses a branch that reads a variable that it has updated: the predictor would have to update a value that is no variable there.
  Status check_updates(const Node& node, const Node& made, ValueId by) const {
    const size_t before = node.domain.empty() && node.type == "Loop" ? 1 : 0;  // outputs of the body that the operator does not give
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId output = node.outputs[k];
      if (!output.valid() || is_read(output) || net_[output].kind != Value::Kind::variable) continue;
      for (const Attribute& attribute : node.attributes) {
        const auto* const subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value);
        if (!subnet || k + before >= (*subnet)->outputs.size()) continue;
        const Value& update = (**subnet)[(*subnet)->outputs[k + before]];
        const auto* const left = std::get_if<std::shared_ptr<const Net>>(made.find(attribute.name));
        const std::optional<ValueId> found = left ? (*left)->find_value(update.name) : std::nullopt;
        if (found && (**left)[*found].producer.valid())
          return {Code::invalid_argument,
                  fmt::format("{} is made of {}, which {} updates in subnet {}", quoted(net_[by].name),
                              quoted(net_[net_[output].variable].name), quoted(node.name), quoted((*subnet)->name)),
                  "name an output that comes before the updates"};
      }
    }
    return {};
  }
  // Marks `id` as needed. `by`: the output that is computed from it.
  Status read(ValueId id, ValueId by) {
    if (!id.valid() || is_read(id)) return {};
    wanted_for_[id.index] = by;
    const Value& value = net_[id];
    if (is_given(id)) return {};
    if (value.kind == Value::Kind::variable && value.version > 0)
      return {Code::invalid_argument, fmt::format("{} is made of {}, which the net has updated", quoted(net_[by].name), quoted(value.name)),
              "name an output that comes before the updates"};
    if (value.kind == Value::Kind::input && !given_.empty())
      return {Code::missing_input, fmt::format("{} needs input {} too", quoted(net_[by].name), quoted(value.name)),
              "name it among the inputs, or another value between them"};
    return {};
  }
  // Refuses values that only training makes (a mask, statistics of the batch) as inputs of the operators that are needed.
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

  // Returns the value's counterpart in the predictor's net.
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

  Status add(Node node, const Node& original) {
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
      node.domain = {};  // an output keeps its name
      node.type = "Identity";
      node.version = 0;
    }
    const NodeId id(made_.nodes.size());
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i].valid()) continue;
      const ValueId before = node.outputs[i];
      Value value = net_[before];
      value.producer = id;
      value.output = static_cast<uint32_t>(i);
      places_[before.index] = node.outputs[i] = ValueId(made_.values.size());
      made_.values.push_back(std::move(value));
    }
    made_.nodes.push_back(std::move(node));
    return {};
  }

  const Net& net_;
  const PredictorOptions& options_;
  Net made_;
  std::vector<ValueId> given_;
  bool of_first_replica_ = false;
  std::vector<ValueId> places_;              // by value of the net: its counterpart in the predictor's net
  std::vector<std::optional<Node>> needed_;  // by node: its inference form
  std::vector<ValueId> wanted_for_;          // by value of the net: the first output that is computed from it
};

}  // namespace

Result<Net> predictor(const Net& net, const PredictorOptions& options) {
  return Extraction(net, options).run();
}

}  // namespace heddle
