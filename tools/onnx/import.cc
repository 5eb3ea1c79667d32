#include "onnx/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "base/text/text.h"
#include "onnx/graph/graph_importer.h"
#include "onnx/model_file.h"
#include "onnx/operators/operators.h"
#include "onnx/operators/unknown_operators.h"

namespace heddle {
namespace importer {
namespace {

Result<Opsets> opsets_of(const ::onnx::ModelProto& model) {
  Opsets opsets;
  for (const auto& import : model.opset_import())
    opsets[domain_of(import.domain())] = static_cast<int32_t>(std::clamp<int64_t>(import.version(), 0, INT32_MAX));
  if (!opsets.contains("")) opsets[""] = oldest_opset;  // IR < 3 had no opset_import
  const int32_t opset = opsets[""];
  if (opset < oldest_opset || opset > newest_opset)
    return Status(Code::file_version, fmt::format("the model is written for opset {}", opset),
                  fmt::format("this importer reads opsets {} to {}; export the model for one of these", oldest_opset, newest_opset));
  return opsets;
}

Status check_model(const ::onnx::ModelProto& model) {
  if (!model.has_graph() || model.graph().node_size() + model.graph().output_size() == 0)
    return {Code::file_corrupt, "the file holds no graph, so it is no ONNX model", {}};
  if (model.ir_version() < 1) return {Code::file_corrupt, "the file gives no IR version, so it is no ONNX model", {}};
  if (model.graph().output_size() == 0) return {Code::syntax, "the graph has no outputs", "export the model again"};
  return {};
}

Status collect_functions(const ::onnx::ModelProto& model, ModelContext& context) {
  for (const auto& function : model.functions())
    if (!context.functions.emplace(std::pair(function.domain(), function.name()), &function).second)
      return {Code::duplicate_name, fmt::format("function {} is defined twice", quoted(function.name())), "export the model again"};
  return {};
}

void describe(const ::onnx::ModelProto& model, const Opsets& opsets, Net& net) {
  net.doc = model.doc_string();
  for (const auto& [domain, version] : opsets) net.operator_sets.push_back({domain, domain.empty() ? carried_opset : version});
  net.metadata.emplace_back("onnx.opset", fmt::to_string(opsets.at("")));
  net.metadata.emplace_back("onnx.ir_version", fmt::to_string(model.ir_version()));
  if (!model.producer_name().empty())
    net.metadata.emplace_back("onnx.producer", fmt::format("{} {}", model.producer_name(), model.producer_version()));
  for (const auto& entry : model.metadata_props()) net.metadata.emplace_back(entry.key(), entry.value());
}

Result<Net> import_model(::onnx::ModelProto& model, const std::filesystem::path& file, const ImportOptions& options) {
  HEDDLE_CHECK(check_model(model));
  HEDDLE_TRY(const Opsets opsets, opsets_of(model));
  HEDDLE_CHECK(check_operators(model, opsets.at("")));
  ModelContext context{options, {file.parent_path()}, {}, model.mutable_graph()};
  HEDDLE_CHECK(collect_functions(model, context));
  NetWriter writer(model.graph().name().empty() ? file.stem().string() : model.graph().name());
  GraphImporter graph(context, writer, opsets, nullptr);
  HEDDLE_CHECK(graph.import_graph(model.graph()));
  describe(model, opsets, writer.net());
  if (options.files_read) options.files_read->assign(context.external.read.begin(), context.external.read.end());
  return writer.take();
}

}  // namespace
}  // namespace importer

Result<Net> import_onnx(const std::filesystem::path& model, const ImportOptions& options) {
  try {
    HEDDLE_TRY(const auto message, importer::read_model(model, options.limits));
    Result<Net> net = importer::import_model(*message, model, options);
    if (!net.ok()) return std::move(net).status().in_net(model.string());
    return net;
  } catch (const std::bad_alloc&) {  // thrown by protobuf and by allocations as large as an external data file
    return Status(Code::out_of_memory, fmt::format("no memory to import {}", quoted(model.string())), "lower the limit tensor_bytes");
  }
}

}  // namespace heddle
