#include "onnx/model_builder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace heddle::testing {
namespace {

template <class T>
std::string list_text(const std::vector<T>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

std::string blob_text(const Blob& blob) {
  std::vector<std::string> parts;
  for (int64_t i = 0; i < blob.shape.element_count() && i < 16; ++i) {
    if (blob.dtype == DType::i64) parts.push_back(std::to_string(reinterpret_cast<const int64_t*>(blob.data)[i]));
    if (blob.dtype == DType::f32) parts.push_back(shortest(reinterpret_cast<const float*>(blob.data)[i]));
    if (blob.dtype == DType::boolean) parts.emplace_back(blob.data[i] == std::byte{1} ? "true" : "false");
  }
  return fmt::format("{}{}{}", to_string(blob.dtype), blob.shape.text(), list_text(parts));
}

std::string attribute_text(const AttributeValue& value, const std::string& indent) {
  struct Printer {
    const std::string& indent;
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return shortest(static_cast<float>(v)); }
    std::string operator()(const std::string& v) const { return v; }
    std::string operator()(const std::vector<int64_t>& v) const { return list_text(v); }
    std::string operator()(const std::vector<double>& v) const { return list_text(v); }
    std::string operator()(const std::vector<std::string>& v) const { return list_text(v); }
    std::string operator()(const std::shared_ptr<const Blob>& v) const { return blob_text(*v); }
    std::string operator()(const std::shared_ptr<const Net>& v) const { return "{\n" + text_of(*v, indent + "  ") + indent + "}"; }
  };
  return std::visit(Printer{indent}, value);
}

std::string value_list(const Net& net, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  for (ValueId id : ids) names.push_back(id.valid() ? net[id].name : "-");
  return join(names, ", ");
}

}  // namespace

std::string text_of(const Net& net, const std::string& indent) {
  std::string out;
  if (!indent.empty()) out += fmt::format("{}({}) -> ({})\n", indent, value_list(net, net.inputs), value_list(net, net.outputs));
  for (const Value& value : net.values)
    if (value.kind == Value::Kind::constant) out += fmt::format("{}{} = {}\n", indent, value.name, blob_text(*value.content.blob));
  for (const Node& node : net.nodes) {
    out += fmt::format("{}{} = {}/{}({})", indent, value_list(net, node.outputs), node.type, node.version, value_list(net, node.inputs));
    for (const Attribute& a : node.attributes) out += fmt::format(" {}={}", a.name, attribute_text(a.value, indent));
    out += "\n";
  }
  return out;
}

}  // namespace heddle::testing
