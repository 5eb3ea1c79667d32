#include "derive/scattered_gradient.h"

#include <algorithm>
#include <string>

namespace heddle {
namespace {

const Attribute* attribute_of(const Node& node, const char* name) {
  const auto found = std::find_if(node.attributes.begin(), node.attributes.end(), [&](const Attribute& a) { return a.name == name; });
  return found == node.attributes.end() ? nullptr : &*found;
}

// All operators with this attribute combine their input 0 with what they scatter, element by element.
bool adds_into_input(const Node& node) {
  const Attribute* const reduction = attribute_of(node, "reduction");
  const auto* const name = reduction ? std::get_if<std::string>(&reduction->value) : nullptr;
  const bool scatters = node.domain.empty() ? node.type == "ScatterND" || node.type == "ScatterElements" : node.type == "ScatterSlice";
  return scatters && name && *name == "add";
}

// ConstantOfShape without a value makes zeros of f32; CastLike gives them another dtype.
bool are_zeros(const Net& net, ValueId value, const Emitter& emitter) {
  while (value.valid() && emitter.is_emitted(net[value].producer)) {
    const Node& node = net[net[value].producer];
    if (!node.domain.empty()) return false;
    if (node.type == "ConstantOfShape") return !attribute_of(node, "value");
    if (node.type != "CastLike") return false;
    value = node.inputs[0];
  }
  return false;
}

bool makes_zeros(const Node& node) {
  return node.domain.empty() && (node.type == "CastLike" || node.type == "ConstantOfShape" || node.type == "Shape");
}

}  // namespace

Result<std::optional<ValueId>> scattered_into(const Net& net, ValueId part, ValueId sum, Emitter& emitter) {
  const NodeId producer = net[part].producer;
  if (!emitter.is_emitted(producer) || producer.index + 1 != net.nodes.size() || !emitter.is_last(part)) return std::optional<ValueId>();
  Node scatter = net[producer];  // a copy: it is taken back
  if (scatter.device != emitter.device() || !adds_into_input(scatter) || !are_zeros(net, scatter.inputs[0], emitter))
    return std::optional<ValueId>();
  emitter.take_back();
  // The producers of the zeros are removed as well, as long as they were emitted last and no other operator reads them.
  for (ValueId unread = scatter.inputs[0]; unread.valid() && emitter.is_last(unread) && makes_zeros(net.nodes.back());) {
    const Node& last = net.nodes.back();
    const bool read = std::find(scatter.inputs.begin() + 1, scatter.inputs.end(), unread) != scatter.inputs.end();
    if (read) break;
    unread = last.inputs[0];
    emitter.take_back();
  }
  scatter.inputs[0] = sum;
  HEDDLE_TRY(const ValueId made, emitter.emit1(scatter.domain, scatter.type, std::move(scatter.inputs), std::move(scatter.attributes)));
  return std::optional<ValueId>(made);
}

}  // namespace heddle
