#include "resolve/rule_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/text.h"
#include "load/json.h"
#include "resolve/resolve.h"

namespace heddle {
namespace {

std::string names(const Net& net, const std::vector<ValueId>& ids) {
  std::vector<std::string> list;
  for (const ValueId id : ids) list.push_back(quoted(net[id].name));
  return list.empty() ? "none" : join(list, ", ");
}

Status check_ports(const RewriteRule& rule) {
  for (const auto& [net, name] : {std::pair(&rule.pattern, "pattern"), std::pair(&rule.replacement, "replacement")})
    if (net->outputs.size() != 1)
      return {Code::plugin_invalid,
              fmt::format("the {} has {} outputs ({}): a rule replaces what makes one value", name, net->outputs.size(),
                          names(*net, net->outputs)),
              "give it one output; of what makes several, make a rule of each"};
  for (const auto& [ports, kind] : {std::pair(&Net::inputs, "inputs"), std::pair(&Net::outputs, "outputs")}) {
    const std::string pattern = names(rule.pattern, rule.pattern.*ports), replacement = names(rule.replacement, rule.replacement.*ports);
    if (pattern != replacement)
      return {Code::plugin_invalid, fmt::format("the pattern has the {} {}, the replacement {}", kind, pattern, replacement),
              "give both the same names in the same order"};
  }
  return {};
}

Status check_rule(const RewriteRule& rule) {
  const auto invalid = [](const char* what, const char* mend) { return Status(Code::plugin_invalid, what, mend); };
  HEDDLE_CHECK(check_ports(rule));
  for (const Net* net : {&rule.pattern, &rule.replacement}) {
    if (!net->variables.empty()) return invalid("a net of a rule has variables", "make them inputs");
    for (const ValueId id : net->outputs)
      if (!(*net)[id].producer.valid()) return invalid("an output of a rule is no result of an operator", "use Identity");
  }
  for (const Node& node : rule.replacement.nodes)
    if (node.schema->has_trait(HEDDLE_TRAIT_RANDOM)) return invalid("an operator of the replacement is random", "leave it to the net");
  for (const Node& node : rule.replacement.nodes)
    if (node.outputs.size() != 1 || !node.outputs[0].valid())
      return invalid("an operator of the replacement has not exactly one output", "split it");
  return {};
}

// Whether exchanging the two inputs only exchanges their names.
bool exchangeable(const Net& pattern, ValueId a, ValueId b) {
  size_t reads = 0;
  for (const Node& node : pattern.nodes)
    reads +=
        static_cast<size_t>(std::count(node.inputs.begin(), node.inputs.end(), a) + std::count(node.inputs.begin(), node.inputs.end(), b));
  const auto is_input = [&](ValueId id) { return pattern[id].kind == Value::Kind::input; };
  return is_input(a) && is_input(b) && pattern[a].type == pattern[b].type && reads == 2;
}

// Finds the operators of the pattern that are matched in both orders of their inputs.
Status find_swapped(RewriteRule& rule) {
  std::vector<std::string> swapped;
  for (const Node& node : rule.pattern.nodes) {
    const bool swaps = node.schema->has_trait(HEDDLE_TRAIT_COMMUTATIVE) && node.inputs.size() == 2 && node.inputs[0].valid() &&
                       node.inputs[1].valid() && node.inputs[0] != node.inputs[1] &&
                       !exchangeable(rule.pattern, node.inputs[0], node.inputs[1]);
    rule.swapped.push_back(swaps ? 1 : 0);
    if (swaps) swapped.push_back(quoted(node.name));
  }
  if (swapped.size() <= max_swapped) return {};
  return {Code::plugin_invalid,
          fmt::format("the pattern has {} operators whose inputs may stand in either order, more than {}: {}", swapped.size(), max_swapped,
                      join(swapped, ", ")),
          "make rules of its parts"};
}

}  // namespace

Result<RewriteRule> read_rewrite_rule(const LoadedPlugin& plugin, const heddle_rewrite_rule& table,
                                      const std::shared_ptr<const RegistrySnapshot>& registry) {
  RewriteRule rule;
  rule.name = fmt::format("{}: {}", plugin.name, table.name);
  const Limits limits;
  Status read = [&]() -> Status {
    HEDDLE_TRY(rule.pattern, net_from_json(table.pattern, limits));
    HEDDLE_TRY(rule.replacement, net_from_json(table.replacement, limits));
    for (const Node& node : rule.pattern.nodes) rule.stated.push_back(node.attributes);
    HEDDLE_TRY(rule.pattern, resolve(std::move(rule.pattern), registry, limits));
    HEDDLE_TRY(rule.replacement, resolve(std::move(rule.replacement), registry, limits));
    HEDDLE_CHECK(check_rule(rule));
    return find_swapped(rule);
  }();
  if (!read.ok())
    return std::move(read).during(fmt::format("in rewrite rule {} of {}", quoted(rule.name), quoted(plugin.library->path().string())));
  // The registry keeps the rule: a rule that kept the registry would keep itself.
  rule.pattern.keep_alive.clear();
  rule.replacement.keep_alive.clear();
  return rule;
}

}  // namespace heddle
