#include "commands/plugin/example.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/checked.h"
#include "base/element.h"
#include "base/half.h"
#include "base/random.h"
#include "base/text/json_document.h"
#include "base/text/text.h"
#include "commands/plugin/example_scanner.h"
#include "common/command.h"
#include "load/json.h"
#include "net/literal.h"
#include "plugin/abi_attributes.h"
#include "tensors/compare.h"
#include "tensors/inputs.h"

namespace heddle::tool {
namespace {

constexpr int64_t max_elements = int64_t{1} << 24;

// ---------------------------------------------------------------- tensors

// Parses the list as JSON, whose reader knows how numbers of each dtype are written.
Result<std::shared_ptr<const Blob>> blob_of(const Scanner& scanner, DType dtype, const Shape& shape,
                                            const std::vector<std::string_view>& words) {
  const auto count = static_cast<size_t>(shape.element_count());
  if (words.size() != count && words.size() != 1)
    return scanner.wrong(fmt::format("{} elements are given, {} takes {}, or one for all", words.size(), shape.text(), count));
  std::string list = "[";
  for (size_t i = 0; i < count; ++i) {
    const std::string_view word = words[words.size() == 1 ? 0 : i];
    double number = 0;
    const bool plain = parse_float(word, &number) && word.find_first_not_of("+-.0123456789eE") == std::string_view::npos;
    const bool negative_zero = word == "-0" && is_float(dtype);  // JSON's integer 0 has no sign
    list += fmt::format(fmt::runtime(plain ? "{}{}" : "{}\"{}\""), i > 0 ? "," : "", negative_zero ? "-0.0" : word);
  }
  list += ']';
  const auto document = JsonDocument::parse(list, 2);
  if (!document.ok()) return scanner.wrong(fmt::format("the elements are no list of {}", to_string(dtype)));
  auto blob = parse_literal(document->root(), dtype, shape);
  return blob.ok() ? std::move(blob) : Result<std::shared_ptr<const Blob>>(scanner.wrong(blob.status().diagnostic().message));
}

// Reals in [low, high), integers likewise.
std::shared_ptr<const Blob> random_between(DType dtype, const Shape& shape, double low, double high, uint64_t seed) {
  const bool real = is_float(dtype);
  std::byte* data = nullptr;
  auto blob = Blob::allocate(dtype, shape, &data);
  const auto width = static_cast<size_t>(byte_width(dtype));
  uint64_t state = seed;
  for (int64_t i = 0; i < shape.element_count(); ++i) {
    const double share = static_cast<double>(next_random(state) >> 11) * 0x1p-53;
    const double value = low + share * (high - low);
    const auto rounded = static_cast<float>(value);
    const auto integer = static_cast<int64_t>(std::floor(value));
    const uint16_t half = dtype == DType::bf16 ? bf16_of_float(rounded) : f16_of_float(rounded);
    const void* from = !real        ? static_cast<const void*>(&integer)
                       : width == 8 ? static_cast<const void*>(&value)
                       : width == 4 ? &rounded
                                    : static_cast<const void*>(&half);
    std::memcpy(data + static_cast<size_t>(i) * width, from, width);  // the low bytes of an integer
  }
  return blob;
}

Result<std::shared_ptr<const Blob>> read_content(Scanner& s, DType dtype, const Shape& shape, uint64_t seed) {
  std::vector<std::string_view> words;
  while (!s.at_end() && !std::strchr(",;", s.next())) {
    const std::string_view word = s.word();
    if (word.empty()) break;
    words.push_back(word);
  }
  if (words.size() == 1)
    if (const size_t dots = words[0].find(".."); dots != std::string_view::npos) {
      double low = 0, high = 0;
      if (!parse_float(words[0].substr(0, dots), &low) || !parse_float(words[0].substr(dots + 2), &high) || !(low < high))
        return s.wrong(fmt::format("{} is no range LOW..HIGH", quoted(words[0])));
      return random_between(dtype, shape, low, high, seed);
    }
  return blob_of(s, dtype, shape, words);
}

Result<ExampleTensor> read_tensor(Scanner& s, uint64_t seed) {
  ExampleTensor tensor;
  if (s.next() == '-' && s.take("-")) {
    tensor.absent = true;
    return tensor;
  }
  const std::string_view name = s.word();
  tensor.dtype = dtype_from_string(std::string(name));
  if (tensor.dtype == DType::none) return s.wrong(fmt::format("{} is no dtype", quoted(name)));
  if (!s.take("[")) return s.wrong("dims in brackets follow a dtype");
  while (!s.take("]")) {
    int64_t dim = 0;
    if (tensor.shape.rank() == max_rank || !parse_int(s.word(), &dim) || dim < 0) return s.wrong("dims are up to 8 numbers, as in [2,3]");
    tensor.shape.push_back(dim);
    s.take(",");
  }
  int64_t bytes = 0;
  if (!checked_byte_size(tensor.dtype, tensor.shape, &bytes) || tensor.shape.element_count() > max_elements)
    return s.wrong(fmt::format("an example has at most {} elements", max_elements));
  if (s.take("=")) {
    HEDDLE_TRY(tensor.content, read_content(s, tensor.dtype, tensor.shape, seed));
  }
  return tensor;
}

// ---------------------------------------------------------------- attributes

// Adds the members that the text form of nets requires and an example may leave out: the version, names, and which values are inputs.
void spell_out(Json& net, const std::string& name) {
  net.emplace("heddle", 1);
  net.emplace("name", name);
  Json& values = net.emplace("values", Json::array()).first.value();
  Json inputs = Json::array();
  for (const Json& input : net.value("inputs", Json::array()))
    if (std::none_of(values.begin(), values.end(), [&](const Json& v) { return v.is_object() && v.value("name", Json()) == input; }))
      inputs.push_back({{"name", input}, {"kind", "input"}});
  values.insert(values.begin(), inputs.begin(), inputs.end());
  int count = 0;
  for (Json& node : net.emplace("nodes", Json::array()).first.value()) {
    if (!node.is_object()) return;  // the reader reports it
    node.emplace("name", fmt::format("{}", ++count));
    if (!node.contains("attributes")) continue;
    for (auto& [key, value] : node["attributes"].items())
      if (value.is_object() && value.contains("net") && value["net"].is_object()) spell_out(value["net"], key);
  }
}

bool is_integer(std::string_view word) {
  int64_t ignored = 0;
  return parse_int(word, &ignored);
}

Result<AttributeValue> read_list(Scanner& s, heddle_attribute_type wanted) {
  std::vector<int64_t> integers;
  std::vector<double> numbers;
  std::vector<std::string> texts;
  while (!s.take("]")) {
    if (s.next() == '"') {
      const auto text = s.string();
      if (!text) return s.wrong("a text has no end");
      texts.push_back(*text);
    } else {
      const std::string_view word = s.word();
      double number = 0;
      if (!parse_float(word, &number)) return s.wrong(fmt::format("{} is no element of a list", quoted(word)));
      int64_t integer = 0;
      if (parse_int(word, &integer)) integers.push_back(integer);
      numbers.push_back(number);
    }
    s.take(",");
  }
  if (wanted == HEDDLE_ATTRIBUTE_STRINGS) return AttributeValue(std::move(texts));
  if (wanted == HEDDLE_ATTRIBUTE_FLOATS) return AttributeValue(std::move(numbers));
  if (integers.size() != numbers.size()) return s.wrong("a list of integers has other numbers");
  return AttributeValue(std::move(integers));
}

Result<AttributeValue> read_value(Scanner& s, heddle_attribute_type wanted, uint64_t seed) {
  if (s.next() == '{') {
    const std::string_view json = s.braces();
    if (json.empty()) return s.wrong("a brace has no end");
    Json spelled = Json::parse(json, nullptr, false);
    if (!spelled.is_object()) return s.wrong("the braces hold no JSON");
    spell_out(spelled, "net");
    HEDDLE_TRY(Net net, net_from_json(spelled.dump(), {}), "in a net of an example");
    return AttributeValue(std::make_shared<const Net>(std::move(net)));
  }
  if (s.next() == '"') {
    auto text = s.string();
    if (!text) return s.wrong("a text has no end");
    return AttributeValue(std::move(*text));
  }
  if (s.take("[")) return read_list(s, wanted);
  if (wanted == HEDDLE_ATTRIBUTE_TENSOR) {
    HEDDLE_TRY(ExampleTensor tensor, read_tensor(s, seed));
    if (!tensor.content) return s.wrong("a tensor as attribute needs its elements");
    return AttributeValue(tensor.content);
  }
  const std::string_view word = s.word();
  int64_t integer = 0;
  double number = 0;
  if (wanted != HEDDLE_ATTRIBUTE_FLOAT && is_integer(word) && parse_int(word, &integer)) return AttributeValue(integer);
  if (parse_float(word, &number)) return AttributeValue(number);
  return s.wrong(fmt::format("{} is no value of an attribute", quoted(word)));
}

Status read_attributes(Scanner& s, const OperatorSchema& schema, uint64_t seed, std::vector<Attribute>& attributes) {
  while (!s.at_end() && s.next() != '-') {
    const std::string name(s.word());
    const int index = schema.attribute_index(name);
    if (index < 0) {
      std::vector<std::string> known;
      for (uint32_t i = 0; i < schema.op->attribute_count; ++i) known.emplace_back(schema.op->attributes[i]->name);
      return {Code::unknown_attribute, fmt::format("the operator has no attribute {}", quoted(name)),
              known.empty() ? "it has none" : fmt::format("it has: {}", words(known, ", "))};
    }
    if (!s.take("=")) return s.wrong("an attribute is written NAME=VALUE");
    const heddle_attribute_type wanted = schema.op->attributes[index]->type;
    HEDDLE_TRY(AttributeValue value, read_value(s, wanted, seed));
    if (attribute_type(value) != wanted)
      return {Code::attribute_mismatch, fmt::format("attribute {} is {}, must be {}", quoted(name),
                                                    attribute_type_name(attribute_type(value)), attribute_type_name(wanted))};
    attributes.push_back({name, std::move(value)});
    if (!s.take(",")) break;
  }
  return {};
}

Status check_required(const OperatorSchema& schema, const std::vector<Attribute>& given) {
  for (uint32_t i = 0; i < schema.op->attribute_count; ++i) {
    const heddle_attribute_schema& declared = *schema.op->attributes[i];
    if (declared.required && std::none_of(given.begin(), given.end(), [&](const Attribute& a) { return a.name == declared.name; }))
      return {Code::attribute_mismatch, fmt::format("attribute {} is missing and has no default", quoted(declared.name))};
  }
  return {};
}

Result<std::vector<ExampleTensor>> read_tensors(Scanner& s, uint64_t seed) {
  std::vector<ExampleTensor> tensors;
  if (s.at_end() || s.next() == ';') return tensors;
  do {
    HEDDLE_TRY(ExampleTensor tensor, read_tensor(s, seed + tensors.size()));
    tensors.push_back(std::move(tensor));
  } while (s.take(","));
  return tensors;
}

std::string list_text(const auto& list, const auto& text) {
  std::vector<std::string> texts;
  for (const auto& element : list) texts.push_back(text(element));
  return fmt::format("[{}]", join(texts, ","));
}

std::string attribute_text(const AttributeValue& value) {
  const auto of_text = [](const std::string& text) { return fmt::format("\"{}\"", text); };
  const auto of_number = [](double number) { return shortest(number); };
  if (const auto* integer = std::get_if<int64_t>(&value)) return fmt::to_string(*integer);
  if (const auto* number = std::get_if<double>(&value)) return shortest(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return of_text(*text);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) return list_text(*list, [](int64_t i) { return fmt::to_string(i); });
  if (const auto* list = std::get_if<std::vector<double>>(&value)) return list_text(*list, of_number);
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) return list_text(*list, of_text);
  if (const auto* blob = std::get_if<std::shared_ptr<const Blob>>(&value); blob && *blob) return example_text(**blob);
  return "{...}";  // a net
}

}  // namespace

