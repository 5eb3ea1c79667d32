#include "transform/rule_match.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "plugin/schema.h"

namespace heddle {
namespace {

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

// An occurrence matched so far, and the pairs of values that are still to be compared.
struct Partial {
  struct Pair {
    ValueId pattern, found;
  };
  RuleMatch match;
  std::map<std::string, int64_t> symbols;
  std::vector<Pair> open;  // the last one is next
};

class Search {
 public:
  Search(const RewriteRule& rule, const Editor& editor) : rule_(rule), editor_(editor) {}
  bool at(NodeId at, Partial& partial) const {
    const NodeId anchor = pattern_anchor(rule_);
    if (!bind(anchor, at, partial)) return false;
    return solve_below(anchor, partial);
  }

 private:
  bool solve(Partial& partial) const;
  bool solve_below(NodeId pattern_id, Partial& partial) const;
  bool bind(ValueId pattern_id, ValueId id, Partial& partial, NodeId* bound) const;
  bool bind(NodeId pattern_id, NodeId id, Partial& partial) const;
  bool fits(const DeclaredType& declared, const TensorType& type, Partial& partial) const;
  bool may_be(ValueId pattern_id, ValueId id, const Partial& partial) const;
  void open_inputs(NodeId pattern_id, bool swapped, Partial& partial) const;
  bool whole(const RuleMatch& match) const;
  bool closed(const RuleMatch& match) const;

