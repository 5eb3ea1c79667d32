#include "plugin/pointwise_lowering.h"

#include <fmt/format.h>

#include "base/text/text.h"

namespace heddle {
namespace {

void add_constant(expression::Constants& constants, const char* name, const AttributeValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) constants.emplace_back(name, static_cast<double>(*i));
  if (const auto* f = std::get_if<double>(&value)) constants.emplace_back(name, *f);
}

// Adds the numbers that string attributes and optional inputs stand for in an expression: <attribute>_is_<value> and has_<input>.
void add_choices(const heddle_operator& op, const std::vector<Attribute>& attributes, const std::vector<bool>& present,
                 expression::Constants& constants) {
  for (uint32_t i = 0; i < op.attribute_count; ++i) {
    const heddle_attribute_schema& schema = *op.attributes[i];
    if (schema.type != HEDDLE_ATTRIBUTE_STRING) continue;
    std::string value = schema.default_value ? std::string(schema.default_value->s, schema.default_value->count) : std::string();
    for (const Attribute& a : attributes)
      if (const auto* s = std::get_if<std::string>(&a.value); s && a.name == schema.name) value = *s;
    const std::string prefix = std::string(schema.name) + "_is_";
    for (const std::string& word : expression::mentioned(op.pointwise, prefix))
      constants.emplace_back(prefix + word, word == value ? 1 : 0);
  }
  for (size_t i = 0; i < op.input_count; ++i)
    constants.emplace_back(std::string("has_") + op.inputs[i]->name, i < present.size() && present[i] ? 1 : 0);
}

}  // namespace

Result<std::string> pointwise_program(const OperatorSchema& schema, const std::vector<Attribute>& attributes,
                                      const std::vector<bool>& present) {
  const heddle_operator& op = *schema.op;
  const auto refuse = [&](const std::string& why) {
    return Status(Code::unsupported, fmt::format("has no kernel and no pointwise form: {}", why));
  };
  if (!op.pointwise) return refuse("its schema gives none");
  expression::Constants constants;
  for (const Attribute& a : attributes) add_constant(constants, a.name.c_str(), a.value);
  for (uint32_t i = 0; i < op.attribute_count; ++i) {
    const heddle_attribute* d = op.attributes[i]->default_value;
    bool given = false;
    for (const auto& c : constants) given = given || c.first == op.attributes[i]->name;
    if (given || !d) continue;
    if (d->type == HEDDLE_ATTRIBUTE_INT) constants.emplace_back(d->name, static_cast<double>(d->i));
    if (d->type == HEDDLE_ATTRIBUTE_FLOAT) constants.emplace_back(d->name, d->f);
  }
  add_choices(op, attributes, present, constants);
  expression::Program program;
  for (size_t i = 0; i < op.input_count; ++i) program.inputs.emplace_back(op.inputs[i]->name);
  const size_t ports = program.inputs.size();
  std::string error;
  if (!expression::parse(op.pointwise, constants, program, error)) return refuse(error);
  if (program.inputs.size() > ports) return refuse(fmt::format("{} is neither an input nor a number", quoted(program.inputs.back())));
  expression::prune(program);
  for (const expression::Instruction& i : program.code)
    if (i.op == expression::Opcode::input && (static_cast<size_t>(i.a) >= present.size() || !present[static_cast<size_t>(i.a)]))
      return refuse(fmt::format("input {} is absent", quoted(program.inputs[static_cast<size_t>(i.a)])));
  for (size_t i = 0; i < ports; ++i) program.inputs[i] = fmt::format("x{}", i);
  return expression::print(program);
}

bool is_pointwise_node(const Node& node) {
  return node.domain == "heddle" && node.type == "Pointwise";
}

bool has_pointwise_form(const Node& node) {
  return node.schema->op->pointwise || is_pointwise_node(node);
}

Result<expression::Program> pointwise_form(const Node& node) {
  const auto refuse = [&](const char* why) { return Status(Code::unsupported, fmt::format("has no pointwise form: {}", why)); };
  std::string text;
  if (is_pointwise_node(node)) {
    const AttributeValue* const value = node.find("program");
    if (!value) return refuse("no program");
    text = std::get<std::string>(*value);
  } else {
    if (!node.schema->op->pointwise || node.outputs.size() != 1) return refuse("its schema gives none");
    std::vector<bool> present;
    for (const ValueId id : node.inputs) present.push_back(id.valid());
    HEDDLE_TRY(text, pointwise_program(*node.schema, node.attributes, present));
  }
  expression::Program program;
  for (size_t i = 0; i < node.inputs.size(); ++i) program.inputs.push_back(fmt::format("x{}", i));
  std::string error;
  if (!expression::parse(text, {}, program, error)) return refuse(error.c_str());
  if (program.inputs.size() != node.inputs.size()) return refuse("it reads more than its inputs");
  return program;
}

bool becomes_pointwise(const TypedNet& net, const Node& node) {
  if (!node.schema->op->pointwise || node.outputs.size() != 1) return false;
  DType arithmetic = DType::none;
  for (const ValueId input : node.inputs) {
    const DType dtype = input.valid() ? net.type(input).dtype : DType::none;
    if (dtype == DType::none || dtype == DType::boolean) continue;
    if (arithmetic != DType::none && arithmetic != dtype) return false;
    arithmetic = dtype;
  }
  return true;
}

}  // namespace heddle