std::optional<int64_t> index_bound(const OperatorSchema& schema, const OperatorCall& call, size_t input) {
  const heddle_port* const port = schema.input_port(input);
  if (!port || port->index_bound_port < 0 || static_cast<size_t>(port->index_bound_port) >= call.inputs.size()) return {};
  const auto& of = call.inputs[static_cast<size_t>(port->index_bound_port)];
  if (!call.inputs[input] || !of) return {};
  int64_t axis = std::max(port->index_bound_axis, 0);
  if (port->index_bound_axis < 0) {
    const int declared = schema.attribute_index("axis");
    if (declared >= 0 && schema.op->attributes[declared]->default_value) axis = schema.op->attributes[declared]->default_value->i;
    for (const Attribute& a : call.attributes)
      if (const auto* given = std::get_if<int64_t>(&a.value); given && a.name == "axis") axis = *given;
  }
  if (axis < 0) axis += of->shape.rank();
  return axis >= 0 && axis < of->shape.rank() ? of->shape[static_cast<int>(axis)] : 1;
}

void draw_indices(const OperatorSchema& schema, OperatorCall& call, size_t input, uint64_t seed) {
  auto& indices = call.inputs[input];
  if (const auto bound = index_bound(schema, call, input))
    indices = random_blob(indices->dtype, indices->shape, seed, std::max<int64_t>(*bound, 1));
}

