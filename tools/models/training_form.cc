#include "models/training_form.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/text/text.h"
#include "trainable/losses.h"
#include "trainable/training_mode.h"

namespace heddle::models {
namespace {

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
    std::vector<char> marked;
    for (const Value& value : net().values) marked.push_back(is_parameter(value) ? 1 : 0);
    trainable::use_variables(net(), marked);
  }

  void use_symbol() {
    for (const ValueId input : net().inputs) net()[input].type.dims[0] = Dim::named("N");
  }

  void use_training_mode() {
    trainable::train_normalisations(b_);
    trainable::train_dropouts(b_);
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
    net().outputs.push_back(score.valid()
                                ? trainable::part_that_is_true(b_, "accuracy", click_is_right(score, labels))
                                : trainable::class_accuracy(b_, "accuracy", logits[0], labels, labels_ == Labels::of_pixels ? 1 : -1));
    net().outputs.push_back(logits[0]);
  }

 private:
  // The labels have as many elements, or pixels, as the first input, where each has one.
  DeclaredType labels_type() {
    DeclaredType type;
    type.dtype = DType::i64;
    type.ranked = true;
    type.dims = {Dim::named("N")};
    const std::vector<Dim>& sample = net()[net().inputs[0]].type.dims;
    if (labels_ == Labels::of_elements) type.dims.push_back(sample[1]);
    if (labels_ == Labels::of_pixels) type.dims.insert(type.dims.end(), sample.begin() + 2, sample.end());
    return type;
  }
  // ONNX's loss has the classes in the second dimension.
  ValueId cross_entropy(const std::string& name, ValueId logits, ValueId labels) {
    if (labels_ == Labels::of_elements)
      logits = b_.add1("Transpose", name + ".logits", {logits}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
    return trainable::cross_entropy(b_, name, logits, labels);
  }

  ValueId click_loss(ValueId score, ValueId labels) {
    return trainable::binary_cross_entropy(b_, "loss", score, b_.add1("Cast", "clicks", {labels}, {{"to", to_f32}}));
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
    if (trains) form.use_training_mode();
    form.add_loss(!trains);
    form.net().name = trains ? "train" : "test";
    (trains ? made.train : made.test) = std::move(form.net());
  }
  return made;
}

}  // namespace heddle::models
