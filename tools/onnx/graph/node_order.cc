#include "onnx/graph/node_order.h"

#include <fmt/format.h>

#include <functional>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/text/text.h"

namespace heddle::importer {
namespace {

using Producers = std::unordered_map<std::string_view, int>;
using NameSet = std::unordered_set<std::string_view>;

Result<Producers> producers_of(const NodeList& nodes) {
  Producers producers;
  for (int i = 0; i < nodes.size(); ++i)
    for (const std::string& output : nodes[i].output())
      if (!output.empty() && !producers.emplace(output, i).second)
        return Status(Code::duplicate_name, fmt::format("value {} is an output of two operators", quoted(output)), "export the model again")
            .at(nodes[i].name(), nodes[i].op_type());
  return producers;
}

NameSet defined_in(const ::onnx::GraphProto& graph) {
  NameSet names;
  for (const auto& input : graph.input()) names.insert(input.name());
  for (const auto& initializer : graph.initializer()) names.insert(initializer.name());
  for (const auto& node : graph.node()) names.insert(node.output().begin(), node.output().end());
  return names;
}

// Calls `visit` with every name that the node reads, names that its subgraphs take from outside among them. Recursion is as deep as
// the subgraphs, which the parser has limited.
void visit_reads(const ::onnx::NodeProto& node, const std::function<void(std::string_view)>& visit) {
  for (const std::string& input : node.input()) visit(input);
  for (const auto& attribute : node.attribute()) {
    if (!attribute.has_g()) continue;
    const NameSet inner = defined_in(attribute.g());
    const auto outer_only = [&](std::string_view name) {
      if (!inner.contains(name)) visit(name);
    };
    for (const auto& child : attribute.g().node()) visit_reads(child, outer_only);
    for (const auto& output : attribute.g().output()) outer_only(output.name());
  }
}

struct Edges {
  std::vector<std::vector<int>> consumers;  // by producer
  std::vector<int> waiting;                 // producers that a node still waits for
  bool sorted = true;
};

Edges edges_of(const NodeList& nodes, const Producers& producers) {
  Edges edges;
  edges.consumers.resize(static_cast<size_t>(nodes.size()));
  edges.waiting.resize(static_cast<size_t>(nodes.size()));
  for (int i = 0; i < nodes.size(); ++i)
    visit_reads(nodes[i], [&](std::string_view name) {
      const auto producer = producers.find(name);
      if (producer == producers.end()) return;
      edges.consumers[static_cast<size_t>(producer->second)].push_back(i);
      ++edges.waiting[static_cast<size_t>(i)];
      if (producer->second >= i) edges.sorted = false;
    });
  return edges;
}

Status cycle_at(const NodeList& nodes, const std::vector<int>& waiting) {
  int first = 0;
  while (waiting[static_cast<size_t>(first)] == 0) ++first;
  return Status(Code::cycle, "the operator waits for a value that depends on its own output", "export the model again")
      .at(nodes[first].name(), nodes[first].op_type());
}

}  // namespace

Result<std::vector<int>> serial_order(const NodeList& nodes) {
  HEDDLE_TRY(const Producers producers, producers_of(nodes));
  Edges edges = edges_of(nodes, producers);
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i)
    if (edges.waiting[static_cast<size_t>(i)] == 0) ready.push(i);
  std::vector<int> order;
  if (edges.sorted) {
    for (int i = 0; i < nodes.size(); ++i) order.push_back(i);
    return order;
  }
  while (!ready.empty()) {
    const int node = ready.top();
    ready.pop();
    order.push_back(node);
    for (int consumer : edges.consumers[static_cast<size_t>(node)])
      if (--edges.waiting[static_cast<size_t>(consumer)] == 0) ready.push(consumer);
  }
  if (order.size() != static_cast<size_t>(nodes.size())) return cycle_at(nodes, edges.waiting);
  return order;
}

}  // namespace heddle::importer
