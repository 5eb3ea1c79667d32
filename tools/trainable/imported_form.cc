#include "trainable/imported_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text/text.h"
#include "derive/predictor/predictor.h"
#include "resolve/resolve.h"
#include "trainable/losses.h"
#include "trainable/training_mode.h"
#include "trainable/value_types.h"

namespace heddle::trainable {
namespace {

bool normalises(const Net& net) {
  return std::any_of(net.nodes.begin(), net.nodes.end(), [](const Node& node) {
    return (node.domain.empty() && node.type == "BatchNormalization") ||
           std::any_of(node.attributes.begin(), node.attributes.end(), [](const Attribute& attribute) {
             const auto* const subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value);
             return subnet && normalises(**subnet);
           });
  });
}

// A branch would have to hand out the statistics that it updates.
Status check_subnets(const Net& net) {
  for (const Node& node : net.nodes)
    for (const Attribute& attribute : node.attributes)
      if (const auto* const subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value); subnet && normalises(**subnet))
        return Status(Code::unsupported,
                      fmt::format("{} has a BatchNormalization in {}, whose running statistics can't be updated", node.type,
                                  quoted(attribute.name)),
                      "export the model without control flow around it")
            .at(node.name, node.type);
  return {};
}

// Returns the constant that a value is a copy of. None: it is none.
std::optional<ValueId> constant_of(const Net& net, ValueId id) {
  while (net[id].kind == Value::Kind::node_output) {
    const Node& producer = net[net[id].producer];
    if (!producer.domain.empty() || producer.type != "Identity" || !producer.inputs[0].valid()) return std::nullopt;
    id = producer.inputs[0];
  }
  return net[id].kind == Value::Kind::constant ? std::optional(id) : std::nullopt;
}

// Exporters write equal constants once. As running statistics they would all be updated: each normalisation gets its own.
Status part_statistics(Net& net) {
  std::vector<int> readers(net.values.size(), 0);
  for (const Node& node : net.nodes)
    for (const ValueId input : node.inputs)
      if (input.valid()) ++readers[input.index];
  for (size_t n = 0; n < net.nodes.size(); ++n)
    for (size_t i = 0; i < net.nodes[n].inputs.size(); ++i) {
      const Node& node = net.nodes[n];
      if (!is_running_statistic(node, i)) continue;
      const ValueId before = node.inputs[i];
      const std::optional<ValueId> found = before.valid() ? constant_of(net, before) : std::nullopt;
      if (!found)
        return Status(Code::unsupported,
                      fmt::format("the running {} is no constant, so that it can't be updated", i == 3 ? "mean" : "variance"),
                      "export the model with running statistics as initializers")
            .at(node.name, node.type);
      if (found == before && readers[before.index] == 1) continue;
      Value copy = net[*found];
      copy.name = unused_name(net, fmt::format("{}.{}", node.name, i == 3 ? "running_mean" : "running_var"));
      net.nodes[n].inputs[i] = ValueId(net.values.size());
      net.values.push_back(std::move(copy));
    }
  return {};
}

// Whether training alone makes the value: statistics of the batch, or a mask.
bool is_of_training(const Net& net, ValueId id) {
  const Value& value = net[id];
  if (value.kind != Value::Kind::node_output || value.output == 0) return false;
  const Node& producer = net[value.producer];
  return producer.domain.empty() && (producer.type == "BatchNormalization" || producer.type == "Dropout");
}

std::vector<std::pair<std::string, std::string>> copies_of_weights(const Net& net) {
  std::vector<std::pair<std::string, std::string>> copies;
  for (const Node& node : net.nodes) {
    if (!node.domain.empty() || node.type != "Identity") continue;
    const Value& read = net[node.inputs[0]];
    if (read.kind == Value::Kind::variable && net[read.variable].trainable) copies.emplace_back(net[node.outputs[0]].name, read.name);
  }
  return copies;
}

class Forms {
 public:
  Forms(const Net& net, const LossChoice& loss, DeclaredType labels) : net_(net), loss_(loss), labels_(std::move(labels)) {}

