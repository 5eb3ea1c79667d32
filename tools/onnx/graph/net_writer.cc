#include "onnx/graph/net_writer.h"

#include <fmt/format.h>

namespace heddle::importer {

std::string NameTable::unique(const std::string& wanted) {
  if (take(wanted)) return wanted;
  int64_t& next = next_.try_emplace(wanted, 2).first->second;
  for (;; ++next) {
    std::string name = fmt::format("{}_{}", wanted, next);
    if (take(name)) return name;
  }
}

ValueId NetWriter::add_value(Value value, Hint hint) {
  net_.values.push_back(std::move(value));
  hints_.push_back(hint);
  return ValueId(net_.values.size() - 1);
}

ValueId NetWriter::input(std::string name, DeclaredType type) {
  const Hint hint{type.dtype, type.ranked ? static_cast<int>(type.dims.size()) : -1};
  Value value;
  value.name = std::move(name);
  value.kind = Value::Kind::input;
  value.type = std::move(type);
  const ValueId id = add_value(std::move(value), hint);
  net_.inputs.push_back(id);
  return id;
}

ValueId NetWriter::constant(std::string name, std::shared_ptr<const Blob> blob) {
  const Hint hint{blob->dtype, blob->shape.rank()};
  Value value;
  value.name = std::move(name);
  value.kind = Value::Kind::constant;
  value.type = DeclaredType::of(blob->dtype, blob->shape);
  value.content.blob = std::move(blob);
  return add_value(std::move(value), hint);
}

std::vector<ValueId> NetWriter::node(NodeSpec spec) {
  while (!spec.inputs.empty() && !spec.inputs.back().valid()) spec.inputs.pop_back();
  while (spec.outputs.size() > 1 && spec.outputs.back().empty()) spec.outputs.pop_back();
  std::vector<Hint> input_hints;
  std::vector<const Blob*> contents;
  for (ValueId id : spec.inputs) {
    input_hints.push_back(hint(id));
    contents.push_back(content(id));
  }
  const Hint first = spec.domain.empty() ? hint_of(spec.type, input_hints, contents, spec.attributes) : Hint{};
  const bool all_alike = spec.type == "Split";
  Node node;
  node.name = std::move(spec.name);
  node.domain = std::move(spec.domain);
  node.type = std::move(spec.type);
  node.version = spec.version;
  node.inputs = std::move(spec.inputs);
  node.attributes = std::move(spec.attributes);
  node.random_stream = static_cast<uint32_t>(net_.nodes.size());
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    if (spec.outputs[i].empty()) {
      node.outputs.emplace_back();
      continue;
    }
    Value value;
    value.name = std::move(spec.outputs[i]);
    value.producer = NodeId(net_.nodes.size());
    value.output = static_cast<uint32_t>(i);
    node.outputs.push_back(add_value(std::move(value), i == 0 || all_alike ? first : Hint{}));
  }
  net_.nodes.push_back(std::move(node));
  return net_.nodes.back().outputs;
}

const Blob* NetWriter::content(ValueId id) const {
  return id.valid() && net_[id].kind == Value::Kind::constant ? net_[id].content.blob.get() : nullptr;
}

}  // namespace heddle::importer
