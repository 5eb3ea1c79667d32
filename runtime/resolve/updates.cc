#include "resolve/updates.h"

#include <algorithm>

#include "plugin/schema.h"

namespace heddle {
namespace {

// Returns the input whose next version is `version`, an output that the schema allows to be an update.
int input_before(const Net& net, const Node& node, ValueId version) {
  if (!version.valid() || net[version].kind != Value::Kind::variable) return -1;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].valid()) continue;
    const Value& before = net[node.inputs[i]];
    if (before.kind == Value::Kind::variable && before.variable == net[version].variable && before.version + 1 == net[version].version)
      return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

int updated_input(const Net& net, const Node& node, size_t output) {
  const int declared = node.schema->updated_input(output);
  if (declared >= 0) return declared;
  const heddle_port* const port = node.schema->output_port(output);
  return port && (port->flags & HEDDLE_PORT_MAY_UPDATE) ? input_before(net, node, node.outputs[output]) : -1;
}

bool updates_variable(const Net& net, const Node& node) {
  return node.schema->updates_variable() || std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
           return output.valid() && net[output].kind == Value::Kind::variable;
         });
}

}  // namespace heddle