  // Chooses the variables that all nets have.
  Status choose(const WeightRequest& request) {
    HEDDLE_TRY(const std::vector<char> weights, choose_weights(net_, request));
    const std::vector<char> statistics = running_statistics(net_);
    for (size_t i = 0; i < weights.size(); ++i)
      if (weights[i] || statistics[i]) variables_.insert(net_.values[i].name);
    return {};
  }

  Result<Net> train() const {
    HEDDLE_TRY(NetBuilder builder, over_variables("train", {loss_.value}));
    train_normalisations(builder);
    train_dropouts(builder);
    const auto [loss, labels] = add_loss(builder);
    builder.net().outputs = {loss};
    return builder.finish();
  }

  Result<Net> test() const {
    std::vector<std::string> outputs;
    for (const ValueId output : net_.outputs)
      if (!is_of_training(net_, output)) outputs.push_back(net_[output].name);
    std::vector<std::string> computed = outputs;
    if (std::find(outputs.begin(), outputs.end(), loss_.value) == outputs.end()) computed.push_back(loss_.value);
    HEDDLE_TRY(NetBuilder builder, over_variables("test", computed));
    Net& net = builder.net();
    std::vector<ValueId> own = net.outputs;
    own.resize(outputs.size());
    const auto [loss, labels] = add_loss(builder);
    net.outputs = {loss};
    if (loss_.counts_classes()) net.outputs.push_back(class_accuracy(builder, "accuracy", *net.find_value(loss_.value), labels, 1));
    net.outputs.insert(net.outputs.end(), own.begin(), own.end());
    return builder.finish();
  }

 private:
  // The operators that make `outputs`, in inference mode, over variables.
  Result<NetBuilder> over_variables(const std::string& name, const std::vector<std::string>& outputs) const {
    PredictorOptions options;
    options.name = name;
    options.outputs = outputs;
    NetBuilder builder(name);
    HEDDLE_TRY(builder.net(), predictor(net_, options));
    Net& net = builder.net();
    std::vector<char> marked;
    for (const Value& value : net.values) marked.push_back(variables_.contains(value.name) ? 1 : 0);
    use_variables(net, marked);
    return builder;
  }

  struct Added {
    ValueId loss, labels;
  };
  Added add_loss(NetBuilder& builder) const {
    const ValueId value = *builder.net().find_value(loss_.value);
    const ValueId labels = builder.input(loss_.labels, labels_);
    switch (loss_.kind) {
      case LossKind::cross_entropy:
        return {cross_entropy(builder, "loss", value, labels), labels};
      case LossKind::squared_error:
        return {mean_squared_error(builder, "loss", value, labels), labels};
      case LossKind::binary_cross_entropy:
        break;
    }
    return {binary_cross_entropy(builder, "loss", value, labels), labels};
  }

  const Net& net_;
  const LossChoice& loss_;
  const DeclaredType labels_;
  std::set<std::string> variables_;  // names of constants
};

}  // namespace

Result<ImportedForm> imported_form(Net net, const WeightRequest& request, const LossChoice& loss,
                                   const std::shared_ptr<const RegistrySnapshot>& registry, const Limits& limits) {
  HEDDLE_CHECK(check_names(net, loss));
  HEDDLE_CHECK(check_subnets(net));
  HEDDLE_TRY(const Net resolved, resolve(net, registry, limits));
  HEDDLE_TRY(const DeclaredType value, type_of(resolved, loss.value, registry, limits));
  HEDDLE_TRY(DeclaredType labels, labels_type(loss, value));
  HEDDLE_CHECK(part_statistics(net));
  Forms forms(net, loss, std::move(labels));
  HEDDLE_CHECK(forms.choose(request));
  ImportedForm made;
  HEDDLE_TRY(made.train, forms.train());
  HEDDLE_TRY(made.test, forms.test());
  for (const Variable& variable : made.train.variables) {
    if (!variable.trainable) continue;
    made.weights.push_back(variable.name);
    made.parameters += variable.type.fixed_shape().value_or(Shape{}).element_count();
  }
  made.copies = copies_of_weights(made.train);
  if (made.weights.empty())
    return Status(Code::invalid_argument, fmt::format("--trainable: {} depends on none of the weights that it chooses", quoted(loss.value)),
                  "choose others, or another value for the loss");
  return made;
}

}  // namespace heddle::trainable
