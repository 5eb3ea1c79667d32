#include "resolve/rule_reader.h"

#include <fmt/format.h>

#include "base/text.h"
#include "load/json.h"
#include "resolve/resolve.h"

namespace heddle {
namespace {

Status check_rule(const RewriteRule& rule) {
  const auto names = [](const Net& net, const std::vector<ValueId>& ids) {
    std::vector<std::string> list;
    for (const ValueId id : ids) list.push_back(net[id].name);
    return list;
  };
  const auto invalid = [](const char* what, const char* mend) { return Status(Code::plugin_invalid, what, mend); };
  if (names(rule.pattern, rule.pattern.inputs) != names(rule.replacement, rule.replacement.inputs) ||
      names(rule.pattern, rule.pattern.outputs) != names(rule.replacement, rule.replacement.outputs))
    return invalid("pattern and replacement have different inputs or outputs", "give both the same names in the same order");
  if (rule.pattern.outputs.size() != 1) return invalid("a rule has not exactly one output", "make a rule of each");
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
    return check_rule(rule);
  }();
  if (!read.ok())
    return std::move(read).during(fmt::format("in rewrite rule {} of {}", quoted(rule.name), quoted(plugin.library->path().string())));
  // The registry keeps the rule: a rule that kept the registry would keep itself.
  rule.pattern.keep_alive.clear();
  rule.replacement.keep_alive.clear();
  return rule;
}

}  // namespace heddle
