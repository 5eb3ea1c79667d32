// Subgraph attributes: nets of their own, whose captures become the last inputs of the node and of each of its subnets.
#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "base/text/text.h"
#include "onnx/graph/graph_importer.h"
#include "onnx/operators/operators.h"

namespace heddle::importer {

Result<Subgraph> GraphImporter::import_subgraph(const std::string& name, const ::onnx::GraphProto& graph) {
  if (depth_ + 1 > model_.options.limits.subnet_depth)
    return over_limit(model_.options.limits, &Limits::subnet_depth, "subgraphs nest too deep");
  NetWriter writer(graph.name().empty() ? name : graph.name());
  GraphImporter scope(model_, writer, opsets_, this);
  HEDDLE_CHECK(scope.import_graph(graph), fmt::format("in subgraph {}", quoted(name)));
  Subgraph subgraph{name, writer.take(), scope.captured()};
  for (const auto& [domain, version] : opsets_) subgraph.net.operator_sets.push_back({domain, domain.empty() ? carried_opset : version});
  return subgraph;
}

namespace {

// Reorders the captured inputs, which end net.inputs, to `all`; an input that this net does not read is added unread.
void align_captures(Subgraph& subgraph, const std::vector<ValueId>& all, const Net& outer) {
  Net& net = subgraph.net;
  const size_t formals = net.inputs.size() - subgraph.captured.size();
  std::unordered_map<ValueId, ValueId> inside;
  for (size_t i = 0; i < subgraph.captured.size(); ++i) inside.emplace(subgraph.captured[i], net.inputs[formals + i]);
  NameTable names;
  for (const Value& value : net.values) names.take(value.name);
  net.inputs.resize(formals);
  for (ValueId captured : all) {
    const auto [own, unread] = inside.try_emplace(captured, net.values.size());
    net.inputs.push_back(own->second);
    if (!unread) continue;
    Value value;
    value.name = names.unique(outer[captured].name);
    value.kind = Value::Kind::input;
    net.values.push_back(std::move(value));
  }
}

Status count_mismatch(const Subgraph& subgraph, const char* what, size_t has, size_t wanted) {
  return {Code::subnet_mismatch, fmt::format("subgraph {} has {} {}, the operator {}", quoted(subgraph.attribute), has, what, wanted)};
}

// Checks the arity of ONNX's own control flow, before captures are added.
Status check_signature(const OnnxNode& node, const Subgraph& subgraph) {
  if (!node.domain.empty()) return {};
  const size_t formals = subgraph.net.inputs.size() - subgraph.captured.size();
  const size_t results = subgraph.net.outputs.size();
  if (node.type == "If") {
    if (formals != 0) return count_mismatch(subgraph, "inputs", formals, 0);
    if (results != node.outputs.size()) return count_mismatch(subgraph, "outputs", results, node.outputs.size());
  }
  const bool batched = node.type == "Scan" && node.opset < 9;  // reported by its own message
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
  std::unordered_set<ValueId> seen;
  for (const Subgraph& subgraph : subgraphs) {
    HEDDLE_CHECK(check_signature(node, subgraph));
    for (ValueId captured : subgraph.captured)
      if (seen.insert(captured).second) all.push_back(captured);
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
