// Rewrite rules of plugins: where a rule's pattern occurs (transform/rule_match.h), its replacement takes its place. Each rule goes through
// the net once, so a replacement may contain its pattern.
#include <fmt/format.h>

#include <algorithm>

#include "base/text/text.h"
#include "edit/editor.h"
#include "place/place.h"
#include "plugin/registry.h"
#include "transform/rule_match.h"
#include "transform/transform.h"

namespace heddle {
namespace {

// True if the added nodes have kernels on the device they were put on: a plugin of a device brings rules for that device.
bool run_where_they_are(const Editor& editor, const std::vector<NodeId>& added) {
  return std::all_of(added.begin(), added.end(), [&](NodeId id) { return runs_where_it_is(editor.net(), editor.node(id)); });
}

// Replaces the matched nodes, unless the replacement does not run there.
Status replace(Editor& editor, const RewriteRule& rule, const RuleMatch& match, NodeId at) {
  const Net& replacement = rule.replacement;
  const std::string prefix = editor.node(at).name + "/" + rule.name + "/";
  std::vector<ValueId> values(replacement.values.size());
  std::vector<NodeId> added;
  for (size_t i = 0; i < replacement.inputs.size(); ++i) values[replacement.inputs[i].index] = match.value(rule.pattern.inputs[i]);
  for (const Node& node : replacement.nodes) {
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) {
      if (id.valid() && !values[id.index].valid() && replacement[id].kind == Value::Kind::constant)
        values[id.index] = editor.add_constant(prefix + replacement[id].name, replacement[id].content.blob);
      inputs.push_back(id.valid() ? values[id.index] : ValueId());
    }
    HEDDLE_TRY(values[node.outputs[0].index], editor.add_node(at, node.type, prefix + node.name, inputs, node.attributes, node.domain));
    added.push_back(editor.graph()[values[node.outputs[0].index]].producer);
  }
  if (!run_where_they_are(editor, added)) {
    for (const NodeId id : added) editor.remove(id);
    return {};
  }
  const ValueId before = match.value(rule.pattern.outputs[0]), after = values[replacement.outputs[0].index];
  const TensorType &was = editor.net().type(before), &is = editor.net().type(after);
  if (was != is)
    return {Code::plugin_invalid,
            fmt::format("the replacement makes {}{} of what was {}{}", to_string(is.dtype), is.shape.text(), to_string(was.dtype),
                        was.shape.text()),
            "mend the rule: heddle plugin check tests it"};
  editor.replace(before, after);
  for (const NodeId id : match.nodes) editor.remove(id);
  return {};
}

Status apply(Editor& editor, const RewriteRule& rule) {
  const OperatorSchema* const schema = rule.pattern[pattern_anchor(rule)].schema;
  const size_t count = editor.graph().nodes.size();
  for (size_t i = 0; i < count; ++i) {
    const NodeId at(i);
    if (editor.dead(at) || editor.node(at).schema != schema) continue;
    const auto match = find_match(rule, editor, at);
    if (match) HEDDLE_CHECK(replace(editor, rule, *match, at), fmt::format("at {}", quoted(editor.node(at).name)));
  }
  return {};
}

}  // namespace

Result<TypedNet> apply_rules(TypedNet net) {
  const std::shared_ptr<const RegistrySnapshot> registry = net.registry;
  if (registry->rewrite_rules().empty()) return net;
  Editor editor(std::move(net));
  for (const auto& rule : registry->rewrite_rules())
    HEDDLE_CHECK(apply(editor, *rule), fmt::format("in rewrite rule {}", quoted(rule->name)));
  return editor.finish();
}

}  // namespace heddle
