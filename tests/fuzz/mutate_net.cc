#include <algorithm>
#include <cstring>

#include "fuzz/mutate.h"

namespace heddle::fuzz {
namespace {

constexpr size_t max_nodes = 40;

constexpr DType dtypes[] = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8,  DType::i16,    DType::i32,
                            DType::i64, DType::u8,   DType::u16, DType::u32, DType::u64, DType::boolean};

class Mutation {
 public:
  Mutation(Net& net, const Material& material, Dice& dice) : net_(net), material_(material), dice_(dice) {}
  void one_change();

 private:
  Node* node() { return net_.nodes.empty() ? nullptr : &dice_.pick(net_.nodes); }
  ValueId value_before(size_t node);
  ValueId new_output(NodeId producer, uint32_t index);
  std::string fresh(const char* stem);
  void change_operator();
  void change_attribute();
  void change_inputs();
  void change_outputs();
  void change_declaration(DeclaredType& type);
  void change_content(Content& content, DeclaredType& type);
  void change_value();
  void change_placement();
  void change_ports_of_net();
  void add_node();
  void splice();
  void add_update();
  void change_subnet();

  Net& net_;
  const Material& material_;
  Dice& dice_;
};

// Returns a value that node `index` may read; now and then one that it may not, or none.
ValueId Mutation::value_before(size_t index) {
  if (net_.values.empty() || dice_.one_in(20)) return {};
  for (int attempt = 0; attempt < 8; ++attempt) {
    const ValueId id(dice_.below(net_.values.size()));
    const Value& value = net_[id];
    if (!value.producer.valid() || value.producer.index < index) return id;
  }
  return dice_.one_in(30) ? ValueId(dice_.below(net_.values.size())) : ValueId();
}

std::string Mutation::fresh(const char* stem) {
  return std::string(stem) + "#" + std::to_string(net_.values.size()) + "." + std::to_string(net_.nodes.size());
}

ValueId Mutation::new_output(NodeId producer, uint32_t index) {
  Value value;
  value.name = fresh("v");
  value.producer = producer;
  value.output = index;
  net_.values.push_back(std::move(value));
  return ValueId(net_.values.size() - 1);
}

void Mutation::change_operator() {
  Node* n = node();
  if (!n || material_.operators.empty()) return;
  const OperatorSchema& schema = *dice_.pick(material_.operators);
  n->domain = schema.domain;
  n->type = schema.name;
  if (dice_.one_in(2)) n->attributes.clear();
}

void Mutation::change_attribute() {
  Node* n = node();
  if (!n) return;
  if (!n->attributes.empty() && dice_.one_in(3)) {
    Attribute& attribute = dice_.pick(n->attributes);
    if (auto* list = std::get_if<std::vector<int64_t>>(&attribute.value); list && !list->empty() && !dice_.one_in(4)) {
      dice_.pick(*list) = dice_.integer();
      return;
    }
    if (dice_.one_in(6)) {
      n->attributes.erase(n->attributes.begin() + (&attribute - n->attributes.data()));
      return;
    }
    const auto type = static_cast<heddle_attribute_type>(dice_.one_in(6) ? 1 + dice_.below(8) : attribute.value.index() + 1);
    attribute.value = random_attribute(type, material_, dice_);
    return;
  }
  // Sets an attribute that the operator's schema has.
  for (const OperatorSchema* schema : material_.operators) {
    if (schema->name != n->type || schema->domain != n->domain || schema->op->attribute_count == 0) continue;
    const heddle_attribute_schema& wanted = *schema->op->attributes[dice_.below(schema->op->attribute_count)];
    const AttributeValue value = random_attribute(wanted.type, material_, dice_);
    for (Attribute& attribute : n->attributes)
      if (attribute.name == wanted.name) {
        attribute.value = value;
        return;
      }
    n->attributes.push_back({wanted.name, value});
    return;
  }
}

void Mutation::change_inputs() {
  Node* n = node();
  if (!n) return;
  const auto index = static_cast<size_t>(n - net_.nodes.data());
  if (n->inputs.empty() || dice_.one_in(4)) {
    n->inputs.push_back(value_before(index));
  } else if (dice_.one_in(4)) {
    n->inputs.pop_back();
  } else if (dice_.one_in(4)) {
    std::swap(dice_.pick(n->inputs), dice_.pick(n->inputs));
  } else {
    dice_.pick(n->inputs) = value_before(index);
  }
}

void Mutation::change_outputs() {
  Node* n = node();
  if (!n || n->outputs.size() > 16) return;
  const auto index = static_cast<size_t>(n - net_.nodes.data());
  const auto count = static_cast<uint32_t>(n->outputs.size());
  const ValueId added = dice_.one_in(4) ? ValueId() : new_output(NodeId(index), count);
  net_.nodes[index].outputs.push_back(added);
}

void Mutation::change_declaration(DeclaredType& type) {
  if (dice_.one_in(4)) {
    type.dtype = dice_.one_in(8) ? DType::none : dice_.pick(dtypes);
  } else if (dice_.one_in(12)) {
    type.ranked = false;
    type.dims.clear();
  } else if (type.dims.empty() || dice_.one_in(6)) {
    type.ranked = true;
    type.dims.push_back(Dim::of(static_cast<int64_t>(dice_.below(9))));
  } else if (dice_.one_in(6)) {
    type.dims.pop_back();
  } else {
    Dim& dim = dice_.pick(type.dims);
    dim = dice_.one_in(6)   ? Dim::named(dice_.one_in(2) ? "N" : "M")
          : dice_.one_in(6) ? Dim::at_most(dice_.integer())
                            : Dim::of(dice_.integer());
    if (dice_.one_in(12)) dim = Dim{};
  }
}

void Mutation::change_content(Content& content, DeclaredType& type) {
  if (!content.blob) return;
  DType dtype = content.blob->dtype;
  Shape shape = content.blob->shape;
  if (dice_.one_in(5)) dtype = dice_.pick(dtypes);
  if (dice_.one_in(3)) shape = random_shape(dice_);
  if (shape.element_count() > max_elements) return;
  auto changed = random_blob(dtype, shape, dice_);
  if (dtype == content.blob->dtype && shape == content.blob->shape && !dice_.one_in(4)) {
    // Changes one element of it alone.
    std::byte* data = nullptr;
    auto copy = Blob::allocate(dtype, shape, &data);
    if (copy->bytes > 0) {
      std::memcpy(data, content.blob->data, static_cast<size_t>(copy->bytes));
      const auto width = static_cast<size_t>(byte_width(dtype));
      const size_t at = dice_.below(static_cast<size_t>(copy->bytes) / width) * width;
      std::memcpy(data + at, changed->data + at, width);
    }
    changed = copy;
  }
  content.blob = changed;
  content.reference.reset();
  type = DeclaredType::of(dtype, shape);
}

void Mutation::change_value() {
  if (net_.values.empty()) return;
  Value& value = dice_.pick(net_.values);
  switch (value.kind) {
    case Value::Kind::constant:
      change_content(value.content, value.type);
      break;
    case Value::Kind::variable: {
      Variable& variable = net_[value.variable];
      change_content(variable.initial, variable.type);
      for (Value& version : net_.values)
        if (version.variable == value.variable) version.type = variable.type;
      break;
    }
    case Value::Kind::input:
      if (dice_.one_in(6)) {
        // Turns the input into a constant.
        Shape shape;
        for (const Dim& dim : value.type.dims) shape.push_back(dim.kind == Dim::Kind::constant ? dim.value : 2);
        if (value.type.dtype == DType::none || shape.element_count() > max_elements) break;
        const ValueId id(static_cast<size_t>(&value - net_.values.data()));
        std::erase(net_.inputs, id);
        value.kind = Value::Kind::constant;
        value.content.blob = random_blob(value.type.dtype, shape, dice_);
        value.type = DeclaredType::of(value.type.dtype, shape);
        break;
      }
      change_declaration(value.type);
      break;
    default:
      if (!value.variable.valid()) change_declaration(value.type);
  }
}

void Mutation::change_placement() {
  static const char* const devices[] = {"", "cpu", "cpu:0", "cpu:1", "cuda:0", "sim:3", ":", "cpu:99999999999"};
  Node* n = node();
  if (!n) return;
  const auto index = static_cast<size_t>(n - net_.nodes.data());
  switch (dice_.below(4)) {
    case 0:
      n->device = dice_.pick(devices);
      break;
    case 1:
      n->version = static_cast<int32_t>(dice_.integer());
      break;
    case 2:
      n->control.push_back(NodeId(dice_.below(dice_.one_in(8) ? net_.nodes.size() : index)));
      break;
    default:
      net_.operator_sets = {{n->domain, static_cast<int32_t>(dice_.below(24))}};
  }
}

void Mutation::change_ports_of_net() {
  if (net_.values.empty()) return;
  if (!net_.outputs.empty() && dice_.one_in(3)) {
    net_.outputs.erase(net_.outputs.begin() + static_cast<std::ptrdiff_t>(dice_.below(net_.outputs.size())));
  } else if (dice_.one_in(4) && net_.inputs.size() > 1) {
    std::swap(dice_.pick(net_.inputs), dice_.pick(net_.inputs));
  } else {
    const ValueId id(dice_.below(net_.values.size()));
    if (std::find(net_.outputs.begin(), net_.outputs.end(), id) == net_.outputs.end()) net_.outputs.push_back(id);
  }
}

void Mutation::add_node() {
  if (net_.nodes.size() >= max_nodes || material_.operators.empty()) return;
  const OperatorSchema& schema = *dice_.pick(material_.operators);
  const size_t index = net_.nodes.size();
  Node added;
  added.name = fresh("n");
  added.domain = schema.domain;
  added.type = schema.name;
  const size_t least = schema.required_inputs, most = std::max<size_t>(least, schema.op->input_count);
  for (size_t left = least + dice_.below(most - least + 2); left > 0; --left) added.inputs.push_back(value_before(index));
  for (uint32_t k = 0; k < schema.op->attribute_count; ++k) {
    const heddle_attribute_schema& attribute = *schema.op->attributes[k];
    if (attribute.required || dice_.one_in(4))
      added.attributes.push_back({attribute.name, random_attribute(attribute.type, material_, dice_)});
  }
  const uint32_t outputs = 1 + static_cast<uint32_t>(dice_.below(std::max<size_t>(1, schema.op->output_count)));
  net_.nodes.push_back(std::move(added));
  for (uint32_t k = 0; k < outputs; ++k) {
    const ValueId output = new_output(NodeId(index), k);
    net_.nodes[index].outputs.push_back(output);
    net_.outputs.push_back(output);
  }
}

// Appends another seed to this net; its inputs become values of this one now and then.
void Mutation::splice() {
  const Net& other = dice_.pick(material_.seeds);
  if (net_.nodes.size() + other.nodes.size() > max_nodes || !other.variables.empty() || !net_.variables.empty()) return;
  const size_t values = net_.values.size(), nodes = net_.nodes.size();
  const std::string prefix = fresh("s") + "/";
  std::vector<ValueId> map(other.values.size());
  for (size_t i = 0; i < other.values.size(); ++i) {
    const Value& from = other.values[i];
    if (from.kind == Value::Kind::input && values > 0 && dice_.one_in(2)) {
      map[i] = ValueId(dice_.below(values));
      continue;
    }
    Value copy = from;
    copy.name = prefix + copy.name;
    if (copy.producer.valid()) copy.producer = NodeId(copy.producer.index + nodes);
    net_.values.push_back(std::move(copy));
    map[i] = ValueId(net_.values.size() - 1);
    if (from.kind == Value::Kind::input) net_.inputs.push_back(map[i]);
  }
  const auto moved = [&](ValueId id) { return id.valid() ? map[id.index] : id; };
  for (const Node& from : other.nodes) {
    Node copy = from;
    copy.name = prefix + copy.name;
    for (ValueId& id : copy.inputs) id = moved(id);
    for (ValueId& id : copy.outputs) id = moved(id);
    for (NodeId& id : copy.control) id = NodeId(id.index + nodes);
    net_.nodes.push_back(std::move(copy));
  }
  for (const ValueId id : other.outputs)
    if (std::find(net_.outputs.begin(), net_.outputs.end(), moved(id)) == net_.outputs.end()) net_.outputs.push_back(moved(id));
}

// Adds a variable whose next version is a node's output.
void Mutation::add_update() {
  std::vector<ValueId> plain;
  for (size_t i = 0; i < net_.values.size(); ++i)
    if (net_.values[i].kind == Value::Kind::node_output && !net_.values[i].variable.valid()) plain.push_back(ValueId(i));
  if (plain.empty()) return;
  NetBuilder builder("");
  std::swap(builder.net(), net_);
  const ValueId first = builder.variable(fresh("w"), random_blob(dice_.pick(dtypes), random_shape(dice_), dice_), dice_.one_in(2));
  builder.updates(dice_.pick(plain), first);
  std::swap(builder.net(), net_);
  if (Node* n = node()) n->inputs.push_back(first);
}

void Mutation::change_subnet() {
  std::vector<std::shared_ptr<const Net>*> subnets;
  for (Node& n : net_.nodes)
    for (Attribute& a : n.attributes)
      if (auto* subnet = std::get_if<std::shared_ptr<const Net>>(&a.value)) subnets.push_back(subnet);
  if (subnets.empty()) return change_attribute();
  auto& chosen = *dice_.pick(subnets);
  auto copy = std::make_shared<Net>(*chosen);
  mutate_net(*copy, material_, dice_);
  chosen = copy;
}

void Mutation::one_change() {
  switch (dice_.below(16)) {
    case 0:
      return change_operator();
    case 1:
    case 2:
    case 3:
      return change_attribute();
    case 4:
    case 5:
      return change_inputs();
    case 6:
      return change_outputs();
    case 7:
    case 8:
    case 9:
      return change_value();
    case 10:
      return change_placement();
    case 11:
      return change_ports_of_net();
    case 12:
      return add_node();
    case 13:
      return splice();
    case 14:
      return add_update();
    default:
      return change_subnet();
  }
}

}  // namespace

