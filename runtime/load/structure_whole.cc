// check_whole_net: a net about to be written, with its subnets and with the links that a file does not store.
#include <fmt/format.h>

#include "base/text/text.h"
#include "load/structure.h"

namespace heddle {
namespace {

// Compares the links in `net` with the derived ones. Only our own transforms and builders can get this wrong.
void check_links(const Net& net, const NetLinks& links, Findings& findings) {
  for (size_t i = 0; i < net.values.size(); ++i) {
    const Value& value = net.values[i];
    const Origin& origin = links.origins[i];
    if (value.producer != origin.producer || (origin.producer.valid() && value.output != origin.output))
      findings.add(
          Status(Code::internal, fmt::format("value {} names another producer than the operator that lists it", quoted(value.name)))
              .in_net(net.name));
  }
  for (size_t i = 0; i < net.variables.size(); ++i)
    if (net.variables[i].first != links.first_version[i] || net.variables[i].last != links.last_version[i])
      findings.add(Status(Code::internal, fmt::format("variable {} names other versions than its values", quoted(net.variables[i].name)))
                       .in_net(net.name));
}

void check_with_subnets(const Net& net, int64_t depth, const Limits& limits, int64_t* nodes, Findings& findings) {
  *nodes += static_cast<int64_t>(net.nodes.size());
  if (*nodes > limits.nodes || depth > limits.subnet_depth) {
    findings.add((*nodes > limits.nodes ? over_limit(limits, &Limits::nodes, "the net has too many operators")
                                        : over_limit(limits, &Limits::subnet_depth, "subnets nest too deep"))
                     .in_net(net.name));
    return;
  }
  const size_t before = findings.count();
  const NetLinks links = check_structure(net, depth == 0, limits, findings);
  if (findings.count() == before) check_links(net, links, findings);
  for (const Node& node : net.nodes) {
    for (const Attribute& attribute : node.attributes) {
      const auto* subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value);
      if (subnet != nullptr && *subnet != nullptr) check_with_subnets(**subnet, depth + 1, limits, nodes, findings);
    }
  }
}

}  // namespace

Status check_whole_net(const Net& net, const Limits& limits) {
  Findings findings;
  int64_t nodes = 0;
  check_with_subnets(net, 0, limits, &nodes, findings);
  return std::move(findings).status();
}

Status check_net_names(std::span<const Net* const> nets) {
  if (nets.empty()) return {Code::invalid_argument, "there is no net", "give at least one"};
  if (nets.size() > max_nets)
    return {Code::limit_exceeded, fmt::format("there are {} nets, {} at most may be together", nets.size(), max_nets)};
  for (size_t i = 0; nets.size() > 1 && i < nets.size(); ++i) {
    const std::string& name = nets[i]->name;
    if (name.empty()) return {Code::duplicate_name, fmt::format("net {} of {} has no name", i, nets.size()), "name it"};
    for (size_t k = 0; k < i; ++k)
      if (nets[k]->name == name)
        return {Code::duplicate_name, fmt::format("two nets are called {}", quoted(name)), "give each a name of its own"};
  }
  return {};
}

std::vector<const Net*> pointers_to(std::span<const Net> nets) {
  std::vector<const Net*> all;
  for (const Net& net : nets) all.push_back(&net);
  return all;
}

Status check_whole_nets(std::span<const Net> nets, const Limits& limits) {
  HEDDLE_CHECK(check_net_names(pointers_to(nets)));
  for (const Net& net : nets) HEDDLE_CHECK(check_whole_net(net, limits));
  return {};
}

Result<Net> only_net(std::vector<Net> nets) {
  if (nets.size() == 1) return std::move(nets[0]);
  std::vector<std::string> names;
  for (const Net& net : nets) names.push_back(quoted(net.name));
  return Status(Code::invalid_argument, fmt::format("the file holds {} nets: {}", nets.size(), join(names, ", ")),
                "take a file that holds one");
}

}  // namespace heddle
