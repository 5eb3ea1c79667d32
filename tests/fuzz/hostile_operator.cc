#include "fuzz/hostile_operator.h"

#include <algorithm>
#include <cstring>

namespace heddle::fuzz {
namespace {

// Turns inputs that are constants into fed ones, mostly; the feed keeps their content.
OperatorCase with_feeds(Net net, Dice& dice) {
  OperatorCase made;
  made.feeds.resize(net.inputs.size());
  const bool all = dice.one_in(2);
  for (size_t i = 0; i < net.values.size(); ++i) {
    Value& value = net.values[i];
    if (value.kind != Value::Kind::constant || !value.content.blob || (!all && dice.one_in(2))) continue;
    made.feeds.push_back(value.content.blob);
    value.kind = Value::Kind::input;
    value.content = {};
    net.inputs.emplace_back(i);
  }
  made.net = std::move(net);
  return made;
}

DType allowed_dtype(const heddle_port& port, Dice& dice) {
  std::vector<DType> allowed;
  for (int d = 1; d < HEDDLE_DTYPE_COUNT; ++d)
    if (port.dtypes & HEDDLE_DTYPE_BIT(d)) allowed.push_back(static_cast<DType>(d));
  return allowed.empty() || dice.one_in(12) ? static_cast<DType>(1 + dice.below(HEDDLE_DTYPE_COUNT - 1)) : dice.pick(allowed);
}

// Changes an extent or the rank of an operand to anything.
void change_shape(Shape& shape, Dice& dice) {
  if (shape.rank() == 0 || dice.one_in(4)) {
    shape.push_back(dice.one_in(2) ? 1 : static_cast<int64_t>(dice.below(4)));
  } else if (dice.one_in(4)) {
    shape = Shape(shape.data(), shape.rank() - 1);
  } else {
    const int64_t extent = dice.integer();
    shape[static_cast<int>(dice.below(static_cast<size_t>(shape.rank())))] = extent < 0 ? 0 : extent;
  }
}

bool is_integer(DType dtype) {
  return dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::f32 && dtype != DType::f64 && dtype != DType::boolean;
}

// Returns the same tensor with one element changed; of a short list of integers, which may be extents, axes or counts, up to all of them.
std::shared_ptr<const Blob> other_content(const Blob& blob, Dice& dice) {
  std::byte* data = nullptr;
  auto copy = Blob::allocate(blob.dtype, blob.shape, &data);
  if (blob.bytes == 0) return copy;
  std::memcpy(data, blob.data, static_cast<size_t>(blob.bytes));
  const auto other = random_blob(blob.dtype, blob.shape, dice);
  const auto width = static_cast<size_t>(byte_width(blob.dtype)), count = static_cast<size_t>(blob.bytes) / width;
  const bool few = is_integer(blob.dtype) && count <= 8;
  for (size_t left = few ? 1 + dice.below(count) : 1; left > 0; --left) {
    const size_t at = dice.below(count) * width;
    std::memcpy(data + at, other->data + at, width);
    if (!few || !dice.one_in(3)) continue;
    static constexpr int64_t huge[] = {INT64_MAX, INT64_MIN,    INT64_MAX / 2, 1LL << 62, 1LL << 40,
                                       1LL << 33, -(1LL << 40), INT32_MAX,     INT32_MIN};
    const int64_t extreme = dice.pick(huge);
    std::memcpy(data + at, &extreme, width);
  }
  return copy;
}

// Gives all operands of one dtype another one, mostly one that the operator takes.
void change_dtypes(OperatorCase& made, const OperatorSchema& schema, Dice& dice) {
  Net& net = made.net;
  const Node& node = net.nodes[0];
  if (node.inputs.empty()) return;
  const size_t port_index = dice.below(node.inputs.size());
  const ValueId first = node.inputs[port_index];
  const heddle_port* port = schema.input_port(port_index);
  if (!first.valid() || !port) return;
  const DType from = net[first].type.dtype, to = allowed_dtype(*port, dice);
  for (size_t i = 0; i < net.values.size(); ++i) {
    Value& value = net.values[i];
    if (value.kind == Value::Kind::node_output || value.type.dtype != from) continue;
    value.type.dtype = to;
    if (value.content.blob) value.content.blob = random_blob(to, value.content.blob->shape, dice);
    for (size_t k = 0; k < net.inputs.size() && k < made.feeds.size(); ++k)
      if (net.inputs[k].index == i && made.feeds[k]) made.feeds[k] = random_blob(to, made.feeds[k]->shape, dice);
  }
}

}  // namespace

HostileOperators::HostileOperators(Material material) : material_(std::move(material)) {
  for (size_t i = 0; i < material_.seeds.size(); ++i) {
    const Net& net = material_.seeds[i];
    if (net.nodes.size() == 1) seeds_[display_name(net.nodes[0].domain, net.nodes[0].type)].push_back(i);
  }
}

Net HostileOperators::from_schema(const OperatorSchema& schema, Dice& dice) const {
  NetBuilder b("case");
  const bool scalars = dice.one_in(4);  // for operators that take numbers rather than tensors
  Shape shape = scalars ? Shape{} : random_shape(dice);
  std::map<std::string, DType> variables;
  std::vector<ValueId> inputs;
  const size_t most = std::max<size_t>(schema.required_inputs, schema.op->input_count);
  for (size_t i = 0, count = schema.required_inputs + dice.below(most - schema.required_inputs + 2); i < count; ++i) {
    const heddle_port* port = schema.input_port(i);
    if (!port) break;
    if (!scalars && dice.one_in(10)) shape = random_shape(dice);
    DType dtype = allowed_dtype(*port, dice);
    if (port->type_variable && !dice.one_in(12)) dtype = variables.try_emplace(port->type_variable, dtype).first->second;
    const Shape own = dice.one_in(6) ? random_shape(dice) : shape;
    const std::string name = "x" + std::to_string(i);
    inputs.push_back(dice.one_in(2) ? b.input(name, dtype, own) : b.constant(name, random_blob(dtype, own, dice)));
  }
  std::vector<Attribute> attributes;
  for (uint32_t k = 0; k < schema.op->attribute_count; ++k) {
    const heddle_attribute_schema& attribute = *schema.op->attributes[k];
    if (attribute.required || dice.one_in(3)) attributes.push_back({attribute.name, random_attribute(attribute.type, material_, dice)});
  }
  const size_t outputs = 1 + dice.below(std::max<size_t>(1, schema.op->output_count));
  for (const ValueId output : b.add(schema.name, "node", inputs, outputs, std::move(attributes), schema.domain)) b.output(output);
  return b.finish();
}

// Changes one thing about the operator or its operands.
void HostileOperators::spoil(Net& net, Dice& dice) const {
  Node& node = net.nodes[0];
  if (dice.one_in(3)) {  // an attribute: one that is there, or one of the schema
    if (!node.attributes.empty() && dice.one_in(2)) {
      Attribute& attribute = dice.pick(node.attributes);
      if (auto* list = std::get_if<std::vector<int64_t>>(&attribute.value); list && !list->empty()) {
        dice.pick(*list) = dice.integer();
      } else {
        attribute.value = random_attribute(static_cast<heddle_attribute_type>(attribute.value.index() + 1), material_, dice);
      }
      return;
    }
    for (const OperatorSchema* schema : material_.operators) {
      if (schema->name != node.type || schema->domain != node.domain || schema->op->attribute_count == 0) continue;
      const heddle_attribute_schema& wanted = *schema->op->attributes[dice.below(schema->op->attribute_count)];
      std::erase_if(node.attributes, [&](const Attribute& a) { return a.name == wanted.name; });
      node.attributes.push_back({wanted.name, random_attribute(wanted.type, material_, dice)});
      return;
    }
    return;
  }
  if (node.inputs.empty()) return;
  const ValueId id = dice.pick(node.inputs);
  if (!id.valid()) return;
  Value& value = net[id];
  if (dice.one_in(8)) {  // an operand that is not there
    dice.pick(node.inputs) = ValueId();
    return;
  }
  DType dtype = value.type.dtype;
  Shape shape;
  for (const Dim& dim : value.type.dims) shape.push_back(dim.kind == Dim::Kind::constant ? dim.value : 2);
  if (dice.one_in(4)) dtype = static_cast<DType>(1 + dice.below(HEDDLE_DTYPE_COUNT - 1));
  const bool content = value.kind == Value::Kind::constant && value.content.blob && dice.one_in(2);
  if (!content) change_shape(shape, dice);
  if (value.kind == Value::Kind::constant && shape.element_count() > max_elements) return;
  value.type = DeclaredType::of(dtype, shape);
  if (value.kind == Value::Kind::constant) value.content.blob = random_blob(dtype, shape, dice);
}

OperatorCase HostileOperators::make(size_t number, Dice& dice) const {
  const OperatorSchema& schema = *material_.operators[number % material_.operators.size()];
  const auto seeds = seeds_.find(display_name(schema.domain, schema.name));
  Net net;
  if (seeds == seeds_.end() || dice.one_in(4)) {
    net = from_schema(schema, dice);
  } else {
    net = material_.seeds[dice.pick(seeds->second)];
  }
  OperatorCase made = with_feeds(std::move(net), dice);
  // The model's declared types of results would contradict every change.
  if (!dice.one_in(8))
    for (Value& value : made.net.values)
      if (value.kind == Value::Kind::node_output && !value.variable.valid()) value.type = {};
  for (size_t left = dice.one_in(2) ? 0 : 1 + dice.below(3); left > 0; --left) spoil(made.net, dice);
  if (dice.one_in(3)) change_dtypes(made, schema, dice);
  // A feed keeps its type if its input now has another: some cases are given what they do not declare.
  for (auto& feed : made.feeds)
    if (feed && feed->bytes > 0 && dice.one_in(is_integer(feed->dtype) ? 2 : 4)) feed = other_content(*feed, dice);
  for (Value& value : made.net.values)
    if (value.content.blob && value.kind == Value::Kind::constant && dice.one_in(is_integer(value.content.blob->dtype) ? 2 : 8))
      value.content.blob = other_content(*value.content.blob, dice);
  return made;
}

}  // namespace heddle::fuzz
