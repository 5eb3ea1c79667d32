#include "derive/reverse/subnet_gradient.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text.h"
#include "derive/reverse/gradient_paths.h"
#include "derive/reverse/net_part.h"
#include "plugin/schema.h"
#include "resolve/updates.h"

namespace heddle {
namespace {

// Why a node, or one in its subnets, does not give the same result when it runs again; empty: it does.
std::string why_unrepeatable(const Net& net, const Node& node) {
  const std::string name = display_name(node.domain, node.type);
  if (updates_variable(net, node)) return fmt::format("{}, which updates a variable", name);
  if (node.schema->has_trait(HEDDLE_TRAIT_RANDOM)) return fmt::format("{}, which draws random numbers", name);
  if (node.schema->has_trait(HEDDLE_TRAIT_IMPURE) || node.schema->has_trait(HEDDLE_TRAIT_COLLECTIVE))
    return fmt::format("{}, which has an effect beside its outputs", name);
  for (const Attribute& attribute : node.attributes) {
    const auto* const subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value);
    if (!subnet) continue;
    for (const Node& inner : (*subnet)->nodes)
      if (std::string why = why_unrepeatable(**subnet, inner); !why.empty())
        return fmt::format("{} with {} ({})", name, quoted(inner.name), why);
  }
  return {};
}

}  // namespace

SubnetGradient::SubnetGradient(const Net& subnet, const PolymorphicTypes& types)
    : net_(subnet), types_(types), pass_(net_, types.registry(), types) {
  net_.name += ".gradient";
}

void SubnetGradient::make_constant(ValueId id, std::shared_ptr<const Blob> blob) {
  Value& value = net_[id];
  value.kind = Value::Kind::constant;
  value.type = DeclaredType::of(blob->dtype, blob->shape);
  value.content.blob = std::move(blob);
}

Status SubnetGradient::derive(const std::vector<bool>& wanted, const std::vector<bool>& arrives) {
  const std::vector<ValueId> inputs = net_.inputs, outputs = net_.outputs;  // copies: the net grows
  std::vector<ValueId> of;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (wanted[i]) of.push_back(inputs[i]);
  pass_.want(of);
  output_gradients_.resize(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!arrives[i]) continue;
    output_gradients_[i] = pass_.emitter().add_input(net_[outputs[i]].name + ".gradient");
    HEDDLE_CHECK(pass_.seed(outputs[i], output_gradients_[i]));
  }
  HEDDLE_CHECK(pass_.run());
  input_gradients_.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!wanted[i] || !pass_.any(inputs[i])) continue;
    // Adds up rows of a table here: their number may differ from run to run of the subnet.
    HEDDLE_TRY(const GradientPart total, pass_.total_of(inputs[i], GradientSum::Form::dense));
    input_gradients_[i] = total.dense;
  }
  return {};
}

Emitter& SubnetGradient::emitter_for(size_t input) {
  pass_.derive_from_value(net_.inputs[input]);
  return pass_.emitter();
}

std::vector<SubnetGradient::Unrepeatable> SubnetGradient::unrepeatable() const {
  const std::vector<bool> needed = needed_nodes(net_, outputs_);
  std::vector<bool> read(net_.values.size(), false);
  for (const ValueId id : outputs_) read[id.index] = true;
  for (size_t i = 0; i < net_.nodes.size(); ++i)
    for (const ValueId id : net_.nodes[i].inputs)
      if (needed[i] && id.valid()) read[id.index] = true;
  std::vector<Unrepeatable> found;
  for (size_t i = 0; i < pass_.forward_nodes(); ++i) {
    const Node& node = net_.nodes[i];
    const std::string why = needed[i] ? why_unrepeatable(net_, node) : std::string();
    for (const ValueId id : node.outputs)
      if (!why.empty() && id.valid() && read[id.index]) found.push_back({id, NodeId(i), why});
  }
  return found;
}

void SubnetGradient::make_input(ValueId id) {
  Value& value = net_[id];
  Node& node = net_[value.producer];
  std::replace(node.outputs.begin(), node.outputs.end(), id, ValueId());
  value.kind = Value::Kind::input;
  value.producer = {};
}

bool SubnetGradient::reads(ValueId input) const {
  const std::vector<bool> needed = needed_nodes(net_, outputs_);
  if (std::find(outputs_.begin(), outputs_.end(), input) != outputs_.end()) return true;
  for (size_t i = 0; i < net_.nodes.size(); ++i)
    if (needed[i] && std::find(net_.nodes[i].inputs.begin(), net_.nodes[i].inputs.end(), input) != net_.nodes[i].inputs.end()) return true;
  return false;
}

std::shared_ptr<const Net> SubnetGradient::finish(const std::vector<ValueId>& inputs) const {
  return std::make_shared<const Net>(net_part(net_, inputs, outputs_));
}

std::shared_ptr<const Net> subnet_of(const Node& node, const std::string& attribute) {
  return std::get<std::shared_ptr<const Net>>(*node.find(attribute));
}

}  // namespace heddle
