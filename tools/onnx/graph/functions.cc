// Functions that a model defines, written into the caller's net.
#include <fmt/format.h>

#include <algorithm>

#include "base/text/text.h"
#include "onnx/graph/graph_importer.h"
#include "onnx/operators/operators.h"

namespace heddle::importer {
namespace {

constexpr int function_depth = 64;            // calls within calls
constexpr int default_attributes_field = 11;  // FunctionProto.attribute_proto, which libonnx 1.12 does not know yet

// Attribute parameters with defaults, from the fields that the message class kept unread.
std::vector<::onnx::AttributeProto> default_attributes(const ::onnx::FunctionProto& function) {
  std::vector<::onnx::AttributeProto> defaults;
  const auto& unread = function.GetReflection()->GetUnknownFields(function);
  for (int i = 0; i < unread.field_count(); ++i) {
    const auto& field = unread.field(i);
    if (field.number() != default_attributes_field || field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) continue;
    ::onnx::AttributeProto attribute;
    if (attribute.ParsePartialFromString(field.length_delimited())) defaults.push_back(std::move(attribute));
  }
  return defaults;
}

}  // namespace

bool GraphImporter::is_active(const ::onnx::FunctionProto* function) const {
  for (const GraphImporter* scope = this; scope; scope = scope->caller_ ? scope->caller_ : scope->outer_)
    if (scope->function_ == function) return true;
  return false;
}

Status GraphImporter::inline_function(const ::onnx::NodeProto& call, const ::onnx::FunctionProto& function, const std::string& name) {
  if (is_active(&function))
    return {Code::cycle, fmt::format("function {} calls itself", quoted(function.name())), "export the model again"};
  if (depth_ >= function_depth)
    return {Code::limit_exceeded, fmt::format("functions call each other deeper than {}", function_depth), "inline them before importing"};
  Opsets opsets = opsets_;
  for (const auto& import : function.opset_import())
    opsets[domain_of(import.domain())] = static_cast<int32_t>(std::clamp<int64_t>(import.version(), 0, INT32_MAX));
  if (opsets[""] > newest_opset)
    return {Code::file_version, fmt::format("function {} is written for opset {}", quoted(function.name()), opsets[""]),
            fmt::format("this importer reads opsets up to {}", newest_opset)};
  GraphImporter body(model_, writer_, opsets, nullptr);
  body.prefix_ = name + "/";
  HEDDLE_CHECK(body.enter_function(call, function, *this));
  HEDDLE_CHECK(body.import_nodes(function.node()), fmt::format("in function {}", quoted(function.name())));
  return bind_outputs(call, function, body);
}

// Binds formal inputs, attribute parameters and the names of outputs. `this` is the scope of the body.
Status GraphImporter::enter_function(const ::onnx::NodeProto& call, const ::onnx::FunctionProto& function, GraphImporter& caller) {
  function_ = &function;
  caller_ = &caller;
  depth_ = caller.depth_ + 1;
  if (call.input_size() > function.input_size() || call.output_size() > function.output_size())
    return {Code::arity_mismatch, fmt::format("function {} takes {} inputs and gives {} outputs, not {} and {}", quoted(function.name()),
                                              function.input_size(), function.output_size(), call.input_size(), call.output_size())};
  HEDDLE_TRY(const std::vector<ValueId> inputs, caller.inputs_of(call));
  for (int i = 0; i < function.input_size(); ++i)
    HEDDLE_CHECK(define(function.input(i), static_cast<size_t>(i) < inputs.size() ? inputs[static_cast<size_t>(i)] : ValueId()));
  for (int i = 0; i < call.output_size(); ++i)
    if (!call.output(i).empty()) output_names_.emplace(function.output(i), caller.net_name(call.output(i)));
  for (auto& attribute : default_attributes(function)) arguments_.insert_or_assign(attribute.name(), attribute);
  HEDDLE_TRY(const auto attributes, caller.attributes_of(call));
  for (const auto& [label, attribute] : attributes) {
    if (attribute->has_g()) return {Code::unsupported, fmt::format("function {} takes a subgraph", quoted(function.name())), {}};
    arguments_.insert_or_assign(*label, *attribute);
  }
  return {};
}

// `this` is the caller's scope. An output that is an input of the function, or twice an output, gets an Identity to carry its name.
Status GraphImporter::bind_outputs(const ::onnx::NodeProto& call, const ::onnx::FunctionProto& function, GraphImporter& body) {
  for (int i = 0; i < call.output_size(); ++i) {
    if (call.output(i).empty()) continue;
    const std::optional<ValueId> value = body.lookup(function.output(i));
    if (!value || !value->valid())
      return {Code::dangling_input,
              fmt::format("output {} of function {} is nobody's output", quoted(function.output(i)), quoted(function.name()))};
    ValueId bound = *value;
    const std::string name = body.output_names_.at(function.output(i));
    if (writer_.net()[bound].name != name) {
      NodeSpec copy;
      copy.name = writer_.node_names().unique(body.prefix_ + "output");
      copy.type = "Identity";
      copy.version = implemented_version("Identity");
      copy.inputs = {bound};
      copy.outputs = {name};
      bound = writer_.node(std::move(copy))[0];
    }
    HEDDLE_CHECK(define(call.output(i), bound));
  }
  return {};
}

}  // namespace heddle::importer
