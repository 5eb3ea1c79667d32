// Rewrite rules: a sound one, one that changes the result, one that changes the type, one that names an operator nobody has, one
// that is no net, one with other inputs.
// RULES_CASE says which, so that each is a plugin of its own.
#include "heddle/op.h"
using namespace heddle::plugin;

#define SWISH_PATTERN                                                                                                                   \
  R"({"heddle": 1, "inputs": ["x"], "outputs": ["y"], "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": ["N", "C"]}],)" \
  R"( "nodes": [{"type": "Sigmoid", "name": "s", "inputs": ["x"], "outputs": ["s"]},)"                                                  \
  R"( {"type": "Mul", "name": "y", "inputs": ["x", "s"], "outputs": ["y"]}]})"
#define ONE_NODE(type, domain)                                                                                                          \
  R"({"heddle": 1, "inputs": ["x"], "outputs": ["y"], "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": ["N", "C"]}],)" \
  R"( "nodes": [{"type": ")" type R"(", "domain": ")" domain R"(", "name": "y", "inputs": ["x"], "outputs": ["y"]}]})"
#define OTHER_PORTS                                                                                                                     \
  R"({"heddle": 1, "inputs": ["a"], "outputs": ["y"], "values": [{"name": "a", "kind": "input", "dtype": "f32", "dims": ["N", "C"]}],)" \
  R"( "nodes": [{"type": "Relu", "name": "y", "inputs": ["a"], "outputs": ["y"]}]})"

HEDDLE_PLUGIN("rules_" RULES_CASE, "1.0", plugin) {
  const std::string which = RULES_CASE;
  if (which == "sound") {
    plugin.add(Op("Swish", "rules").doc("x * sigmoid(x)").in("x").out("y").pointwise("x * sigmoid(x)"));
    plugin.rule("swish", SWISH_PATTERN, ONE_NODE("Swish", "rules"));
  }
  if (which == "wrong_result") plugin.rule("swish-relu", SWISH_PATTERN, ONE_NODE("Relu", ""));
  if (which == "wrong_type") plugin.rule("swish-shape", SWISH_PATTERN, ONE_NODE("Shape", ""));
  if (which == "no_net") plugin.rule("swish-nothing", SWISH_PATTERN, "nothing");
  if (which == "other_ports") plugin.rule("swish-ports", SWISH_PATTERN, OTHER_PORTS);
  if (which == "unknown") plugin.rule("swish-swosh", SWISH_PATTERN, ONE_NODE("Swosh", "rules"));
}
