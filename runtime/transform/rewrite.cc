// Rewrite rules of plugins: where a rule's pattern occurs, its replacement takes its place.
//
// A pattern matches from its output backwards: the same operators with the attributes that the pattern states, constants of equal
// content, inputs that may be anything of the dtype and extents they declare (a symbol fits any extent, the same one everywhere). Values
// inside the pattern have no reader outside of it. Each rule passes over the net once, so a replacement may contain its pattern.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/text.h"
#include "edit/editor.h"
#include "edit/place.h"
#include "plugin/registry.h"
#include "transform/transform.h"

namespace heddle {
namespace {

// The operator that a match begins with.
NodeId anchor(const Net& pattern) {
  return pattern[pattern.outputs[0]].producer;
}

bool same_content(const Blob& a, const Blob& b) {
  const bool scalars = a.shape.element_count() == 1 && b.shape.element_count() == 1;
  return a.dtype == b.dtype && (a.shape == b.shape || scalars) && a.bytes == b.bytes &&
         std::memcmp(a.data, b.data, static_cast<size_t>(a.bytes)) == 0;
}

bool same_attribute(const AttributeValue& a, const AttributeValue& b) {
  if (a.index() != b.index()) return false;
  if (const auto* blob = std::get_if<std::shared_ptr<const Blob>>(&a))
    return same_content(**blob, *std::get<std::shared_ptr<const Blob>>(b));
  if (std::holds_alternative<std::shared_ptr<const Net>>(a)) return false;
  return a == b;
}

// One attempt to find a pattern in a net.
class Match {
 public:
  Match(const RewriteRule& rule, const Editor& editor)
      : rule_(rule), editor_(editor), values_(rule.pattern.values.size()), nodes_(rule.pattern.nodes.size()) {}
  // Whether the pattern occurs with its anchor at `at`.
  bool at(NodeId at) { return node(anchor(rule_.pattern), at) && whole() && closed(); }
  ValueId value(ValueId pattern_value) const { return values_[pattern_value.index]; }
  const std::vector<NodeId>& nodes() const { return nodes_; }

 private:
  bool node(NodeId pattern_id, NodeId id);
  bool value(ValueId pattern_id, ValueId id);
  bool fits(const DeclaredType& declared, const TensorType& type);
  bool whole() const;
  bool closed() const;

  const RewriteRule& rule_;
  const Editor& editor_;
  std::vector<ValueId> values_;  // by pattern value: what it stands for
  std::vector<NodeId> nodes_;    // by pattern node
  std::map<std::string, int64_t> symbols_;
};

bool Match::fits(const DeclaredType& declared, const TensorType& type) {
  if (declared.dtype != DType::none && declared.dtype != type.dtype) return false;
  if (type.late()) return false;
  if (!declared.ranked) return true;
  if (declared.dims.size() != static_cast<size_t>(type.shape.rank())) return false;
  for (size_t i = 0; i < declared.dims.size(); ++i) {
    const Dim& dim = declared.dims[i];
    const int64_t extent = type.shape[static_cast<int>(i)];
    if (dim.kind == Dim::Kind::constant && dim.value != extent) return false;
    if (dim.kind == Dim::Kind::symbol && symbols_.try_emplace(dim.symbol, extent).first->second != extent) return false;
  }
  return true;
}

bool Match::value(ValueId pattern_id, ValueId id) {
  if (pattern_id.valid() != id.valid()) return false;
  if (!id.valid()) return true;
  ValueId& bound = values_[pattern_id.index];
  if (bound.valid()) return bound == id;
  bound = id;
  const Value& wanted = rule_.pattern[pattern_id];
  if (wanted.kind == Value::Kind::input) return fits(wanted.type, editor_.net().type(id));
  if (wanted.kind == Value::Kind::constant) {
    const auto content = editor_.constant(id);
    return content && same_content(*content, *wanted.content.blob);
  }
  const NodeId producer = editor_.graph()[id].producer;
  return producer.valid() && editor_.graph()[id].output == wanted.output && node(wanted.producer, producer);
}

bool Match::node(NodeId pattern_id, NodeId id) {
  NodeId& bound = nodes_[pattern_id.index];
  if (bound.valid()) return bound == id;
  const Node& wanted = rule_.pattern[pattern_id];
  const Node& found = editor_.node(id);
  if (editor_.dead(id) || found.schema != wanted.schema || found.inputs.size() != wanted.inputs.size() || !found.epilogue.empty())
    return false;
  for (const Attribute& stated : rule_.stated[pattern_id.index]) {
    const AttributeValue* value = found.find(stated.name);
    if (!value || !same_attribute(*value, stated.value)) return false;
  }
  bound = id;
  for (size_t i = 0; i < wanted.outputs.size() && i < found.outputs.size(); ++i)
    if (wanted.outputs[i].valid()) {
      ValueId& output = values_[wanted.outputs[i].index];
      if (output.valid() && output != found.outputs[i]) return false;
      output = found.outputs[i];
    }
  for (size_t i = 0; i < wanted.inputs.size(); ++i)
    if (!value(wanted.inputs[i], found.inputs[i])) return false;
  return true;
}

// Everything of the pattern was reached, on one device and free to move.
bool Match::whole() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [&](NodeId id) {
    return id.valid() && editor_.node(id).placed == editor_.node(nodes_[0]).placed && editor_.node(id).control.empty();
  });
}

// Results inside the pattern are read there only.
bool Match::closed() const {
  const ValueId output = values_[rule_.pattern.outputs[0].index];
  for (const NodeId id : nodes_)
    for (const ValueId result : editor_.node(id).outputs) {
      if (!result.valid() || result == output) continue;
      uint32_t reads = 0;
      for (const NodeId reader : nodes_)
        reads += static_cast<uint32_t>(std::count(editor_.node(reader).inputs.begin(), editor_.node(reader).inputs.end(), result));
      if (editor_.uses(result) != reads) return false;
    }
  return true;
}

// Whether what was added has kernels on the device it was put on. On the host a missing one is compile's to tell.
bool run_where_they_are(const Editor& editor, const std::vector<NodeId>& added) {
  const TypedNet& net = editor.net();
  return std::all_of(added.begin(), added.end(), [&](NodeId id) {
    const Node& node = editor.node(id);
    const std::string& device = net.device_of(node);
    return node.placed == host_device || runs_on(net, node, device, runs_pointwise(net, device));
  });
}

// Puts the replacement in the place of what matched, unless it does not run there.
Status replace(Editor& editor, const RewriteRule& rule, const Match& match, NodeId at) {
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
  for (const NodeId id : match.nodes()) editor.remove(id);
  return {};
}

Status apply(Editor& editor, const RewriteRule& rule) {
  const OperatorSchema* const schema = rule.pattern[anchor(rule.pattern)].schema;
  const size_t count = editor.graph().nodes.size();
  for (size_t i = 0; i < count; ++i) {
    const NodeId at(i);
    if (editor.dead(at) || editor.node(at).schema != schema) continue;
    Match match(rule, editor);
    if (match.at(at)) HEDDLE_CHECK(replace(editor, rule, match, at), fmt::format("at {}", quoted(editor.node(at).name)));
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
