#include "trainable/losses.h"

#include <utility>
#include <vector>

#include "trainable/training_mode.h"

namespace heddle::trainable {
namespace {

// Adds an operator and returns its result.
ValueId add(NetBuilder& builder, const std::string& type, const std::string& name, std::vector<ValueId> inputs,
            std::vector<Attribute> attributes = {}) {
  return builder.add1(type, unused_name(builder.net(), name), std::move(inputs), std::move(attributes));
}

// Calls the result `name`, whatever its node is called.
ValueId add_result(NetBuilder& builder, const std::string& type, const std::string& name, std::vector<ValueId> inputs,
                   std::vector<Attribute> attributes = {}) {
  const ValueId result = add(builder, type, name, std::move(inputs), std::move(attributes));
  builder.rename(result, name);
  return result;
}

ValueId mean(NetBuilder& builder, const std::string& name, ValueId of) {
  return add_result(builder, "ReduceMean", name, {of}, {{"keepdims", int64_t{0}}});
}

}  // namespace

ValueId cross_entropy(NetBuilder& builder, const std::string& name, ValueId logits, ValueId labels) {
  return add_result(builder, "SoftmaxCrossEntropyLoss", name, {logits, labels});
}

ValueId binary_cross_entropy(NetBuilder& builder, const std::string& name, ValueId score, ValueId target) {
  const ValueId of_target = add(builder, "Mul", "score_of_target", {score, target});
  return mean(builder, name, add(builder, "Sub", "losses", {add(builder, "Softplus", "softplus", {score}), of_target}));
}

ValueId mean_squared_error(NetBuilder& builder, const std::string& name, ValueId output, ValueId target) {
  const ValueId difference = add(builder, "Sub", "difference", {output, target});
  return mean(builder, name, add(builder, "Mul", "squares", {difference, difference}));
}

ValueId class_accuracy(NetBuilder& builder, const std::string& name, ValueId logits, ValueId labels, int64_t axis) {
  const ValueId chosen = add(builder, "ArgMax", "chosen", {logits}, {{"axis", axis}, {"keepdims", int64_t{0}}});
  return part_that_is_true(builder, name, add(builder, "Equal", "is_right", {chosen, labels}));
}

ValueId part_that_is_true(NetBuilder& builder, const std::string& name, ValueId is_right) {
  constexpr int64_t to_f32 = 1;  // ONNX's number
  return mean(builder, name, add(builder, "Cast", "right", {is_right}, {{"to", to_f32}}));
}

}  // namespace heddle::trainable
