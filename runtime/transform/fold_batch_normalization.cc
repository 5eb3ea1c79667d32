#include <algorithm>
#include <cmath>

#include "edit/editor.h"
#include "transform/transform.h"

namespace heddle {
namespace {

bool is(const Node& node, const char* type) {
  return node.domain.empty() && node.type == type && node.epilogue.empty();
}

const float* floats(const Editor& editor, ValueId id) {
  return reinterpret_cast<const float*>(editor.constant(id)->data);
}

double epsilon_of(const Node& bn) {
  const AttributeValue* given = bn.find("epsilon");
  return given ? std::get<double>(*given) : 1e-5;
}

// Folded, a factor multiplies the weights instead of the sum. That rounds in another way, but must not make an infinity or a NaN where none
// was: every factor and folded number is finite.
bool keeps_numbers(const Editor& editor, const Node& conv, const Node& bn) {
  const Blob& weights = *editor.constant(conv.inputs[1]);
  const int64_t channels = weights.shape[0], each = channels > 0 ? weights.shape.element_count() / channels : 0;
  for (size_t k = 1; k < 5; ++k)
    if (editor.constant(bn.inputs[k])->shape.element_count() != channels) return false;
  const bool biased = conv.inputs.size() > 2 && conv.inputs[2].valid();
  const auto* w = reinterpret_cast<const float*>(weights.data);
  for (int64_t c = 0; c < channels; ++c) {
    const auto at = [&](size_t input) { return floats(editor, bn.inputs[input])[c]; };
    const float factor = at(1) / std::sqrt(at(4) + static_cast<float>(epsilon_of(bn)));
    const float centred = biased ? floats(editor, conv.inputs[2])[c] - at(3) : -at(3);
    if (!std::isfinite(factor) || !std::isfinite(centred * factor + at(2))) return false;
    for (int64_t i = c * each; i < (c + 1) * each; ++i)
      if (!std::isfinite(w[i] * factor)) return false;
  }
  return true;
}

// Makes `conv` do `bn`'s work: W' = W * s, b' = (b - mean) * s + shift with s = scale / sqrt(variance + epsilon) per channel.
Status fold_into(Editor& editor, NodeId conv_id, NodeId bn_id) {
  const Node conv = editor.node(conv_id), bn = editor.node(bn_id);
  const ValueId scale = bn.inputs[1], shift = bn.inputs[2], mean = bn.inputs[3], variance = bn.inputs[4];
  const double epsilon = epsilon_of(bn);
  std::vector<int64_t> per_channel(static_cast<size_t>(editor.net().type(conv.inputs[1]).shape.rank()), 1);
  per_channel[0] = -1;
  const std::string name = conv.name + "/folded";
  const auto constant_float = [&](const char* suffix, float value) {
    return editor.add_constant(name + suffix, Blob::copy_of(DType::f32, Shape{}, &value));
  };
  const auto add = [&](const char* type, const char* suffix, std::vector<ValueId> inputs) {
    return editor.add_node(conv_id, type, name + suffix, std::move(inputs));
  };
  HEDDLE_TRY(const ValueId shifted, add("Add", "/variance", {variance, constant_float("/epsilon", static_cast<float>(epsilon))}));
  HEDDLE_TRY(const ValueId deviation, add("Sqrt", "/deviation", {shifted}));
  HEDDLE_TRY(const ValueId factor, add("Div", "/factor", {scale, deviation}));
  const Shape rank_shape{static_cast<int64_t>(per_channel.size())};
  const ValueId target = editor.add_constant(name + "/shape", Blob::copy_of(DType::i64, rank_shape, per_channel.data()));
  HEDDLE_TRY(const ValueId factors, add("Reshape", "/factors", {factor, target}));
  HEDDLE_TRY(const ValueId weights, add("Mul", "/weights", {conv.inputs[1], factors}));
  ValueId centred = mean;
  if (conv.inputs.size() > 2 && conv.inputs[2].valid()) {
    HEDDLE_TRY(centred, add("Sub", "/centred", {conv.inputs[2], mean}));
    HEDDLE_TRY(centred, add("Mul", "/scaled", {centred, factor}));
    HEDDLE_TRY(centred, add("Add", "/bias", {centred, shift}));
  } else {
    HEDDLE_TRY(const ValueId scaled, add("Mul", "/scaled", {mean, factor}));
    HEDDLE_TRY(centred, add("Sub", "/bias", {shift, scaled}));
  }
  editor.set_inputs(conv_id, {conv.inputs[0], weights, centred});
  editor.take_over_output(conv_id, bn_id);
  return {};
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
    const NodeId conv_id = editor.graph()[bn.inputs[0]].producer;
    if (!conv_id.valid() || !is(editor.node(conv_id), "Conv") || editor.only_reader(bn.inputs[0]) != bn_id) continue;
    if (editor.node(conv_id).placed != bn.placed) continue;
    if (editor.net().type(bn.inputs[0]).dtype != DType::f32 || editor.net().type(bn.inputs[0]).late()) continue;
    bool constant = true;
    for (size_t k = 1; k < 5; ++k)
      constant = constant && editor.constant(bn.inputs[k]) && editor.net().type(bn.inputs[k]).dtype == DType::f32;
    const Node& conv = editor.node(conv_id);
    for (size_t k = 1; k < conv.inputs.size(); ++k) constant = constant && (!conv.inputs[k].valid() || editor.constant(conv.inputs[k]));
    if (constant && keeps_numbers(editor, conv, bn)) HEDDLE_CHECK(fold_into(editor, conv_id, bn_id));
  }
  return editor.finish();
}

}  // namespace heddle
