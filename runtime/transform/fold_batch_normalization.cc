// fold_batch_normalization: a convolution does the work of the normalization after it; one before a pointwise operator becomes a
// difference, a product and a sum, which are fused into that operator.
#include <algorithm>
#include <cmath>

#include "edit/editor.h"
#include "place/place.h"
#include "plugin/pointwise_lowering.h"
#include "transform/transform.h"

namespace heddle {
namespace {

bool is(const Node& node, const char* type) {
  return node.domain.empty() && node.type == type && node.epilogue->empty();
}

const float* floats(const Editor& editor, ValueId id) {
  return reinterpret_cast<const float*>(editor.constant(id)->data);
}

double epsilon_of(const Node& bn) {
  const AttributeValue* given = bn.find("epsilon");
  return given ? std::get<double>(*given) : 1e-5;
}

bool has_channels(const Editor& editor, const Node& bn, int64_t channels) {
  for (size_t k = 1; k < 5; ++k)
    if (editor.constant(bn.inputs[k])->shape.element_count() != channels) return false;
  return true;
}
float factor_of(const Editor& editor, const Node& bn, int64_t channel) {
  return floats(editor, bn.inputs[1])[channel] / std::sqrt(floats(editor, bn.inputs[4])[channel] + static_cast<float>(epsilon_of(bn)));
}

// Folded, a factor multiplies the weights instead of the sum. That rounds in another way, but must not make an infinity or a NaN where none
// was: every factor and folded number is finite.
bool keeps_numbers(const Editor& editor, const Node& conv, const Node& bn) {
  const Blob& weights = *editor.constant(conv.inputs[1]);
  const int64_t channels = weights.shape[0], each = channels > 0 ? weights.shape.element_count() / channels : 0;
  if (!has_channels(editor, bn, channels)) return false;
  const bool biased = conv.inputs.size() > 2 && conv.inputs[2].valid();
  const auto* w = reinterpret_cast<const float*>(weights.data);
  for (int64_t c = 0; c < channels; ++c) {
    const auto at = [&](size_t input) { return floats(editor, bn.inputs[input])[c]; };
    const float factor = factor_of(editor, bn, c);
    const float centred = biased ? floats(editor, conv.inputs[2])[c] - at(3) : -at(3);
    if (!std::isfinite(factor) || !std::isfinite(centred * factor + at(2))) return false;
    for (int64_t i = c * each; i < (c + 1) * each; ++i)
      if (!std::isfinite(w[i] * factor)) return false;
  }
  return true;
}

// Adds operators of constants before a node, which constant folding computes.
class Constants {
 public:
  Constants(Editor& editor, NodeId before, std::string name) : editor_(editor), before_(before), name_(std::move(name)) {}
  Result<ValueId> add(const char* type, const char* suffix, std::vector<ValueId> inputs) {
    return editor_.add_node(before_, type, name_ + suffix, std::move(inputs));
  }
  // scale / sqrt(variance + epsilon)
  Result<ValueId> factor(const Node& bn) {
    const float epsilon = static_cast<float>(epsilon_of(bn));
    const ValueId constant = editor_.add_constant(name_ + "/epsilon", Blob::copy_of(DType::f32, Shape{}, &epsilon));
    HEDDLE_TRY(const ValueId shifted, add("Add", "/variance", {bn.inputs[4], constant}));
    HEDDLE_TRY(const ValueId deviation, add("Sqrt", "/deviation", {shifted}));
    return add("Div", "/factor", {bn.inputs[1], deviation});
  }
  // An i64 constant [-1, 1, ...], the shape of numbers that are broadcast over `rank` - 1 further dimensions.
  ValueId per_channel(int rank) {
    std::vector<int64_t> dims(static_cast<size_t>(rank), 1);
    dims[0] = -1;
    return editor_.add_constant(name_ + "/shape", Blob::copy_of(DType::i64, Shape{static_cast<int64_t>(rank)}, dims.data()));
  }