Result<std::vector<ExampleTensor>> parse_example_tensors(std::string_view text, uint64_t seed) {
  Scanner s(text);
  HEDDLE_TRY(auto tensors, read_tensors(s, seed));
  if (!s.at_end()) return s.wrong("this follows the last tensor");
  return tensors;
}

Result<Attribute> parse_example_attribute(const OperatorSchema& schema, std::string_view text, uint64_t seed) {
  Scanner s(text);
  std::vector<Attribute> attributes;
  HEDDLE_CHECK(read_attributes(s, schema, seed, attributes));
  if (attributes.size() != 1 || !s.at_end()) return s.wrong("this is not one attribute NAME=VALUE");
  return std::move(attributes[0]);
}

Result<Example> parse_example(const OperatorSchema& schema, std::string_view text, uint64_t seed) {
  Scanner s(text);
  Example example;
  OperatorCall& call = example.call;
  call.domain = schema.domain;
  call.type = schema.name;
  call.version = schema.version;
  call.random_seed = seed;
  std::vector<ExampleTensor> inputs;
  if (!s.take("->")) {
    HEDDLE_TRY(inputs, read_tensors(s, seed));
    if (s.take(";")) HEDDLE_CHECK(read_attributes(s, schema, seed, call.attributes));
    example.says_outputs = s.take("->");
  } else {
    example.says_outputs = true;
  }
  if (example.says_outputs) {
    HEDDLE_TRY(example.outputs, read_tensors(s, seed));
  }
  if (!s.at_end()) return s.wrong("this is neither an input, nor an attribute after \";\", nor an output after \"->\"");
  HEDDLE_CHECK(check_required(schema, call.attributes));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!schema.input_port(i))
      return Status(Code::arity_mismatch,
                    fmt::format("example {} has {} inputs, the operator takes {}", quoted(text), inputs.size(), schema.op->input_count));
    const ExampleTensor& t = inputs[i];
    call.inputs.push_back(t.absent ? nullptr : t.content ? t.content : random_blob(t.dtype, t.shape, seed + i));
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].absent && !inputs[i].content) draw_indices(schema, call, i, seed + i);
  call.output_count = example.outputs.size();
  if (!example.says_outputs) {
    call.output_count = 0;
    while (call.output_count < schema.op->output_count && !(schema.op->outputs[call.output_count]->flags & HEDDLE_PORT_OPTIONAL))
      ++call.output_count;
  }
  return example;
}

std::string example_text(const Blob& blob) {
  std::string text = fmt::format("{}{} = ", to_string(blob.dtype), blob.shape.text());
  std::string list;
  append_literal(list, blob);
  for (const char c : list)
    if (!std::strchr("[],\"", c)) text += c;
  return text;
}

std::string example_text(const OperatorCall& call, const std::vector<std::shared_ptr<const Blob>>& outputs, int64_t most) {
  const auto texts = [&](const std::vector<std::shared_ptr<const Blob>>& blobs) {
    std::vector<std::string> list;
    for (const auto& blob : blobs)
      list.push_back(!blob                                ? "-"
                     : blob->shape.element_count() > most ? fmt::format("{}{}", to_string(blob->dtype), blob->shape.text())
                                                          : example_text(*blob));
    return join(list, ", ");
  };
  std::vector<std::string> attributes;
  for (const Attribute& a : call.attributes) attributes.push_back(fmt::format("{}={}", a.name, attribute_text(a.value)));
  const std::string inputs = texts(call.inputs);
  const std::string given = attributes.empty() ? inputs : fmt::format("{}; {}", inputs, join(attributes, ", "));
  return outputs.empty() ? given : fmt::format("{} -> {}", given, texts(outputs));
}

}  // namespace heddle::tool
