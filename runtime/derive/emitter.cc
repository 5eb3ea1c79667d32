#include "derive/emitter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text.h"
#include "plugin/schema.h"

namespace heddle {

Emitter::Emitter(Net& net, const RegistrySnapshot& registry) : net_(net), registry_(registry), first_node_(net.nodes.size()) {
  for (const Node& node : net.nodes) {
    names_.insert(node.name);
    next_stream_ = std::max(next_stream_, node.random_stream + 1);
  }
  for (const Value& value : net.values) names_.insert(value.name);
  for (const Variable& variable : net.variables) names_.insert(variable.name);
}

void Emitter::derive_from(NodeId node, const std::string& purpose) {
  derive_from(net_[node].name + "." + purpose, net_[node].device);
  origin_ = node;
}

void Emitter::derive_from(const std::string& name, const std::string& device) {
  prefix_ = name;
  device_ = device;
  origin_ = {};
}

std::string Emitter::unused_name(const std::string& wanted) {
  std::string name = wanted;
  for (int& number = next_number_[wanted]; !names_.insert(name).second;) name = fmt::format("{}.{}", wanted, ++number);
  return name;
}

ValueId Emitter::add_value(const std::string& name, Value::Kind kind) {
  const ValueId id(net_.values.size());
  Value& value = net_.values.emplace_back();
  value.name = name;
  value.kind = kind;
  return id;
}

Result<std::vector<ValueId>> Emitter::emit(const std::string& domain, const std::string& type, std::vector<ValueId> inputs, size_t outputs,
                                           std::vector<Attribute> attributes) {
  const OperatorSchema* const schema = registry_.find_operator(domain, type);
  if (!schema)
    return Status(Code::unknown_operator,
                  fmt::format("{} needs operator {}, which no loaded plugin has", prefix_, display_name(domain, type)),
                  "load the plugin that has it");
  while (!inputs.empty() && !inputs.back().valid()) inputs.pop_back();
  const NodeId id(net_.nodes.size());
  Node& node = net_.nodes.emplace_back();
  node.name = unused_name(fmt::format("{}.{}", prefix_, type));
  node.domain = domain;
  node.type = type;
  node.version = schema->version;
  node.device = device_;
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  node.schema = schema;
  node.random_stream = next_stream_++;
  origins_.push_back(origin_);
  std::vector<ValueId> made;
  for (size_t i = 0; i < outputs; ++i) {
    const ValueId output = add_value(i == 0 ? node.name : unused_name(fmt::format("{}:{}", node.name, i)), Value::Kind::node_output);
    net_[output].producer = id;
    net_[output].output = static_cast<uint32_t>(i);
    made.push_back(output);
  }
  node.outputs = made;
  return made;
}

Result<ValueId> Emitter::emit1(const std::string& domain, const std::string& type, std::vector<ValueId> inputs,
                               std::vector<Attribute> attributes) {
  HEDDLE_TRY(const std::vector<ValueId> made, emit(domain, type, std::move(inputs), 1, std::move(attributes)));
  return made[0];
}

bool Emitter::is_last(ValueId value) const {
  return value.valid() && value.index + 1 == net_.values.size() && is_emitted(net_[value].producer) &&
         net_[value].producer.index + 1 == net_.nodes.size() && net_.nodes.back().outputs.size() == 1;
}

void Emitter::take_back() {
  names_.erase(net_.values.back().name);
  net_.values.pop_back();
  net_.nodes.pop_back();
  origins_.pop_back();
}

Result<ValueId> Emitter::emit_cast(ValueId value, DType dtype) {
  std::byte* zero = nullptr;
  return emit1("", "CastLike", {value, constant(Blob::allocate(dtype, Shape{}, &zero))});
}

Result<ValueId> Emitter::output_of(NodeId id, uint32_t index) {
  if (index < net_[id].outputs.size() && net_[id].outputs[index].valid()) return net_[id].outputs[index];
  const heddle_port* const port = net_[id].schema->output_port(index);
  if (!port)
    return Status(Code::plugin_invalid, fmt::format("{} has no output {}", display_name(net_[id].domain, net_[id].type), index),
                  "take only outputs that the operator declares");
  return make_output(id, index, fmt::format("{}.{}", net_[id].name, port->name));
}

ValueId Emitter::add_output(NodeId id, const std::string& wanted) {
  return make_output(id, static_cast<uint32_t>(net_[id].outputs.size()), wanted);
}

ValueId Emitter::make_output(NodeId id, uint32_t index, const std::string& wanted) {
  const ValueId output = add_value(unused_name(wanted), Value::Kind::node_output);
  net_[output].producer = id;
  net_[output].output = index;
  if (net_[id].outputs.size() <= index) net_[id].outputs.resize(index + 1);
  net_[id].outputs[index] = output;
  return output;
}

void Emitter::set_attribute(NodeId id, const std::string& name, AttributeValue value) {
  for (Attribute& attribute : net_[id].attributes)
    if (attribute.name == name) {
      attribute.value = std::move(value);
      return;
    }
  net_[id].attributes.push_back({name, std::move(value)});
}

ValueId Emitter::add_input(const std::string& wanted) {
  const ValueId id = add_value(unused_name(wanted), Value::Kind::input);
  net_.inputs.push_back(id);
  return id;
}

ValueId Emitter::constant(std::shared_ptr<const Blob> blob) {
  const ValueId id = add_value(unused_name(prefix_ + ".constant"), Value::Kind::constant);
  net_[id].type = DeclaredType::of(blob->dtype, blob->shape);
  net_[id].content.blob = std::move(blob);
  return id;
}

ValueId Emitter::constant_ints(const std::vector<int64_t>& values) {
  return constant(Blob::copy_of(DType::i64, Shape{static_cast<int64_t>(values.size())}, values.data()));
}

void Emitter::rename(ValueId value, const std::string& wanted) {
  net_[value].name = unused_name(wanted);
}

}  // namespace heddle
