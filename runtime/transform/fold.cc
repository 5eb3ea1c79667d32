#include "base/text.h"
#include "plugin/schema.h"
#include "transform/editor.h"
#include "transform/transform.h"
#include "weights/mapping.h"

namespace heddle {
namespace {

bool may_fold(const Node& node) {
  constexpr uint32_t never = HEDDLE_TRAIT_IMPURE | HEDDLE_TRAIT_RANDOM | HEDDLE_TRAIT_COLLECTIVE | HEDDLE_TRAIT_HOST_SYNC;
  return (node.schema->op->traits & never) == 0 && !node.schema->updates_variable() && node.epilogue.empty();
}

// Folding must not trade a small operator for a big constant.
bool worth_folding(const TypedNet& net, const Node& node, const Limits& limits) {
  int64_t in = 0, out = 0;
  for (const ValueId id : node.inputs)
    if (id.valid()) in += net.type(id).byte_size();
  for (const ValueId id : node.outputs)
    if (id.valid()) out += net.type(id).byte_size();
  return out <= limits.folded_bytes && (out <= 65536 || out <= 4 * in);
}

// Weights that only folding read leave memory at once: the file still has them.
void release_unused(const Editor& editor, const std::vector<ValueId>& values) {
  for (const ValueId v : values) {
    const auto blob = editor.constant(v);
    if (!blob || editor.uses(v) > 0) continue;
    if (const Mapping* mapping = Mapping::of(*blob)) mapping->release(blob->data, blob->bytes);
  }
}

}  // namespace

Result<TypedNet> fold_constants(TypedNet net, Evaluator& evaluator, const Limits& limits) {
  Editor editor(std::move(net));
  const size_t count = editor.graph().nodes.size();
  for (size_t i = 0; i < count; ++i) {
    const NodeId id(i);
    const Node& node = editor.node(id);
    if (editor.dead(id) || !may_fold(node)) continue;
    bool known = !node.outputs.empty();
    for (const ValueId v : node.outputs)
      known = known && (!v.valid() || (editor.net().known[v.index] && editor.graph()[v].kind == Value::Kind::node_output));
    std::vector<std::shared_ptr<const Blob>> contents;
    if (known) {
      for (const ValueId v : node.outputs) contents.push_back(v.valid() ? editor.net().known[v.index] : nullptr);
    } else {
      bool constant = !node.has_subnet();
      std::vector<std::shared_ptr<const Blob>> inputs;
      for (const ValueId v : node.inputs) {
        inputs.push_back(editor.constant(v));
        constant = constant && (!v.valid() || inputs.back());
      }
      for (const ValueId v : node.outputs) constant = constant && (!v.valid() || !editor.net().type(v).dynamic);
      if (!constant || !worth_folding(editor.net(), node, limits)) continue;
      auto result = evaluator.evaluate(node, inputs);
      if (!result.ok()) {
        const Code code = result.status().code();
        if (code == Code::no_kernel || code == Code::unsupported) continue;
        return std::move(result).status().at(node.name, display_name(node.domain, node.type)).during("while folding constants");
      }
      contents = std::move(result).value();
    }
    const std::vector<ValueId> inputs = node.inputs, outputs = node.outputs;
    for (size_t k = 0; k < outputs.size() && k < contents.size(); ++k)
      if (outputs[k].valid()) editor.make_constant(outputs[k], contents[k]);
    release_unused(editor, inputs);
  }
  return editor.finish();
}

}  // namespace heddle
