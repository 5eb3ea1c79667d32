#include "onnx/operators/legalise.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text.h"
#include "onnx/operators/operators.h"
#include "onnx/tensors/types.h"

namespace heddle::importer {

void Rewrite::set_input(size_t i, ValueId value) {
  if (node_.inputs.size() <= i) node_.inputs.resize(i + 1);
  node_.inputs[i] = value;
}

const AttributeValue* Rewrite::find(std::string_view name) const {
  for (const Attribute& a : node_.attributes)
    if (a.name == name) return &a.value;
  return nullptr;
}

std::optional<AttributeValue> Rewrite::take(std::string_view name) {
  for (size_t i = 0; i < node_.attributes.size(); ++i) {
    if (node_.attributes[i].name != name) continue;
    AttributeValue value = std::move(node_.attributes[i].value);
    node_.attributes.erase(node_.attributes.begin() + static_cast<std::ptrdiff_t>(i));
    return value;
  }
  return std::nullopt;
}

template <class T>
Result<std::optional<T>> Rewrite::take_as(std::string_view name, const char* kind) {
  std::optional<AttributeValue> value = take(name);
  if (!value) return std::optional<T>();
  if (T* typed = std::get_if<T>(&*value)) return std::optional<T>(std::move(*typed));
  return Status(Code::attribute_mismatch, fmt::format("attribute {} is not {}", quoted(name), kind));
}

Result<std::optional<int64_t>> Rewrite::take_int(std::string_view name) {
  return take_as<int64_t>(name, "an integer");
}
Result<std::optional<double>> Rewrite::take_float(std::string_view name) {
  return take_as<double>(name, "a float");
}
Result<std::optional<std::string>> Rewrite::take_string(std::string_view name) {
  return take_as<std::string>(name, "a text");
}
Result<std::optional<std::vector<int64_t>>> Rewrite::take_ints(std::string_view name) {
  return take_as<std::vector<int64_t>>(name, "a list of integers");
}
Result<std::optional<std::vector<double>>> Rewrite::take_floats(std::string_view name) {
  return take_as<std::vector<double>>(name, "a list of floats");
}

void Rewrite::drop(std::string_view name) {
  take(name);
}

void Rewrite::set(std::string name, AttributeValue value) {
  take(name);
  node_.attributes.push_back({std::move(name), std::move(value)});
}

int64_t Rewrite::int_or(std::string_view name, int64_t otherwise) const {
  const AttributeValue* value = find(name);
  const int64_t* i = value ? std::get_if<int64_t>(value) : nullptr;
  return i ? *i : otherwise;
}

ValueId Rewrite::constant(const std::string& label, std::shared_ptr<const Blob> blob) {
  return writer_.constant(writer_.value_names().unique(node_.name + "/" + label), std::move(blob));
}

ValueId Rewrite::ints(const std::string& label, const std::vector<int64_t>& values) {
  return constant(label, Blob::copy_of(DType::i64, Shape{static_cast<int64_t>(values.size())}, values.data()));
}

ValueId Rewrite::int_scalar(const std::string& label, int64_t value) {
  return constant(label, Blob::copy_of(DType::i64, Shape{}, &value));
}

ValueId Rewrite::scalar_like(const std::string& label, double value, ValueId like) {
  const DType dtype = hint(like).dtype;
  if (dtype == DType::f64) return constant(label, Blob::copy_of(DType::f64, Shape{}, &value));
  const auto single = static_cast<float>(value);
  const ValueId scalar = constant(label, Blob::copy_of(DType::f32, Shape{}, &single));
  if (dtype == DType::f32) return scalar;
  if (dtype == DType::none) return emit(label + "/cast", "CastLike", {scalar, like});
  return emit(label + "/cast", "Cast", {scalar}, {{"to", static_cast<int64_t>(dtype_to_onnx(dtype))}});
}

ValueId Rewrite::emit(const std::string& label, const std::string& type, std::vector<ValueId> inputs, std::vector<Attribute> attributes) {
  NodeSpec spec;
  spec.name = writer_.node_names().unique(node_.name + "/" + label);
  spec.type = type;
  spec.version = implemented_version(type);
  spec.inputs = std::move(inputs);
  spec.outputs = {writer_.value_names().unique(node_.name + "/" + label)};
  spec.attributes = std::move(attributes);
  return writer_.node(std::move(spec))[0];
}

void Rewrite::emit_output(size_t i, const std::string& type, std::vector<ValueId> inputs, std::vector<Attribute> attributes) {
  NodeSpec spec;
  spec.name = writer_.node_names().unique(fmt::format("{}/output{}", node_.name, i));
  spec.type = type;
  spec.version = implemented_version(type);
  spec.inputs = std::move(inputs);
  spec.outputs = {std::move(node_.outputs[i])};
  spec.attributes = std::move(attributes);
  node_.outputs[i].clear();
  bound_.emplace_back(i, writer_.node(std::move(spec))[0]);
}

}  // namespace heddle::importer
