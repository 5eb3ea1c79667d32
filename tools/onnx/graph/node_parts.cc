// Names, inputs and attributes of NodeProtos as a scope sees them.
#include <fmt/format.h>

#include <string_view>
#include <unordered_set>

#include "base/text/text.h"
#include "onnx/graph/graph_importer.h"

namespace heddle::importer {

std::string domain_of(const std::string& domain) {
  return domain == "ai.onnx" ? std::string() : domain;
}

Status GraphImporter::check_name(const std::string& name) const {
  if (static_cast<int64_t>(name.size()) <= model_.options.limits.name_bytes) return {};
  return over_limit(model_.options.limits, &Limits::name_bytes, fmt::format("a name of {} bytes", name.size()));
}

Status GraphImporter::define(const std::string& name, ValueId value) {
  HEDDLE_CHECK(check_name(name));
  if (!values_.emplace(name, value).second)
    return {Code::duplicate_name, fmt::format("value {} is defined twice", quoted(name)), "export the model again"};
  const auto stated = stated_.find(name);
  if (!value.valid() || stated == stated_.end()) return {};
  Hint hint = writer_.hint(value);
  if (hint.dtype == DType::none) hint.dtype = stated->second.dtype;
  if (hint.rank < 0) hint.rank = stated->second.rank;
  writer_.set_hint(value, hint);
  return {};
}

std::optional<ValueId> GraphImporter::lookup(const std::string& name) {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  if (!outer_) return std::nullopt;
  const std::optional<ValueId> outside = outer_->lookup(name);
  if (!outside) return std::nullopt;
  const ValueId inside = outside->valid() ? capture(name, *outside) : ValueId();
  values_.emplace(name, inside);
  return inside;
}

ValueId GraphImporter::capture(const std::string& name, ValueId outside) {
  const std::string inner_name = writer_.value_names().unique(name);
  const Blob* content = outer_->writer_.content(outside);
  const bool integral = content && content->dtype >= DType::i8 && content->dtype <= DType::boolean;
  if (integral && content->shape.element_count() <= model_.options.limits.evaluated_elements)
    return writer_.constant(inner_name, outer_->writer_.net()[outside].content.blob);
  const Hint hint = outer_->writer_.hint(outside);
  DeclaredType type;
  type.dtype = hint.dtype;
  const ValueId inside = writer_.input(inner_name, std::move(type));
  writer_.set_hint(inside, hint);
  captured_.push_back(outside);
  return inside;
}

std::string GraphImporter::net_name(const std::string& name) {
  if (name.empty()) return {};
  const auto output = output_names_.find(name);
  if (output != output_names_.end()) return output->second;
  return function_ ? writer_.value_names().unique(prefix_ + name) : name;
}

std::string GraphImporter::name_of(const ::onnx::NodeProto& node, int index) {
  return writer_.node_names().unique(prefix_ + (node.name().empty() ? fmt::format("{}_{}", node.op_type(), index) : node.name()));
}

Result<std::vector<ValueId>> GraphImporter::inputs_of(const ::onnx::NodeProto& node) {
  std::vector<ValueId> inputs;
  for (const std::string& name : node.input()) {
    const std::optional<ValueId> value = name.empty() ? ValueId() : lookup(name);
    if (!value)
      return Status(Code::dangling_input, fmt::format("input {} is neither an input of the model nor anyone's output", quoted(name)),
                    "export the model again");
    inputs.push_back(*value);
  }
  return inputs;
}

Result<std::vector<NamedAttribute>> GraphImporter::attributes_of(const ::onnx::NodeProto& node) const {
  std::vector<NamedAttribute> attributes;
  std::unordered_set<std::string_view> seen;
  for (const auto& attribute : node.attribute()) {
    HEDDLE_CHECK(check_name(attribute.name()));
    if (!seen.insert(attribute.name()).second)
      return Status(Code::duplicate_name, fmt::format("attribute {} is given twice", quoted(attribute.name())), "export the model again");
    const auto argument = arguments_.find(attribute.ref_attr_name());
    if (attribute.ref_attr_name().empty())
      attributes.push_back({&attribute.name(), &attribute});
    else if (argument != arguments_.end())
      attributes.push_back({&attribute.name(), &argument->second});
  }
  return attributes;
}

}  // namespace heddle::importer
