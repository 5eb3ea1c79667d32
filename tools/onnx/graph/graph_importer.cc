#include "onnx/graph/graph_importer.h"

#include <fmt/format.h>

#include <unordered_set>

#include "base/text/text.h"
#include "onnx/graph/attribute_proto.h"
#include "onnx/graph/declared_types.h"
#include "onnx/graph/node_order.h"
#include "onnx/operators/operators.h"
#include "onnx/tensors/tensor_content.h"

namespace heddle::importer {

GraphImporter::GraphImporter(ModelContext& model, NetWriter& writer, const Opsets& opsets, GraphImporter* outer)
    : model_(model), writer_(writer), opsets_(opsets), outer_(outer), depth_(outer ? outer->depth_ + 1 : 0) {}

Status GraphImporter::import_graph(const ::onnx::GraphProto& graph) {
  for (const auto& input : graph.input()) writer_.value_names().take(input.name());
  for (const auto& initializer : graph.initializer()) writer_.value_names().take(initializer.name());
  for (const auto& node : graph.node())
    for (const std::string& output : node.output()) writer_.value_names().take(output);
  for (const auto& info : graph.value_info()) stated_.emplace(info.name(), stated_hint(info));
  for (const auto& info : graph.output()) stated_.emplace(info.name(), stated_hint(info));
  HEDDLE_CHECK(import_inputs(graph));
  HEDDLE_CHECK(import_initializers(graph));
  HEDDLE_CHECK(import_nodes(graph.node()));
  return import_outputs(graph);
}

Status GraphImporter::import_inputs(const ::onnx::GraphProto& graph) {
  std::unordered_set<std::string_view> initialized;
  for (const auto& initializer : graph.initializer()) initialized.insert(initializer.name());
  for (const auto& input : graph.input()) {
    if (input.name().empty()) return {Code::syntax, "an input of the graph has no name", "export the model again"};
    if (!outer_ && initialized.contains(input.name())) continue;  // IR < 4 lists initializers as inputs
    DeclaredType type;
    if (outer_) {
      type.dtype = stated_type(input).dtype;  // shapes of subgraphs follow from what they are called with
    } else {
      HEDDLE_TRY(type, input_type(input));
    }
    const ValueId value = writer_.input(input.name(), std::move(type));
    stated_.emplace(input.name(), stated_hint(input));
    HEDDLE_CHECK(define(input.name(), value));
  }
  return {};
}

Status GraphImporter::import_initializers(const ::onnx::GraphProto& graph) {
  if (graph.sparse_initializer_size() > 0)
    return {Code::unsupported, fmt::format("constant {} is a sparse tensor", quoted(graph.sparse_initializer(0).values().name())),
            "export it as a dense tensor"};
  for (int i = 0; i < graph.initializer_size(); ++i) {
    const auto& initializer = graph.initializer(i);
    if (initializer.name().empty()) return {Code::syntax, "an initializer of the graph has no name", "export the model again"};
    HEDDLE_TRY(auto blob, content_of(initializer, model_.external, model_.options.limits));
    HEDDLE_CHECK(define(initializer.name(), writer_.constant(initializer.name(), std::move(blob))));
    if (&graph != model_.main_graph) continue;
    if (model_.options.initializers) model_.options.initializers->push_back(initializer.name());
    model_.main_graph->mutable_initializer(i)->clear_raw_data();  // avoids a second copy in memory
  }
  return {};
}

Status GraphImporter::import_outputs(const ::onnx::GraphProto& graph) {
  std::unordered_set<std::string_view> seen;
  for (const auto& output : graph.output()) {
    const std::optional<ValueId> value = lookup(output.name());
    if (!value || !value->valid())
      return {Code::dangling_input, fmt::format("output {} of the graph is nobody's output", quoted(output.name())),
              "export the model again"};
    if (!outer_ && !seen.insert(output.name()).second)
      return {Code::duplicate_name, fmt::format("output {} of the graph is listed twice", quoted(output.name())), "export the model again"};
    if (output.type().has_sequence_type() || output.type().has_optional_type() || output.type().has_sparse_tensor_type())
      return {Code::unsupported, fmt::format("output {} is not a dense tensor", quoted(output.name())),
              "Heddle's values are dense tensors"};
    Value& out = writer_.net()[*value];
    if (!outer_ && out.kind == Value::Kind::node_output) out.type = stated_type(output);
    writer_.net().outputs.push_back(*value);
  }
  return {};
}

Status GraphImporter::import_nodes(const google::protobuf::RepeatedPtrField<::onnx::NodeProto>& nodes) {
  for (const auto& node : nodes)
    for (const std::string& output : node.output())
      if (!output.empty() && values_.contains(output))
        return Status(Code::duplicate_name, fmt::format("value {} is an input or constant and an output of an operator", quoted(output)),
                      "export the model again")
            .at(node.name(), node.op_type());
  HEDDLE_TRY(const std::vector<int> order, serial_order(nodes));
  const bool is_counted = model_.options.progress && model_.main_graph && &nodes == &model_.main_graph->node();
  for (size_t i = 0; i < order.size(); ++i) {
    if (is_counted) model_.options.progress(static_cast<int64_t>(i), static_cast<int64_t>(order.size()));
    HEDDLE_CHECK(import_node(nodes[order[i]], order[i]));
  }
  return {};
}

Status GraphImporter::import_node(const ::onnx::NodeProto& node, int index) {
  HEDDLE_CHECK(check_name(node.name()));
  if (++model_.nodes > model_.options.limits.nodes)
    return over_limit(model_.options.limits, &Limits::nodes, "the model has too many operators, functions inlined");
  const std::string name = name_of(node, index);
  const auto function = model_.functions.find({node.domain(), node.op_type()});
  Status status;
  if (function != model_.functions.end())
    status = inline_function(node, *function->second, name);
  else if (domain_of(node.domain()).empty() && node.op_type() == "Constant")
    status = import_constant(node, name);
  else
    status = import_operator(node, name);
  return std::move(status).at(name, node.op_type());
}

namespace {

template <class T>
std::shared_ptr<const Blob> vector_blob(DType dtype, const std::vector<T>& values) {
  return Blob::copy_of(dtype, Shape{static_cast<int64_t>(values.size())}, values.data());
}

Result<std::shared_ptr<const Blob>> constant_content(const Attribute& attribute) {
  const AttributeValue& value = attribute.value;
  if (const auto* tensor = std::get_if<std::shared_ptr<const Blob>>(&value)) return *tensor;
  if (const auto* i = std::get_if<int64_t>(&value)) return std::shared_ptr<const Blob>(Blob::copy_of(DType::i64, Shape{}, i));
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) return vector_blob(DType::i64, *ints);
  if (const auto* f = std::get_if<double>(&value)) {
    const auto single = static_cast<float>(*f);
    return std::shared_ptr<const Blob>(Blob::copy_of(DType::f32, Shape{}, &single));
  }
  if (const auto* floats = std::get_if<std::vector<double>>(&value))
    return vector_blob(DType::f32, std::vector<float>(floats->begin(), floats->end()));
  return Status(Code::unsupported, fmt::format("a constant given as {}", quoted(attribute.name)),
                "Heddle's values are dense tensors of numbers");
}

}  // namespace

