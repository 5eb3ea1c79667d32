// Subgraph attributes: nets of their own, whose captures become the last inputs of the node and of each of its subnets.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "onnx/graph_importer.h"

namespace heddle::importer {

Result<Subgraph> GraphImporter::import_subgraph(const ::onnx::AttributeProto& attribute) {
  if (depth_ + 1 > model_.options.limits.subnet_depth)
    return Status(Code::limit_exceeded, fmt::format("subgraphs are nested deeper than {}", model_.options.limits.subnet_depth),
                  "raise the limit subnet_depth");
  ::onnx::GraphProto graph = attribute.g();
  NetWriter writer(graph.name().empty() ? attribute.name() : graph.name());
  GraphImporter scope(model_, writer, opsets_, this);
  HEDDLE_CHECK(scope.import_graph(graph), "in subgraph " + quoted(attribute.name()));
  Subgraph subgraph{attribute.name(), writer.take(), scope.captured()};
  for (const auto& [domain, version] : opsets_) subgraph.net.operator_sets.push_back({domain, domain.empty() ? newest_opset() : version});
  return subgraph;
}

namespace {

// Reorders the captured inputs, which end net.inputs, to `all`; an input that this net does not read is added unread.
void align_captures(Subgraph& subgraph, const std::vector<ValueId>& all, const Net& outer) {
  Net& net = subgraph.net;
  const auto formals = net.inputs.size() - subgraph.captured.size();
  const std::vector<ValueId> own(net.inputs.begin() + static_cast<std::ptrdiff_t>(formals), net.inputs.end());
  net.inputs.resize(formals);
  for (ValueId captured : all) {
    const auto at = std::find(subgraph.captured.begin(), subgraph.captured.end(), captured);
    if (at != subgraph.captured.end()) {
      net.inputs.push_back(own[static_cast<size_t>(at - subgraph.captured.begin())]);
      continue;
    }
    Value value;
    value.name = outer[captured].name;
    while (net.find_value(value.name)) value.name += "_unread";
    value.kind = Value::Kind::input;
    net.values.push_back(std::move(value));
    net.inputs.emplace_back(net.values.size() - 1);
  }
}

Status count_mismatch(const Subgraph& subgraph, const char* what, size_t has, size_t wanted) {
  return {Code::subnet_mismatch, fmt::format("subgraph {} has {} {}, the operator {}", quoted(subgraph.attribute), has, what, wanted)};
}

// Arity of ONNX's own control flow, before captures are added.
Status check_signature(const OnnxNode& node, const Subgraph& subgraph) {
  if (!node.domain.empty()) return {};
  const size_t formals = subgraph.net.inputs.size() - subgraph.captured.size();
  const size_t results = subgraph.net.outputs.size();
  if (node.type == "If") {
    if (formals != 0) return count_mismatch(subgraph, "inputs", formals, 0);
    if (results != node.outputs.size()) return count_mismatch(subgraph, "outputs", results, node.outputs.size());
  }
  const bool batched = node.type == "Scan" && node.opset < 9;  // refused by its own message
  if (node.type == "Loop" || (node.type == "Scan" && !batched)) {
    const size_t condition = node.type == "Loop" ? 1 : 0;
    if (formals != node.inputs.size()) return count_mismatch(subgraph, "inputs", formals, node.inputs.size());
    if (results != node.outputs.size() + condition) return count_mismatch(subgraph, "outputs", results, node.outputs.size() + condition);
  }
  return {};
}

}  // namespace

Status GraphImporter::attach_subgraphs(OnnxNode& node, std::vector<Subgraph> subgraphs) {
  if (subgraphs.empty()) return {};
  if (node.type == "Loop" && node.domain.empty() && node.inputs.size() < 2) node.inputs.resize(2);
  std::vector<ValueId> all;
  for (const Subgraph& subgraph : subgraphs) {
    HEDDLE_CHECK(check_signature(node, subgraph));
    for (ValueId captured : subgraph.captured)
      if (std::find(all.begin(), all.end(), captured) == all.end()) all.push_back(captured);
  }
  for (Subgraph& subgraph : subgraphs) {
    align_captures(subgraph, all, writer_.net());
    node.attributes.push_back({subgraph.attribute, std::make_shared<const Net>(std::move(subgraph.net))});
  }
  node.inputs.insert(node.inputs.end(), all.begin(), all.end());
  const bool positional = node.domain.empty() && node.type == "If";  // all inputs but the condition are captured
  if (!positional) node.attributes.push_back({"captured", static_cast<int64_t>(all.size())});
  return {};
}

}  // namespace heddle::importer
