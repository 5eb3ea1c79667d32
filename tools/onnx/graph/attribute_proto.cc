#include "onnx/graph/attribute_proto.h"

#include <fmt/format.h>

#include "base/text/text.h"
#include "onnx/tensors/tensor_content.h"

namespace heddle::importer {
namespace {

using ::onnx::AttributeProto;

template <class To, class Field>
Result<AttributeValue> list_of(const AttributeProto& attribute, const Field& field, const Limits& limits) {
  if (field.size() > limits.attribute_elements)
    return over_limit(limits, &Limits::attribute_elements,
                      fmt::format("attribute {} has {} elements", quoted(attribute.name()), field.size()));
  return AttributeValue(std::vector<To>(field.begin(), field.end()));
}

}  // namespace

AttributeProto::AttributeType type_of(const AttributeProto& attribute) {
  if (attribute.type() != AttributeProto::UNDEFINED) return attribute.type();
  if (attribute.has_f()) return AttributeProto::FLOAT;
  if (attribute.has_i()) return AttributeProto::INT;
  if (attribute.has_s()) return AttributeProto::STRING;
  if (attribute.has_t()) return AttributeProto::TENSOR;
  if (attribute.has_g()) return AttributeProto::GRAPH;
  if (attribute.floats_size() > 0) return AttributeProto::FLOATS;
  if (attribute.ints_size() > 0) return AttributeProto::INTS;
  if (attribute.strings_size() > 0) return AttributeProto::STRINGS;
  return AttributeProto::UNDEFINED;
}

Result<AttributeValue> value_of(const AttributeProto& attribute, ExternalData& external, const Limits& limits) {
  switch (type_of(attribute)) {
    case AttributeProto::FLOAT:
      return AttributeValue(static_cast<double>(attribute.f()));
    case AttributeProto::INT:
      return AttributeValue(static_cast<int64_t>(attribute.i()));
    case AttributeProto::STRING:
      return AttributeValue(attribute.s());
    case AttributeProto::FLOATS:
      return list_of<double>(attribute, attribute.floats(), limits);
    case AttributeProto::INTS:
      return list_of<int64_t>(attribute, attribute.ints(), limits);
    case AttributeProto::STRINGS:
      return list_of<std::string>(attribute, attribute.strings(), limits);
    case AttributeProto::TENSOR: {
      HEDDLE_TRY(auto blob, content_of(attribute.t(), external, limits), fmt::format("in attribute {}", quoted(attribute.name())));
      return AttributeValue(std::move(blob));
    }
    case AttributeProto::UNDEFINED:
      return Status(Code::attribute_mismatch, fmt::format("attribute {} has no value", quoted(attribute.name())));
    default:
      return Status(
          Code::unsupported,
          fmt::format("attribute {} is of kind {}", quoted(attribute.name()), AttributeProto::AttributeType_Name(type_of(attribute))),
          "Heddle's attributes are numbers, texts, their lists, dense tensors and subnets");
  }
}

}  // namespace heddle::importer
