// Rewrite rules, each a plugin of its own: a sound one, one that changes the result, one that changes the type, one that names an operator
// of no plugin, those with a side that is no net, ones with other inputs or several outputs, and of any rank, right and wrong.
#include "../plugin_case.h"
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
#define SUM_OF_TWO                                                                                                                    \
  R"({"heddle": 1, "inputs": ["x", "z"], "outputs": ["y"], "values": [)"                                                              \
  R"({"name": "x", "kind": "input", "dtype": "f32", "dims": ["N"]}, {"name": "z", "kind": "input", "dtype": "f32", "dims": ["N"]}],)" \
  R"( "nodes": [{"type": "Add", "name": "y", "inputs": ["x", "z"], "outputs": ["y"]}]})"
#define ABSOLUTE                                                                                                                   \
  R"({"heddle": 1, "inputs": ["x"], "outputs": ["y"], "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": ["N"]}],)" \
  R"( "nodes": [{"type": "Abs", "name": "y", "inputs": ["x"], "outputs": ["y"]}]})"
#define TWO_OUTPUTS                                                                                                                     \
  R"({"heddle": 1, "inputs": ["x"], "outputs": ["y", "z"], "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": ["N"]}],)" \
  R"( "nodes": [{"type": "Abs", "name": "y", "inputs": ["x"], "outputs": ["y"]},)"                                                      \
  R"( {"type": "Neg", "name": "z", "inputs": ["x"], "outputs": ["z"]}]})"
// x of any rank.
#define SOFTMAX(axis)                                                                                                          \
  R"({"heddle": 1, "inputs": ["x"], "outputs": ["y"], "values": [{"name": "x", "kind": "input", "dtype": "f32"}], "nodes": [)" \
  R"({"type": "Softmax", "name": "y", "inputs": ["x"], "outputs": ["y"], "attributes": {"axis": {"int": )" axis R"(}}}]})"
#define SOFTMAX_OF_LOGARITHM                                                                                                   \
  R"({"heddle": 1, "inputs": ["x"], "outputs": ["y"], "values": [{"name": "x", "kind": "input", "dtype": "f32"}], "nodes": [)" \
  R"({"type": "LogSoftmax", "name": "l", "inputs": ["x"], "outputs": ["l"], "attributes": {"axis": {"int": -1}}},)"            \
  R"( {"type": "Exp", "name": "y", "inputs": ["l"], "outputs": ["y"]}]})"

HEDDLE_PLUGIN(test_plugin_name, "1.0", plugin) {
  const std::string which = test_plugin_case;
  if (which == "sound") {
    plugin.add(Op("Swish", "rules").doc("x * sigmoid(x)").in("x").out("y").pointwise("x * sigmoid(x)"));
    plugin.rule("swish", SWISH_PATTERN, ONE_NODE("Swish", "rules"));
  }
  if (which == "wrong_result") plugin.rule("swish-relu", SWISH_PATTERN, ONE_NODE("Relu", ""));
  if (which == "wrong_type") plugin.rule("swish-shape", SWISH_PATTERN, ONE_NODE("Shape", ""));
  if (which == "no_net") plugin.rule("swish-nothing", SWISH_PATTERN, "nothing");
  if (which == "no_pattern") plugin.rule("nothing-swish", "{", ONE_NODE("Relu", ""));
  if (which == "fewer_inputs") plugin.rule("sum-absolute", SUM_OF_TWO, ABSOLUTE);
  if (which == "two_outputs") plugin.rule("two-outputs", TWO_OUTPUTS, TWO_OUTPUTS);
  if (which == "any_rank") {
    plugin.rule("exp-of-log", SOFTMAX_OF_LOGARITHM, SOFTMAX("-1"), {"f32[4]", "f32[2,3]", "f32[2,3,4] = -9..9"});
    plugin.rule("untried", SOFTMAX_OF_LOGARITHM, SOFTMAX("0"));
  }
  if (which == "other_axis") plugin.rule("first-axis", SOFTMAX_OF_LOGARITHM, SOFTMAX("0"), {"f32[4]", "f32[2,3]"});
  if (which == "other_ports") plugin.rule("swish-ports", SWISH_PATTERN, OTHER_PORTS);
  if (which == "unknown") plugin.rule("swish-swosh", SWISH_PATTERN, ONE_NODE("Swosh", "rules"));
}
