#include "models/training_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text/text.h"

namespace heddle::models {
namespace {

bool is_running_statistic(const Node& node, size_t input) {
  return node.domain.empty() && node.type == "BatchNormalization" && (input == 3 || input == 4);
}

// Weights are called <layer>.<part>; other constants have no dot in their names.
bool is_parameter(const Value& value) {
  return value.kind == Value::Kind::constant && value.type.dtype == DType::f32 && value.name.find('.') != std::string::npos;
}

constexpr float auxiliary_weight = 0.4F;  // Szegedy et al., 2015, as in torchvision's training

class Form {
 public:
  Form(Net net, Labels labels) : b_(net.name), labels_(labels) { b_.net() = std::move(net); }

  Net& net() { return b_.net(); }

  void use_variables() {
    std::vector<char> statistics(net().values.size(), 0);
    for (const Node& node : net().nodes)
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i].valid() && is_running_statistic(node, i)) statistics[node.inputs[i].index] = 1;
    const size_t count = net().values.size();
    for (size_t i = 0; i < count; ++i) {
      if (!is_parameter(net().values[i])) continue;
      Value& value = net().values[i];
      Variable variable;
      variable.name = value.name;
      variable.type = value.type;
      variable.initial = std::move(value.content);
      variable.trainable = statistics[i] == 0;
      variable.first = variable.last = ValueId(i);
      value.content = {};
      value.kind = Value::Kind::variable;
      value.variable = VariableId(net().variables.size());
      net().variables.push_back(std::move(variable));
    }
  }

  void use_symbol() {
    for (const ValueId input : net().inputs) net()[input].type.dims[0] = Dim::named("N");
  }

  void train_dropouts() {
    const bool yes = true;
    ValueId mode;
    const size_t count = net().nodes.size();
    for (size_t n = 0; n < count; ++n) {
      if (net().nodes[n].type != "Dropout") continue;
      if (!mode.valid()) mode = b_.constant("training", Blob::copy_of(DType::boolean, Shape{}, &yes));
      net().nodes[n].inputs.resize(3);
      net().nodes[n].inputs[2] = mode;
    }
  }

  // Makes normalisations use the batch, and update the running statistics.
  void train_normalisations() {
    const size_t count = net().nodes.size();
    for (size_t n = 0; n < count; ++n) {
      if (net().nodes[n].type != "BatchNormalization") continue;
      net().nodes[n].attributes.push_back({"training_mode", int64_t{1}});
      for (const int which : {1, 2}) {
        Value output;
        output.name = fmt::format("{}.{}", net().nodes[n].name, which == 1 ? "next_mean" : "next_var");
        output.producer = NodeId(n);
        output.output = static_cast<uint32_t>(which);
        net().nodes[n].outputs.emplace_back(net().values.size());
        net().values.push_back(std::move(output));
        const ValueId running = net().nodes[n].inputs[static_cast<size_t>(which) + 2];
        const std::string name = net()[running].name + ".update";
        b_.updates(b_.add1("Assign", name, {running, net().nodes[n].outputs.back()}, {}, "heddle"), running);
      }
    }
  }

  void add_loss(bool with_accuracy) {
    const std::vector<ValueId> logits = net().outputs;
    const ValueId labels = b_.input("labels", labels_type());
    const bool has_parts = logits.size() > 1 && !with_accuracy;
    const ValueId score =
        labels_ == Labels::clicks ? b_.add1("Squeeze", "score", {logits[0], b_.constant_ints("score_axis", {1})}) : ValueId();
    ValueId loss = score.valid() ? click_loss(score, labels) : cross_entropy(has_parts ? "main_loss" : "loss", logits[0], labels);
    if (has_parts) {
      const ValueId beside = cross_entropy("auxiliary_loss", logits[1], labels);
      const ValueId part = b_.add1("Mul", "auxiliary_part", {beside, b_.constant_float("auxiliary_weight", auxiliary_weight)});
      loss = b_.add1("Add", "loss", {loss, part});
    }
    net().outputs = {loss};
    if (!with_accuracy) return;
    const ValueId is_right = score.valid() ? click_is_right(score, labels) : class_is_right(logits[0], labels);
    const ValueId right = b_.add1("Cast", "right", {is_right}, {{"to", to_f32}});
    net().outputs.push_back(b_.add1("ReduceMean", "accuracy", {right}, {{"keepdims", int64_t{0}}}));
    net().outputs.push_back(logits[0]);
  }

 private:
  // The labels have as many elements as the first input, where each element has one.
  DeclaredType labels_type() {
    DeclaredType type;
    type.dtype = DType::i64;
    type.ranked = true;
    type.dims = {Dim::named("N")};
    if (labels_ == Labels::of_elements) type.dims.push_back(net()[net().inputs[0]].type.dims[1]);
    return type;
  }
  // ONNX's loss has the classes in the second dimension.
  ValueId cross_entropy(const std::string& name, ValueId logits, ValueId labels) {
    if (labels_ == Labels::of_elements)
      logits = b_.add1("Transpose", name + ".logits", {logits}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
    return b_.add1("SoftmaxCrossEntropyLoss", name, {logits, labels});
  }

  ValueId class_is_right(ValueId logits, ValueId labels) {
    const ValueId chosen = b_.add1("ArgMax", "chosen", {logits}, {{"axis", int64_t{-1}}, {"keepdims", int64_t{0}}});
    return b_.add1("Equal", "is_right", {chosen, labels});
  }
  // -log of the probability that sigmoid(score) gives the label.
  ValueId click_loss(ValueId score, ValueId labels) {
    const ValueId clicks = b_.add1("Cast", "clicks", {labels}, {{"to", to_f32}});
    const ValueId of_clicks = b_.add1("Mul", "score_of_clicks", {score, clicks});
    const ValueId losses = b_.add1("Sub", "losses", {b_.add1("Softplus", "softplus", {score}), of_clicks});
    return b_.add1("ReduceMean", "loss", {losses}, {{"keepdims", int64_t{0}}});
  }
  ValueId click_is_right(ValueId score, ValueId labels) {
    const ValueId expected = b_.add1("Greater", "expected", {score, b_.constant_float("even", 0)});
    return b_.add1("Equal", "is_right", {expected, b_.add1("Cast", "is_click", {labels}, {{"to", to_bool}})});
  }

  static constexpr int64_t to_f32 = 1, to_bool = 9;  // ONNX's numbers
  NetBuilder b_;
  const Labels labels_;
};

}  // namespace

Result<TrainingForm> training_form(const std::string& recipe, const RecipeOptions& options) {
  HEDDLE_TRY(const Recipe found, find(recipe));
  if (found.labels == Labels::none) {
    std::vector<std::string> have_one;
    for (const Recipe& each : list())
      if (each.labels != Labels::none) have_one.emplace_back(each.name);
    return Status(Code::not_implemented, fmt::format("recipe {} has no training form", quoted(recipe)),
                  fmt::format("{} have one", join(have_one, ", ")));
  }
  TrainingForm made;
  for (const bool trains : {true, false}) {
    RecipeOptions of = options;
    of.purpose = trains ? Purpose::training : Purpose::testing;
    HEDDLE_TRY(Net net, build(recipe, of));
    if (trains) made.parameters = parameter_count(net);
    Form form(std::move(net), found.labels);
    form.use_variables();
    form.use_symbol();
    if (trains) form.train_normalisations();
    if (trains) form.train_dropouts();
    form.add_loss(!trains);
    form.net().name = trains ? "train" : "test";
    (trains ? made.train : made.test) = std::move(form.net());
  }
  return made;
}

}  // namespace heddle::models
