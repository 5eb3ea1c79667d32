#include "models/training_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"

namespace heddle::models {
namespace {

bool is_running_statistic(const Node& node, size_t input) {
  return node.domain.empty() && node.type == "BatchNormalization" && (input == 3 || input == 4);
}

// Weights are called <layer>.<part>; other constants have no dot in their names.
bool is_parameter(const Value& value) {
  return value.kind == Value::Kind::constant && value.type.dtype == DType::f32 && value.name.find('.') != std::string::npos;
}

class Form {
 public:
  explicit Form(Net net) : b_(net.name) { b_.net() = std::move(net); }

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

  // Normalisations by the batch, which move the running statistics.
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
    DeclaredType labels_type;
    labels_type.dtype = DType::i64;
    labels_type.ranked = true;
    labels_type.dims = {Dim::named("N")};
    const ValueId logits = net().outputs[0], labels = b_.input("labels", labels_type);
    const ValueId loss = b_.add1("SoftmaxCrossEntropyLoss", "loss", {logits, labels});
    if (!with_accuracy) {
      net().outputs = {loss};
      return;
    }
    const ValueId chosen = b_.add1("ArgMax", "chosen", {logits}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
    const ValueId right = b_.add1("Cast", "right", {b_.add1("Equal", "is_right", {chosen, labels})}, {{"to", int64_t{1}}});
    const ValueId accuracy = b_.add1("ReduceMean", "accuracy", {right}, {{"keepdims", int64_t{0}}});
    net().outputs = {loss, accuracy, logits};
  }

 private:
  NetBuilder b_;
};

}  // namespace

Result<TrainingForm> training_form(const Net& net) {
  static const std::vector<std::string> have_one = {"densenet121", "digits",       "inception_v3", "lenet",
                                                    "mlp",         "mobilenet_v2", "resnet18",     "resnet50"};
  if (std::find(have_one.begin(), have_one.end(), net.name) == have_one.end())
    return Status(Code::not_implemented, fmt::format("recipe {} has no training form", quoted(net.name)),
                  fmt::format("{} have one", join(have_one, ", ")));
  TrainingForm made;
  for (const bool trains : {true, false}) {
    Form form(net);
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
