// The gradient of an operator whose schema lists the operators that make it, by roles (heddle_gradient_node).
#include <fmt/format.h>

#include <map>
#include <set>

#include "base/text/text.h"
#include "derive/node_gradient.h"
#include "plugin/abi_attributes.h"
#include "plugin/schema.h"

namespace heddle {
namespace {

class ListedGradient {
 public:
  ListedGradient(const NodeGradientCall& call, Emitter& emitter)
      : call_(call), emitter_(emitter), node_(call.forward()), op_(*node_.schema->op) {}

  Result<std::vector<GradientPart>> build() {
    name_ports();
    const std::vector<bool> used = used_nodes();
    for (uint32_t n = 0; n < op_.gradient_node_count; ++n)
      if (used[n]) HEDDLE_CHECK(emit(*op_.gradient_nodes[n]));
    std::vector<GradientPart> parts(node_.inputs.size());
    for (size_t i = 0; i < parts.size(); ++i)
      for (const std::string& role : roles_of_gradient(i))
        if (const auto value = values_.find(role); call_.wanted[i] && value != values_.end()) parts[i].dense = value->second;
    return parts;
  }

 private:
  std::vector<std::string> roles_of_gradient(size_t input) const {
    std::vector<std::string> roles = {fmt::format("dx{}", input)};
    if (input < op_.input_count) roles.push_back(std::string("d") + op_.inputs[input]->name);
    return roles;
  }

  // Registers each port under both of its names (number and name), absent ones too.
  void name_ports() {
    const auto both = [&](const char* number, const std::string& prefix, const heddle_port* port, size_t i, ValueId value) {
      values_[number + fmt::to_string(i)] = value;
      if (port) values_[prefix + port->name] = value;
    };
    const auto at = [](const std::vector<ValueId>& all, size_t i) { return i < all.size() ? all[i] : ValueId(); };
    for (size_t i = 0; i < std::max<size_t>(node_.inputs.size(), op_.input_count); ++i)
      both("x", "", node_.schema->input_port(i), i, at(node_.inputs, i));
    for (size_t i = 0; i < std::max<size_t>(node_.outputs.size(), op_.output_count); ++i) {
      both("y", "", node_.schema->output_port(i), i, at(node_.outputs, i));
      both("dy", "d", node_.schema->output_port(i), i, at(call_.output_gradients, i));
      if (at(node_.outputs, i).valid() && !at(call_.output_gradients, i).valid()) {
        missing_.insert(fmt::format("dy{}", i));
        if (const heddle_port* const port = node_.schema->output_port(i)) missing_.insert(std::string("d") + port->name);
      }
    }
  }

  // Which of the listed nodes a wanted gradient depends on, by node.
  std::vector<bool> used_nodes() const {
    std::set<std::string> needed;
    for (size_t i = 0; i < call_.wanted.size(); ++i)
      for (const std::string& role : roles_of_gradient(i))
        if (call_.wanted[i]) needed.insert(role);
    std::vector<bool> used(op_.gradient_node_count, false);
    for (uint32_t n = op_.gradient_node_count; n-- > 0;) {
      const heddle_gradient_node& listed = *op_.gradient_nodes[n];
      for (uint32_t i = 0; i < listed.output_count; ++i) used[n] = used[n] || needed.count(listed.outputs[i]) > 0;
      for (uint32_t i = 0; used[n] && i < listed.input_count; ++i) needed.insert(listed.inputs[i]);
    }
    return used;
  }

  Status emit(const heddle_gradient_node& listed) {
    std::vector<ValueId> inputs;
    for (uint32_t i = 0; i < listed.input_count; ++i) {
      const std::string role = listed.inputs[i];
      if (missing_.count(role) > 0)
        return {Code::unsupported, fmt::format("no gradient arrives at {}, one of its outputs", quoted(role.substr(1))),
                "give that output to heddle::ZeroGradient beside a loss, which sends it zeros"};
      const auto value = values_.find(role);
      if (value == values_.end())
        return {Code::plugin_invalid, fmt::format("it reads {}, which is no value of the gradient", quoted(role)),
                "list what makes it before it, or name an input, an output or d and an output"};
      inputs.push_back(value->second);
    }
    HEDDLE_TRY(const std::vector<ValueId> made, emitter_.emit(listed.domain ? listed.domain : "", listed.operator_name, std::move(inputs),
                                                              listed.output_count, attributes_for(listed)));
    for (uint32_t i = 0; i < listed.output_count; ++i) values_[listed.outputs[i]] = made[i];
    return {};
  }

  std::vector<Attribute> attributes_for(const heddle_gradient_node& listed) const {
    std::vector<Attribute> attributes;
    const OperatorSchema* const target = emitter_.find(listed.domain ? listed.domain : "", listed.operator_name);
    for (const Attribute& attribute : node_.attributes)
      if (listed.copy_attributes != 0 && target && target->attribute_index(attribute.name) >= 0) attributes.push_back(attribute);
    for (const heddle_attribute* const* a = listed.attributes; a && *a; ++a)
      if (auto value = attribute_from_abi(**a)) attributes.push_back({(*a)->name, std::move(*value)});
    return attributes;
  }

  const NodeGradientCall& call_;
  Emitter& emitter_;
  const Node node_;  // a copy: the net grows
  const heddle_operator& op_;
  std::map<std::string, ValueId> values_;  // by role
  std::set<std::string> missing_;          // roles of gradients that do not arrive
};

}  // namespace

Result<std::vector<GradientPart>> listed_gradient(const NodeGradientCall& call, Emitter& emitter) {
  return ListedGradient(call, emitter).build();
}

}  // namespace heddle
