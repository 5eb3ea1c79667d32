#include "net/net.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/checked.h"
#include "base/text/text.h"

namespace heddle {

std::string WeightsIdentity::text() const {
  return hex(high) + hex(low);
}
bool WeightsIdentity::parse(std::string_view text, WeightsIdentity* identity) {
  return text.size() == 32 && parse_hex(text.substr(0, 16), &identity->high) && parse_hex(text.substr(16), &identity->low);
}

DeclaredType DeclaredType::of(DType dtype, const Shape& shape) {
  DeclaredType type;
  type.dtype = dtype;
  type.ranked = true;
  for (int64_t dim : shape) type.dims.push_back(Dim::of(dim));
  return type;
}

std::optional<Shape> DeclaredType::fixed_shape() const {
  Shape shape;
  for (const Dim& dim : dims) {
    if (dim.kind != Dim::Kind::constant) return std::nullopt;
    shape.push_back(dim.value);
  }
  return ranked ? std::optional(shape) : std::nullopt;
}

std::shared_ptr<Blob> Blob::allocate(DType dtype, const Shape& shape, std::byte** mutable_data) {
  auto blob = std::make_shared<Blob>();
  blob->dtype = dtype;
  blob->shape = shape;
  blob->bytes = byte_width(dtype) * shape.element_count();
  const auto size = static_cast<size_t>(align_up(blob->bytes, 64)) + 64;  // one more cache line: vector loads may read past the end
  void* memory = ::operator new (size, std::align_val_t{64});
  std::memset(memory, 0, size);
  blob->owner = std::shared_ptr<const void>(memory, [](const void* p) { ::operator delete (const_cast<void*>(p), std::align_val_t{64}); });
  blob->data = static_cast<const std::byte*>(memory);
  *mutable_data = static_cast<std::byte*>(memory);
  return blob;
}

std::shared_ptr<Blob> Blob::copy_of(DType dtype, const Shape& shape, const void* data) {
  std::byte* bytes = nullptr;
  auto blob = allocate(dtype, shape, &bytes);
  if (blob->bytes > 0) std::memcpy(bytes, data, static_cast<size_t>(blob->bytes));
  return blob;
}

const AttributeValue* Node::find(const std::string& attribute) const {
  for (const Attribute& a : attributes)
    if (a.name == attribute) return &a.value;
  return nullptr;
}

bool Node::has_subnet() const {
  return std::any_of(attributes.begin(), attributes.end(),
                     [](const Attribute& a) { return std::holds_alternative<std::shared_ptr<const Net>>(a.value); });
}

int64_t Node::int_attribute(const std::string& attribute, int64_t otherwise) const {
  const AttributeValue* value = find(attribute);
  const int64_t* i = value ? std::get_if<int64_t>(value) : nullptr;
  return i ? *i : otherwise;
}

std::optional<ValueId> Net::find_value(const std::string& value_name) const {
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].name == value_name) return ValueId(i);
  return std::nullopt;
}

ValueId add_variable(Net& net, Variable variable) {
  Value value;
  value.name = variable.name;
  value.kind = Value::Kind::variable;
  value.type = variable.type;
  value.variable = VariableId(net.variables.size());
  variable.first = variable.last = ValueId(net.values.size());
  net.values.push_back(std::move(value));
  net.variables.push_back(std::move(variable));
  return net.variables.back().first;
}

void make_next_version(Net& net, ValueId output, ValueId before) {
  Value& next = net[output];
  next.kind = Value::Kind::variable;
  next.variable = net[before].variable;
  next.version = net[before].version + 1;
  next.type = net[before].type;
  net[next.variable].last = output;
}

ValueId NetBuilder::input(std::string name, DeclaredType type) {
  Value value;
  value.name = std::move(name);
  value.kind = Value::Kind::input;
  value.type = std::move(type);
  net_.values.push_back(std::move(value));
  const ValueId id(net_.values.size() - 1);
  net_.inputs.push_back(id);
  return id;
}

ValueId NetBuilder::constant(std::string name, std::shared_ptr<const Blob> blob) {
  Value value;
  value.name = std::move(name);
  value.kind = Value::Kind::constant;
  if (blob) value.type = DeclaredType::of(blob->dtype, blob->shape);
  value.content.blob = std::move(blob);
  net_.values.push_back(std::move(value));
  return ValueId(net_.values.size() - 1);
}

ValueId NetBuilder::constant_ints(std::string name, const std::vector<int64_t>& values) {
  return constant(std::move(name), Blob::copy_of(DType::i64, Shape{static_cast<int64_t>(values.size())}, values.data()));
}

ValueId NetBuilder::constant_float(std::string name, float value) {
  return constant(std::move(name), Blob::copy_of(DType::f32, Shape{}, &value));
}

ValueId NetBuilder::variable(std::string name, std::shared_ptr<const Blob> initial, bool trainable) {
  Variable variable;
  variable.name = std::move(name);
  if (initial) variable.type = DeclaredType::of(initial->dtype, initial->shape);
  variable.initial.blob = std::move(initial);
  variable.trainable = trainable;
  return add_variable(net_, std::move(variable));
}

ValueId NetBuilder::variable(std::string name, DType dtype, const Shape& shape, std::string initializer, bool trainable) {
  Variable variable;
  variable.name = std::move(name);
  variable.type = DeclaredType::of(dtype, shape);
  variable.initializer = std::move(initializer);
  variable.trainable = trainable;
  return add_variable(net_, std::move(variable));
}

std::vector<ValueId> NetBuilder::add(std::string type, std::string name, std::vector<ValueId> inputs, size_t output_count,
                                     std::vector<Attribute> attributes, std::string domain) {
  Node node;
  node.name = std::move(name);
  node.domain = std::move(domain);
  node.type = std::move(type);
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  node.random_stream = static_cast<uint32_t>(net_.nodes.size());
  for (size_t i = 0; i < output_count; ++i) {
    Value value;
    value.name = output_count == 1 ? node.name : fmt::format("{}:{}", node.name, i);
    value.producer = NodeId(net_.nodes.size());
    value.output = static_cast<uint32_t>(i);
    net_.values.push_back(std::move(value));
    node.outputs.emplace_back(net_.values.size() - 1);
  }
  net_.nodes.push_back(std::move(node));
  return net_.nodes.back().outputs;
}

void NetBuilder::updates(ValueId output, ValueId variable_version) {
  if (!has(output) || !has(variable_version) || !net_[variable_version].variable.valid()) {
    net_.outputs.emplace_back();
    return;
  }
  make_next_version(net_, output, variable_version);
}

}  // namespace heddle
