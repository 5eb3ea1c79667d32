#include "edit/editor.h"
#include "plugin/schema.h"
#include "transform/transform.h"

namespace heddle {

Result<TypedNet> prune(TypedNet net) {
  Editor editor(std::move(net));
  editor.touch();  // values that the net never used are dropped too
  const size_t count = editor.graph().nodes.size();
  for (size_t i = 0; i < count; ++i) {
    const Node& node = editor.node(NodeId(i));
    if (node.type != "Identity" || !node.domain.empty() || !node.inputs[0].valid()) continue;
    const ValueId from = node.outputs[0], to = node.inputs[0];
    // An input or a variable that is also an output needs the copy.
    const bool plain = editor.graph()[to].kind == Value::Kind::node_output && !editor.is_output(to);
    if (editor.graph()[from].kind == Value::Kind::variable || (editor.is_output(from) && !plain)) continue;
    editor.replace(from, to);
  }
  // Visits nodes backwards, so that a chain dies in one pass.
  for (size_t i = count; i-- > 0;) {
    const NodeId id(i);
    const Node& node = editor.node(id);
    if (node.schema->has_trait(HEDDLE_TRAIT_IMPURE) || node.schema->has_trait(HEDDLE_TRAIT_COLLECTIVE)) continue;
    bool used = false;
    for (const ValueId v : node.outputs)
      used = used || (v.valid() && (editor.uses(v) > 0 || editor.graph()[v].kind == Value::Kind::variable));
    if (!used) editor.remove(id);
  }
  return editor.finish();
}

}  // namespace heddle
