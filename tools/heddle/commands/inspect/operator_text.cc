#include "commands/inspect/operator_text.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <utility>

#include "base/text/text.h"
#include "commands/plugin/kernel_json.h"
#include "derive/node_gradient.h"

namespace heddle::tool {
namespace {

std::vector<std::string> traits_of(uint32_t traits) {
  static constexpr std::pair<uint32_t, const char*> names[] = {{HEDDLE_TRAIT_RANDOM, "random"},
                                                               {HEDDLE_TRAIT_COLLECTIVE, "collective"},
                                                               {HEDDLE_TRAIT_CHEAP, "cheap"},
                                                               {HEDDLE_TRAIT_LAYOUT_TRANSPARENT, "layout-transparent"},
                                                               {HEDDLE_TRAIT_SHAPE_ONLY, "shape-only"},
                                                               {HEDDLE_TRAIT_IMPURE, "impure"},
                                                               {HEDDLE_TRAIT_VIEW, "view"}};
  std::vector<std::string> list;
  for (const auto& [bit, name] : names)
    if (traits & bit) list.emplace_back(name);
  return list;
}

const char* text_or(const char* text, const char* otherwise) {
  return text ? text : otherwise;
}

// Joins the lines of a text to one.
std::string on_one_line(std::string_view text) {
  std::string line;
  for (const char c : text)
    if (c != '\n' && c != ' ')
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  return line;
}

// The name of input `input`: for an input, the port whose elements it indexes; for an output, the input whose bytes it takes.
Json name_of(const heddle_operator& op, int32_t input) {
  return input >= 0 && static_cast<uint32_t>(input) < op.input_count ? Json(op.inputs[input]->name) : Json(nullptr);
}

// The dtypes that a port can have: those that all ports with its type variable allow.
heddle_dtype_set dtypes_of(const heddle_operator& op, const heddle_port& port) {
  heddle_dtype_set set = port.dtypes;
  const auto restrict_by = [&](const heddle_port* const* ports, uint32_t count) {
    for (uint32_t i = 0; i < count && port.type_variable; ++i)
      if (ports[i]->type_variable && std::string_view(ports[i]->type_variable) == port.type_variable) set &= ports[i]->dtypes;
  };
  restrict_by(op.inputs, op.input_count);
  restrict_by(op.outputs, op.output_count);
  return set;
}

Json port_json(const heddle_operator& op, const heddle_port& port, bool is_output) {
  const auto has = [&](uint32_t flag) { return (port.flags & flag) != 0; };
  Json json = {{"name", port.name},
               {"dtypes", dtypes_json(dtypes_of(op, port))},
               {"type_variable", port.type_variable ? Json(port.type_variable) : Json(nullptr)},
               {"dims", port.dims ? Json(port.dims) : Json(nullptr)},
               {"optional", has(HEDDLE_PORT_OPTIONAL)},
               {"variadic", has(HEDDLE_PORT_VARIADIC)}};
  json["differentiable"] = !has(HEDDLE_PORT_NOT_DIFFERENTIABLE);
  if (is_output) {
    json["in_place"] = port.may_alias == HEDDLE_ALIAS_ANY ? Json("*") : name_of(op, port.may_alias);
    json["updates"] = name_of(op, port.updates);
    json["may_update"] = has(HEDDLE_PORT_MAY_UPDATE);
  } else {
    json["on_host"] = has(HEDDLE_PORT_HOST) || has(HEDDLE_PORT_SHAPE_OPERAND);
    json["shape_operand"] = has(HEDDLE_PORT_SHAPE_OPERAND);
    json["indexes"] = name_of(op, port.index_bound_port);
  }
  return json;
}

std::string port_text(const Json& port, const heddle_port& declared) {
  std::vector<std::string> parts;
  parts.push_back(dtypes_text(port["dtypes"]));
  const bool one_dtype = port["dtypes"].size() == 1;
  if (port["type_variable"].is_string() && !one_dtype) parts[0] += fmt::format(" ({})", port["type_variable"].get<std::string>());
  if (declared.dims) parts[0] += fmt::format(" [{}]", declared.dims);
  for (const char* flag : {"optional", "variadic", "may_update"})
    if (port.value(flag, false)) parts.emplace_back(std::string(flag) == "may_update" ? "may update a variable" : flag);
  if (port.value("shape_operand", false))
    parts.emplace_back("shape operand");
  else if (port.value("on_host", false))
    parts.emplace_back("on the host");
  if (!port.value("differentiable", true)) parts.emplace_back("not differentiable");
  const auto names = [&](const char* key, const char* text) {
    if (port.contains(key) && port[key].is_string())
      parts.push_back(port[key] == "*" ? fmt::format("{} any input", text) : fmt::format("{} {}", text, port[key].get<std::string>()));
  };
  names("indexes", "indices into");
  if (port.contains("updates") && port["updates"].is_string())
    names("updates", "updates");
  else
    names("in_place", "in place of");
  return join(parts, ", ");
}

// The name of the type in the text form of nets, for heddle_attribute_type of Op.
const char* type_name(heddle_attribute_type type) {
  static constexpr const char* names[] = {"", "int", "float", "string", "ints", "floats", "strings", "tensor", "subnet"};
  return type > 0 && type <= HEDDLE_ATTRIBUTE_SUBNET ? names[type] : "unknown";
}

Json value_json(const heddle_attribute& a) {
  const auto number = [](double f) { return std::isfinite(f) ? Json(f) : Json(shortest(f)); };
  Json list = Json::array();
  switch (a.type) {
    case HEDDLE_ATTRIBUTE_INT:
      return a.i;
    case HEDDLE_ATTRIBUTE_FLOAT:
      return number(a.f);
    case HEDDLE_ATTRIBUTE_STRING:
      return std::string(text_or(a.s, ""), a.s ? a.count : 0);
    case HEDDLE_ATTRIBUTE_INTS:
      for (uint64_t i = 0; i < a.count; ++i) list.push_back(a.ints[i]);
      return list;
    case HEDDLE_ATTRIBUTE_FLOATS:
      for (uint64_t i = 0; i < a.count; ++i) list.push_back(number(a.floats[i]));
      return list;
    case HEDDLE_ATTRIBUTE_STRINGS:
      for (uint64_t i = 0; i < a.count; ++i) list.emplace_back(a.strings[i]);
      return list;
    case HEDDLE_ATTRIBUTE_TENSOR:
      return a.tensor
                 ? Json(fmt::format("{}{}", to_string(static_cast<DType>(a.tensor->dtype)), Shape(a.tensor->dims, a.tensor->rank).text()))
                 : Json(nullptr);
    default:
      return nullptr;
  }
}

Json attribute_json(const heddle_attribute_schema& attribute) {
  return {{"name", attribute.name},
          {"type", type_name(attribute.type)},
          {"required", attribute.required != 0},
          {"default", attribute.default_value ? value_json(*attribute.default_value) : Json(nullptr)}};
}

std::string attribute_text(const Json& attribute) {
  const std::string type = attribute["type"];
  if (!attribute["default"].is_null())
    return fmt::format("{} = {}", type, attribute["default"].dump(-1, ' ', false, Json::error_handler_t::replace));
  return fmt::format("{}, {}", type, attribute["required"] == true ? "required" : "may be absent");
}

// Null: none is declared. For a gradient by a function: what it emits depends on the node.
Json gradient_json(const heddle_operator& op) {
  if (!op.gradient && op.gradient_node_count == 0) return nullptr;
  Json nodes = Json::array();
  for (uint32_t i = 0; !op.gradient && i < op.gradient_node_count; ++i) {
    const heddle_gradient_node& node = *op.gradient_nodes[i];
    const std::vector<std::string> inputs(node.inputs, node.inputs + node.input_count);
    const std::vector<std::string> outputs(node.outputs, node.outputs + node.output_count);
    nodes.push_back({{"operator", display_name(text_or(node.domain, text_or(op.domain, "")), node.operator_name)},
                     {"inputs", inputs},
                     {"outputs", outputs}});
  }
  return {{"by_function", op.gradient != nullptr}, {"operators", nodes}};
}

std::string gradient_text(const Json& gradient, const OperatorSchema& schema) {
  Node node;
  node.domain = schema.domain;
  node.type = schema.name;
  node.schema = &schema;
  constexpr heddle_dtype_set reals =
      HEDDLE_DTYPE_BIT(HEDDLE_F16) | HEDDLE_DTYPE_BIT(HEDDLE_BF16) | HEDDLE_DTYPE_BIT(HEDDLE_F32) | HEDDLE_DTYPE_BIT(HEDDLE_F64);
  switch (gradient_form(node)) {
    case GradientForm::callback:
      return "made by a function, from attributes and types";
    case GradientForm::subnets:
      return "the runtime differentiates the subnets";
    case GradientForm::pointwise:
      return (schema.op->outputs[0]->dtypes & reals) != 0 ? "the derivative of the expression" : "none";
    case GradientForm::nodes:
      break;
    case GradientForm::none:
      return "none";
  }
  std::vector<std::string> nodes;
  for (const Json& emitted : gradient["operators"])
    nodes.push_back(fmt::format("{} = {}({})", join(emitted["outputs"].get<std::vector<std::string>>(), ", "),
                                emitted["operator"].get<std::string>(), join(emitted["inputs"].get<std::vector<std::string>>(), ", ")));
  return join(nodes, "; ");
}

Json text_json(const char* text) {
  return text ? Json(text) : Json(nullptr);
}

}  // namespace

std::string dtypes_text(const Json& dtypes) {
  constexpr size_t all = HEDDLE_DTYPE_COUNT - 1;
  return dtypes.size() == all ? "any dtype" : join(dtypes.get<std::vector<std::string>>(), " ");
}

Json operator_json(const OperatorSchema& schema) {
  const heddle_operator& op = *schema.op;
  Json inputs = Json::array(), outputs = Json::array(), attributes = Json::array(), examples = Json::array();
  for (uint32_t i = 0; i < op.input_count; ++i) inputs.push_back(port_json(op, *op.inputs[i], false));
  for (uint32_t i = 0; i < op.output_count; ++i) outputs.push_back(port_json(op, *op.outputs[i], true));
  for (uint32_t i = 0; i < op.attribute_count; ++i) attributes.push_back(attribute_json(*op.attributes[i]));
  for (uint32_t i = 0; i < op.example_count; ++i)
    examples.push_back({{"text", op.examples[i]->text}, {"source", text_json(op.examples[i]->source)}});
  return {{"name", display_name(schema.domain, schema.name)},
          {"version", schema.version},
          {"doc", text_or(op.doc, "")},
          {"inputs", inputs},
          {"outputs", outputs},
          {"attributes", attributes},
          {"pointwise", text_json(op.pointwise)},
          {"formula", text_json(op.formula)},
          {"shapes", text_json(op.shapes)},
          {"traits", traits_of(op.traits)},
          {"gradient", gradient_json(op)},
          {"examples", examples},
          {"file", text_json(op.file)}};
}

std::vector<OperatorPart> operator_parts(const Json& json, const OperatorSchema& schema) {
  const heddle_operator& op = *schema.op;
  std::vector<OperatorPart> parts;
  if (op.formula) parts.push_back({"formula", "", op.formula});
  for (uint32_t i = 0; i < op.input_count; ++i) parts.push_back({"input", op.inputs[i]->name, port_text(json["inputs"][i], *op.inputs[i])});
  for (uint32_t i = 0; i < op.output_count; ++i)
    parts.push_back({"output", op.outputs[i]->name, port_text(json["outputs"][i], *op.outputs[i])});
  parts.push_back({"shapes", "", op.shapes ? op.shapes : "a function of the operator finds them"});
  for (const Json& attribute : json["attributes"]) parts.push_back({"attribute", attribute["name"], attribute_text(attribute)});
  if (op.pointwise) parts.push_back({"pointwise", "", on_one_line(op.pointwise)});
  if (!json["traits"].empty()) parts.push_back({"traits", "", join(json["traits"].get<std::vector<std::string>>(), ", ")});
  parts.push_back({"gradient", "", gradient_text(json["gradient"], schema)});
  for (const Json& example : json["examples"]) {
    const std::string text = on_one_line(example["text"].get<std::string>());
    parts.push_back(
        {"example", "", example["source"].is_null() ? text : fmt::format("{} ({})", text, example["source"].get<std::string>())});
  }
  parts.push_back({"since", "", fmt::format("{} {}", schema.domain.empty() ? "ONNX opset" : "version", schema.version)});
  if (op.file) parts.push_back({"file", "", op.file});
  return parts;
}

std::string first_sentence(const std::string& text) {
  for (size_t end = text.find(". "); end != std::string::npos; end = text.find(". ", end + 1))
    if (end + 2 < text.size() && std::isupper(static_cast<unsigned char>(text[end + 2]))) return text.substr(0, end + 1);
  return text;
}

void say_part(const Report& report, const char* what, const std::string& text) {
  report.say(fmt::format("    {:<9} {}", what, on_one_line(text)));
}

void say_operator(const Json& json, const OperatorSchema& schema, const Report& report) {
  const std::string doc = json["doc"];
  report.say(fmt::format("  {} {}{}{}", json["name"].get<std::string>(), json["version"].get<int>(), doc.empty() ? "" : "  ", doc));
  for (const OperatorPart& part : operator_parts(json, schema))
    say_part(report, part.kind, part.name.empty() ? part.text : fmt::format("{}: {}", part.name, part.text));
}

}  // namespace heddle::tool