Shape random_shape(Dice& dice) {
  static constexpr int64_t extents[] = {0, 1, 1, 2, 2, 3, 4, 5, 7, 8, 16, 17, 64};
  Shape shape;
  for (size_t left = dice.below(dice.one_in(8) ? 9 : 5); left > 0; --left) shape.push_back(dice.pick(extents));
  return shape.element_count() <= max_elements ? shape : Shape{2};
}

AttributeValue random_attribute(heddle_attribute_type type, const Material& material, Dice& dice) {
  static const char* const words[] = {"",           "constant",   "reflect",    "edge",       "nearest",  "linear",  "cubic",
                                      "sum",        "NOTSET",     "SAME_UPPER", "SAME_LOWER", "VALID",    "none",    "mean",
                                      "max",        "add",        "mul",        "DCR",        "forward",  "reverse", "bidirectional",
                                      "asymmetric", "half_pixel", "floor",      "x0 + x1",    "ij,jk->ik"};
  const size_t count = dice.below(dice.one_in(10) ? 40 : 5);
  switch (type) {
    case HEDDLE_ATTRIBUTE_FLOAT:
      return dice.real();
    case HEDDLE_ATTRIBUTE_STRING:
      return std::string(dice.pick(words));
    case HEDDLE_ATTRIBUTE_INTS: {
      std::vector<int64_t> list(count);
      for (int64_t& i : list) i = dice.integer();
      return list;
    }
    case HEDDLE_ATTRIBUTE_FLOATS: {
      std::vector<double> list(count);
      for (double& f : list) f = dice.real();
      return list;
    }
    case HEDDLE_ATTRIBUTE_STRINGS: {
      std::vector<std::string> list(count);
      for (std::string& s : list) s = dice.pick(words);
      return list;
    }
    case HEDDLE_ATTRIBUTE_TENSOR:
      return random_blob(dice.pick(dtypes), random_shape(dice), dice);
    case HEDDLE_ATTRIBUTE_SUBNET:
      return std::make_shared<const Net>(dice.pick(material.seeds));
    default:
      return dice.integer();
  }
}

std::shared_ptr<const Blob> random_blob(DType dtype, const Shape& shape, Dice& dice) {
  std::byte* data = nullptr;
  auto blob = Blob::allocate(dtype, shape, &data);
  const int64_t width = byte_width(dtype);
  for (int64_t i = 0; i < shape.element_count(); ++i) {
    std::byte* at = data + i * width;
    const int64_t integer = dice.integer();
    if (dtype == DType::boolean) {
      *at = static_cast<std::byte>(dice.below(2));
    } else if (dtype == DType::f32) {
      const auto value = static_cast<float>(dice.real());
      std::memcpy(at, &value, sizeof(value));
    } else if (dtype == DType::f64) {
      const double value = dice.real();
      std::memcpy(at, &value, sizeof(value));
    } else {
      std::memcpy(at, &integer, static_cast<size_t>(width));
    }
  }
  return blob;
}

void mutate_net(Net& net, const Material& material, Dice& dice) {
  Mutation mutation(net, material, dice);
  for (size_t left = 1 + dice.below(dice.one_in(3) ? 6 : 2); left > 0; --left) mutation.one_change();
}

}  // namespace heddle::fuzz