 private:
  Editor& editor_;
  const NodeId before_;
  const std::string name_;
};

// Makes `conv` do `bn`'s work: W' = W * s, b' = (b - mean) * s + shift with s = scale / sqrt(variance + epsilon) per channel.
Status fold_into(Editor& editor, NodeId conv_id, NodeId bn_id) {
  const Node conv = editor.node(conv_id), bn = editor.node(bn_id);
  const ValueId shift = bn.inputs[2], mean = bn.inputs[3];
  Constants constants(editor, conv_id, conv.name + "/folded");
  HEDDLE_TRY(const ValueId factor, constants.factor(bn));
  const ValueId target = constants.per_channel(editor.net().type(conv.inputs[1]).shape.rank());
  HEDDLE_TRY(const ValueId factors, constants.add("Reshape", "/factors", {factor, target}));
  HEDDLE_TRY(const ValueId weights, constants.add("Mul", "/weights", {conv.inputs[1], factors}));
  ValueId centred = mean;
  if (conv.inputs.size() > 2 && conv.inputs[2].valid()) {
    HEDDLE_TRY(centred, constants.add("Sub", "/centred", {conv.inputs[2], mean}));
    HEDDLE_TRY(centred, constants.add("Mul", "/scaled", {centred, factor}));
    HEDDLE_TRY(centred, constants.add("Add", "/bias", {centred, shift}));
  } else {
    HEDDLE_TRY(const ValueId scaled, constants.add("Mul", "/scaled", {mean, factor}));
    HEDDLE_TRY(centred, constants.add("Sub", "/bias", {shift, scaled}));
  }
  editor.set_inputs(conv_id, {conv.inputs[0], weights, centred});
  editor.take_over_output(conv_id, bn_id);
  return {};
}

// The kernel's factors, scale / sqrt(variance + epsilon), which are rounded once.
std::shared_ptr<Blob> factors_of(const Editor& editor, const Node& bn) {
  std::byte* data = nullptr;
  auto factors = Blob::allocate(DType::f32, editor.constant(bn.inputs[1])->shape, &data);
  const int64_t channels = factors->shape.element_count();
  for (int64_t c = 0; c < channels; ++c)
    reinterpret_cast<float*>(data)[c] =
        static_cast<float>(floats(editor, bn.inputs[1])[c] / std::sqrt(floats(editor, bn.inputs[4])[c] + epsilon_of(bn)));
  return factors;
}

// Replaces `bn` by (x - mean) * s + shift, s = scale / sqrt(variance + epsilon) per channel. The mean is not made a part of the shift: x
// times s would have to cancel it where x is near the mean.
Status scale_and_shift(Editor& editor, NodeId bn_id) {
  const Node bn = editor.node(bn_id);
  Constants constants(editor, bn_id, bn.name + "/folded");
  const ValueId factor = editor.add_constant(bn.name + "/folded/factor", factors_of(editor, bn));
  const ValueId shape = constants.per_channel(editor.net().type(bn.inputs[0]).shape.rank() - 1);
  HEDDLE_TRY(const ValueId means, constants.add("Reshape", "/means", {bn.inputs[3], shape}));
  HEDDLE_TRY(const ValueId factors, constants.add("Reshape", "/factors", {factor, shape}));
  HEDDLE_TRY(const ValueId offsets, constants.add("Reshape", "/offsets", {bn.inputs[2], shape}));
  HEDDLE_TRY(const ValueId centred, constants.add("Sub", "/centred", {bn.inputs[0], means}));
  HEDDLE_TRY(const ValueId product, constants.add("Mul", "/product", {centred, factors}));
  HEDDLE_TRY(const ValueId sum, constants.add("Add", "/sum", {product, offsets}));
  editor.replace(bn.outputs[0], sum);
  editor.remove(bn_id);
  return {};
}

bool has_constants(const Editor& editor, const Node& bn) {
  for (size_t k = 1; k < 5; ++k)
    if (!editor.constant(bn.inputs[k]) || editor.net().type(bn.inputs[k]).dtype != DType::f32) return false;
  return true;
}

// Returns the convolution that can do the work of `bn`; invalid: there is none.
NodeId convolution_before(const Editor& editor, NodeId bn_id) {
  const Node& bn = editor.node(bn_id);
  const NodeId conv_id = editor.graph()[bn.inputs[0]].producer;
  if (!conv_id.valid() || !is(editor.node(conv_id), "Conv") || editor.only_reader(bn.inputs[0]) != bn_id) return {};
  const Node& conv = editor.node(conv_id);
  if (conv.placed != bn.placed) return {};
  for (size_t k = 1; k < conv.inputs.size(); ++k)
    if (conv.inputs[k].valid() && !editor.constant(conv.inputs[k])) return {};
  return keeps_numbers(editor, conv, bn) ? conv_id : NodeId();
}

// True if a pointwise operator alone reads the result, and so can do the work of `bn` too.
bool is_before_pointwise(const Editor& editor, const Node& bn) {
  const NodeId reader = editor.only_reader(bn.outputs[0]);
  if (bn.placed != host_device && !runs_pointwise(editor.net(), editor.net().device_of(bn))) return false;
  return reader.valid() && has_pointwise_form(editor.node(reader)) && editor.node(reader).placed == bn.placed &&
         editor.net().type(bn.inputs[0]).shape.rank() >= 2 &&
         has_channels(editor, bn, editor.constant(bn.inputs[1])->shape.element_count());
}

}  // namespace

Result<TypedNet> fold_batch_normalization(TypedNet net) {
  if (std::none_of(net.net.nodes.begin(), net.net.nodes.end(), [](const Node& node) { return is(node, "BatchNormalization"); })) return net;
  Editor editor(std::move(net));
  const size_t count = editor.graph().nodes.size();
  for (size_t i = 0; i < count; ++i) {
    const NodeId bn_id(i);
    const Node& bn = editor.node(bn_id);
    if (!is(bn, "BatchNormalization") || bn.inputs.size() < 5 || bn.int_attribute("training_mode", 0) != 0) continue;
    if (bn.outputs.size() > 1 && bn.outputs[1].valid()) continue;
    if (editor.net().type(bn.inputs[0]).dtype != DType::f32 || editor.net().type(bn.inputs[0]).late()) continue;
    if (!has_constants(editor, bn)) continue;
    if (const NodeId conv_id = convolution_before(editor, bn_id); conv_id.valid())
      HEDDLE_CHECK(fold_into(editor, conv_id, bn_id));
    else if (is_before_pointwise(editor, bn))
      HEDDLE_CHECK(scale_and_shift(editor, bn_id));
  }
  return editor.finish();
}

}  // namespace heddle
