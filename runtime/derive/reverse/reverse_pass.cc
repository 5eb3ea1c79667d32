#include "derive/reverse/reverse_pass.h"

#include <algorithm>

#include "derive/reverse/gradient_paths.h"

namespace heddle {

ReversePass::ReversePass(Net& net, const RegistrySnapshot& registry, const PolymorphicTypes& types)
    : net_(net), types_(types), emitter_(net, registry), forward_nodes_(net.nodes.size()) {}

void ReversePass::want(const std::vector<ValueId>& values) {
  depends_ = dependents(net_, types_, values);
  sums_.resize(net_.values.size());
}

Status ReversePass::seed(ValueId of, ValueId gradient) {
  return depends_[of.index] ? add({.dense = gradient}, of, NodeId(), false) : Status();
}

Status ReversePass::add(const GradientPart& part, ValueId of, NodeId from, bool alone) {
  GradientSum& sum = sums_[of.index];
  if (part.by_rows()) {
    sum.add_rows(part, from);
    return {};
  }
  derive_from_value(of);
  return sum.add(net_, part, from, alone, emitter_);
}

Status ReversePass::run() {
  for (size_t i = 0; i < forward_nodes_; ++i) HEDDLE_CHECK(seed_zeros(NodeId(i)));
  for (size_t i = forward_nodes_; i-- > 0;) HEDDLE_CHECK(visit(NodeId(i)));
  return {};
}

// Adds the gradient that heddle::ZeroGradient gives its input.
Status ReversePass::seed_zeros(NodeId id) {
  const Node node = net_[id];  // a copy: the net grows
  if (!sends_zeros(node) || !depends_[node.inputs[0].index]) return {};
  emitter_.derive_from(id, "gradient");
  HEDDLE_TRY(const ValueId zeros, filled_like(emitter_, types_, node.inputs[0], 0));
  return add({.dense = zeros}, node.inputs[0], id, false);
}

// Passes the gradients that arrive at a node on to its inputs.
Status ReversePass::visit(NodeId id) {
  const Node node = net_[id];  // a copy: the net grows
  NodeGradientCall call{net_, id, types_, std::vector<ValueId>(node.outputs.size()), std::vector<bool>(node.inputs.size(), false)};
  bool arrives = false;
  call.chosen = true;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId output = node.outputs[i];
    if (!output.valid() || !sums_[output.index].any()) continue;
    HEDDLE_TRY(const GradientPart total, total_of(output, GradientSum::Form::dense));
    call.output_gradients[i] = total.dense;
    call.chosen = call.chosen && total.chosen;
    arrives = true;
  }
  bool wanted = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    call.wanted[i] = carries_gradient(node, i, types_) && depends_[node.inputs[i].index];
    wanted = wanted || call.wanted[i];
  }
  if (!arrives || !wanted) return {};
  HEDDLE_TRY(const std::vector<GradientPart> parts, node_gradient(call, emitter_));
  const bool alone = std::count_if(parts.begin(), parts.end(), [](const GradientPart& part) { return part.any(); }) == 1;
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i].any()) HEDDLE_CHECK(add(parts[i], node.inputs[i], id, alone));
  return {};
}

Result<GradientPart> ReversePass::total_of(ValueId of, GradientSum::Form form) {
  derive_from_value(of);
  return sums_[of.index].total(net_, of, types_, form, emitter_);
}

void ReversePass::derive_from_value(ValueId id) {
  const NodeId producer = net_[id].producer;
  std::string device = producer.valid() ? net_[producer].device.text() : std::string();
  for (size_t i = 0; !producer.valid() && i < forward_nodes_; ++i)
    if (const auto& inputs = net_.nodes[i].inputs; std::find(inputs.begin(), inputs.end(), id) != inputs.end()) {
      device = net_.nodes[i].device;
      break;
    }
  emitter_.derive_from(net_[id].name + ".gradient", device);
}

}  // namespace heddle
