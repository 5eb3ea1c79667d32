#include <algorithm>

#include "base/text/text.h"
#include "edit/editor.h"
#include "plugin/schema.h"
#include "transform/transform.h"
#include "weights/mapping.h"

namespace heddle {
namespace {

bool may_fold(const Node& node) {
  constexpr uint32_t never = HEDDLE_TRAIT_IMPURE | HEDDLE_TRAIT_RANDOM | HEDDLE_TRAIT_COLLECTIVE;
  return (node.schema->op->traits & never) == 0 && !node.schema->updates_variable() && node.epilogue->empty();
}

// True unless folding would trade a small operator for a big constant.
bool worth_folding(const TypedNet& net, const Node& node, const Limits& limits) {
  int64_t in = 0, out = 0;
  for (const ValueId id : node.inputs)
    if (id.valid()) in += net.type(id).byte_size();
  for (const ValueId id : node.outputs)
    if (id.valid()) out += net.type(id).byte_size();
  return out <= limits.folded_bytes && (out <= 65536 || out <= 4 * in);
}

// Releases weights that only folding read: the file still has them.
void release_unused(const Editor& editor, const std::vector<ValueId>& values) {
  for (const ValueId v : values) {
    const auto blob = editor.constant(v);
    if (!blob || editor.uses(v) > 0) continue;
    if (const Mapping* mapping = Mapping::of(*blob)) mapping->release(blob->data, blob->bytes);
  }
}

// A value whose extent was inferred at its bound gets its true one once it is folded, and so do the values that depend on it.
class Retyped {
 public:
  explicit Retyped(Editor& editor) : editor_(editor), changed_(editor.graph().values.size()) {}
  // Records that `id` was folded; its type was `before`.
  void note(ValueId id, const TensorType& before) {
    if (!before.late()) return;
    changed_[id.index] = 1;
    any_ = true;
  }
  // Must be called for every node, in order.
  Status follow(NodeId id) {
    const Node& node = editor_.node(id);
    const auto is_changed = [&](ValueId v) { return v.valid() && v.index < changed_.size() && changed_[v.index]; };
    if (!any_ || std::none_of(node.inputs.begin(), node.inputs.end(), is_changed)) return {};
    std::vector<TensorType> before;
    for (const ValueId v : node.outputs) before.push_back(v.valid() ? editor_.net().type(v) : TensorType());
    HEDDLE_CHECK(editor_.infer_again(id));
    for (size_t i = 0; i < before.size(); ++i)
      if (const ValueId v = editor_.node(id).outputs[i]; v.valid() && editor_.net().type(v) != before[i]) changed_[v.index] = 1;
    return {};
  }

 private:
  Editor& editor_;
  std::vector<char> changed_;
  bool any_ = false;
};

}  // namespace

Result<TypedNet> fold_constants(TypedNet net, Evaluator& evaluator, const CompilationTarget& target, const Interruption* interruption) {
  Editor editor(std::move(net));
  Retyped retyped(editor);
  const size_t count = editor.graph().nodes.size();
  for (size_t i = 0; i < count; ++i) {
    const NodeId id(i);
    const Node& node = editor.node(id);
    if (interruption) HEDDLE_CHECK(interruption->status());
    if (editor.dead(id)) continue;
    if (Status s = retyped.follow(id); !s.ok()) return std::move(s).at(node.name, display_name(node.domain, node.type));
    if (!may_fold(node)) continue;
    bool known = !node.outputs.empty();
    for (const ValueId v : node.outputs)
      known = known && (!v.valid() || (editor.net().known[v.index] && editor.graph()[v].kind == Value::Kind::node_output));
    std::vector<std::shared_ptr<const Blob>> contents;
    if (known) {
      for (const ValueId v : node.outputs) contents.push_back(v.valid() ? editor.net().known[v.index] : nullptr);
    } else {
      const auto constant = [&](ValueId v) { return !v.valid() || editor.is_constant(v); };
      const auto dynamic = [&](ValueId v) { return v.valid() && editor.net().type(v).dynamic; };
      if (node.has_subnet() || !std::all_of(node.inputs.begin(), node.inputs.end(), constant) ||
          std::any_of(node.outputs.begin(), node.outputs.end(), dynamic) || !worth_folding(editor.net(), node, target.limits))
        continue;
      std::vector<std::shared_ptr<const Blob>> inputs;
      for (const ValueId v : node.inputs) inputs.push_back(editor.constant(v));
      auto result = evaluator.evaluate(node, inputs);
      if (!result.ok()) {
        const Code code = result.status().code();
        if (code == Code::no_kernel || code == Code::unsupported) continue;
        return std::move(result).status().at(node.name, display_name(node.domain, node.type)).during("while folding constants");
      }
      contents = std::move(result).value();
    }
    const std::vector<ValueId> inputs = node.inputs, outputs = node.outputs;
    for (size_t k = 0; k < outputs.size() && k < contents.size(); ++k) {
      if (!outputs[k].valid()) continue;
      retyped.note(outputs[k], editor.net().type(outputs[k]));
      editor.make_constant(outputs[k], contents[k]);
    }
    release_unused(editor, inputs);
  }
  return editor.finish();
}

}  // namespace heddle