Status GraphImporter::import_constant(const ::onnx::NodeProto& node, const std::string& name) {
  if (node.output_size() != 1 || node.output(0).empty()) return {Code::arity_mismatch, "a Constant has one output"};
  HEDDLE_TRY(const auto attributes, attributes_of(node));
  for (const auto& [label, proto] : attributes) {
    if (!label->starts_with("value") && *label != "sparse_value") continue;
    HEDDLE_TRY(AttributeValue value, value_of(*proto, model_.external, model_.options.limits));
    HEDDLE_TRY(auto blob, constant_content({*label, std::move(value)}));
    return define(node.output(0), writer_.constant(net_name(node.output(0)), std::move(blob)));
  }
  return {Code::attribute_mismatch, fmt::format("constant {} has no value", quoted(name))};
}

Status GraphImporter::import_operator(const ::onnx::NodeProto& proto, const std::string& name) {
  OnnxNode node;
  node.name = name;
  node.domain = domain_of(proto.domain());
  node.type = proto.op_type();
  const auto opset = opsets_.find(node.domain);
  node.opset = opset != opsets_.end() ? opset->second : 0;
  HEDDLE_TRY(node.inputs, inputs_of(proto));
  std::vector<Subgraph> subgraphs;
  HEDDLE_TRY(const auto attributes, attributes_of(proto));
  for (const auto& [label, attribute] : attributes) {
    if (type_of(*attribute) == ::onnx::AttributeProto::GRAPH) {
      HEDDLE_TRY(Subgraph subgraph, import_subgraph(*label, attribute->g()));
      subgraphs.push_back(std::move(subgraph));
      continue;
    }
    HEDDLE_TRY(AttributeValue value, value_of(*attribute, model_.external, model_.options.limits));
    node.attributes.push_back({*label, std::move(value)});
  }
  for (const std::string& output : proto.output()) node.outputs.push_back(net_name(output));
  HEDDLE_CHECK(attach_subgraphs(node, std::move(subgraphs)));
  return write(std::move(node), proto);
}

namespace {

// Removes attributes that are newer than the semantics which nets carry, where nets mean the same without them.
Status drop_new_attributes(OnnxNode& node) {
  Status status;
  std::erase_if(node.attributes, [&](const Attribute& attribute) {
    const NewAttribute* const row = find_new_attribute(node.type, attribute.name, node.opset);
    if (!row) return false;
    const auto* const text = std::get_if<std::string>(&attribute.value);
    const auto* const number = std::get_if<int64_t>(&attribute.value);
    const std::string value = text ? *text : number ? fmt::to_string(*number) : std::string();
    if (!row->ours.empty() && value != row->ours && status.ok())
      status = {Code::unsupported, fmt::format("attribute {} = {} is new in opset {}, and Heddle has only {}", quoted(attribute.name),
                                               quoted(value), row->since, quoted(std::string(row->ours)))};
    return true;
  });
  return status;
}

}  // namespace

Status GraphImporter::write(OnnxNode node, const ::onnx::NodeProto& proto) {
  Rewrite rewrite(writer_, node, model_.options.keep_dropouts);
  int32_t version = node.opset;
  if (node.domain.empty()) {
    rewrite.drop("consumed_inputs");
    HEDDLE_CHECK(drop_new_attributes(node));
    if (const Legalisation* legalisation = find_legalisation(node.type, node.opset)) HEDDLE_CHECK(legalisation->apply(rewrite));
    version = implemented_version(node.type);
    if (version == 0) return {Code::internal, fmt::format("{} was legalised to an operator without a version", quoted(proto.op_type()))};
  }
  std::vector<std::pair<size_t, ValueId>> outputs = rewrite.bound();
  NodeSpec spec{std::move(node.name),   std::move(node.domain),  std::move(node.type),      version,
                std::move(node.inputs), std::move(node.outputs), std::move(node.attributes)};
  const std::vector<ValueId> written = writer_.node(std::move(spec));
  for (size_t i = 0; i < written.size(); ++i)
    if (written[i].valid()) outputs.emplace_back(i, written[i]);
  for (const auto& [i, value] : outputs) HEDDLE_CHECK(define(proto.output(static_cast<int>(i)), value));
  return {};
}

}  // namespace heddle::importer