  const RewriteRule& rule_;
  const Editor& editor_;
};

bool Search::fits(const DeclaredType& declared, const TensorType& type, Partial& partial) const {
  if (declared.dtype != DType::none && declared.dtype != type.dtype) return false;
  if (type.late()) return false;
  if (!declared.ranked) return true;
  if (declared.dims.size() != static_cast<size_t>(type.shape.rank())) return false;
  for (size_t i = 0; i < declared.dims.size(); ++i) {
    const Dim& dim = declared.dims[i];
    const int64_t extent = type.shape[static_cast<int>(i)];
    if (dim.kind == Dim::Kind::constant && dim.value != extent) return false;
    if (dim.kind == Dim::Kind::symbol && partial.symbols.try_emplace(dim.symbol, extent).first->second != extent) return false;
  }
  return true;
}

// Binds a value of the pattern. Sets `bound` to the operator of the pattern whose inputs must therefore be compared.
bool Search::bind(ValueId pattern_id, ValueId id, Partial& partial, NodeId* bound) const {
  if (pattern_id.valid() != id.valid()) return false;
  if (!id.valid()) return true;
  ValueId& value = partial.match.values[pattern_id.index];
  if (value.valid()) return value == id;
  value = id;
  const Value& wanted = rule_.pattern[pattern_id];
  if (wanted.kind == Value::Kind::input) return fits(wanted.type, editor_.net().type(id), partial);
  if (wanted.kind == Value::Kind::constant) {
    const auto content = editor_.constant(id);
    return content && same_content(*content, *wanted.content.blob);
  }
  const NodeId producer = editor_.graph()[id].producer;
  if (!producer.valid() || editor_.graph()[id].output != wanted.output) return false;
  const NodeId before = partial.match.nodes[wanted.producer.index];
  if (before.valid()) return before == producer;
  *bound = wanted.producer;
  return bind(wanted.producer, producer, partial);
}

bool Search::bind(NodeId pattern_id, NodeId id, Partial& partial) const {
  const Node& wanted = rule_.pattern[pattern_id];
  const Node& found = editor_.node(id);
  if (editor_.dead(id) || found.schema != wanted.schema || found.inputs.size() != wanted.inputs.size() || !found.epilogue->empty())
    return false;
  for (const Attribute& stated : rule_.stated[pattern_id.index]) {
    const AttributeValue* value = found.find(stated.name);
    if (!value || !same_attribute(*value, stated.value)) return false;
  }
  partial.match.nodes[pattern_id.index] = id;
  for (size_t i = 0; i < wanted.outputs.size() && i < found.outputs.size(); ++i)
    if (wanted.outputs[i].valid()) {
      ValueId& output = partial.match.values[wanted.outputs[i].index];
      if (output.valid() && output != found.outputs[i]) return false;
      output = found.outputs[i];
    }
  return true;
}

// Checks one value without looking at the values it is computed from.
bool Search::may_be(ValueId pattern_id, ValueId id, const Partial& partial) const {
  const ValueId bound = partial.match.values[pattern_id.index];
  if (bound.valid()) return bound == id;
  const Value& wanted = rule_.pattern[pattern_id];
  if (wanted.kind == Value::Kind::input) return wanted.type.dtype == DType::none || wanted.type.dtype == editor_.net().type(id).dtype;
  if (wanted.kind == Value::Kind::constant) return editor_.is_constant(id);
  const NodeId producer = editor_.graph()[id].producer;
  return producer.valid() && editor_.node(producer).schema == rule_.pattern[wanted.producer].schema;
}

void Search::open_inputs(NodeId pattern_id, bool swapped, Partial& partial) const {
  const std::vector<ValueId>& wanted = rule_.pattern[pattern_id].inputs;
  const std::vector<ValueId>& found = editor_.node(partial.match.nodes[pattern_id.index]).inputs;
  for (size_t i = wanted.size(); i-- > 0;) partial.open.push_back({wanted[i], found[swapped ? 1 - i : i]});
}

// Called when the pattern's operator is bound: tries its inputs in the order in which they are written, then in the other one.
bool Search::solve_below(NodeId pattern_id, Partial& partial) const {
  const std::vector<ValueId>& wanted = rule_.pattern[pattern_id].inputs;
  const std::vector<ValueId>& found = editor_.node(partial.match.nodes[pattern_id.index]).inputs;
  const bool other = rule_.swapped[pattern_id.index] && found[0].valid() && found[1].valid() && found[0] != found[1] &&
                     may_be(wanted[0], found[1], partial) && may_be(wanted[1], found[0], partial);
  if (!other) {
    open_inputs(pattern_id, false, partial);
    return solve(partial);
  }
  if (may_be(wanted[0], found[0], partial) && may_be(wanted[1], found[1], partial)) {
    Partial as_written = partial;
    open_inputs(pattern_id, false, as_written);
    if (solve(as_written)) {
      partial = std::move(as_written);
      return true;
    }
  }
  open_inputs(pattern_id, true, partial);
  return solve(partial);
}

bool Search::solve(Partial& partial) const {
  while (!partial.open.empty()) {
    const Partial::Pair next = partial.open.back();
    partial.open.pop_back();
    NodeId bound;
    if (!bind(next.pattern, next.found, partial, &bound)) return false;
    if (bound.valid()) return solve_below(bound, partial);
  }
  return whole(partial.match) && closed(partial.match);
}

// True if everything of the pattern was reached, on one device and free to move.
bool Search::whole(const RuleMatch& match) const {
  return std::all_of(match.nodes.begin(), match.nodes.end(), [&](NodeId id) {
    return id.valid() && editor_.node(id).placed == editor_.node(match.nodes[0]).placed && editor_.node(id).control.empty();
  });
}

// True if results inside the pattern are read there only.
bool Search::closed(const RuleMatch& match) const {
  const ValueId output = match.value(rule_.pattern.outputs[0]);
  for (const NodeId id : match.nodes)
    for (const ValueId result : editor_.node(id).outputs) {
      if (!result.valid() || result == output) continue;
      uint32_t reads = 0;
      for (const NodeId reader : match.nodes)
        reads += static_cast<uint32_t>(std::count(editor_.node(reader).inputs.begin(), editor_.node(reader).inputs.end(), result));
      if (editor_.uses(result) != reads) return false;
    }
  return true;
}

}  // namespace

NodeId pattern_anchor(const RewriteRule& rule) {
  return rule.pattern[rule.pattern.outputs[0]].producer;
}

std::optional<RuleMatch> find_match(const RewriteRule& rule, const Editor& editor, NodeId at) {
  Partial partial;
  partial.match.values.resize(rule.pattern.values.size());
  partial.match.nodes.resize(rule.pattern.nodes.size());
  if (!Search(rule, editor).at(at, partial)) return std::nullopt;
  return std::move(partial.match);
}

}  // namespace heddle
