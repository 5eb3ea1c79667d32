// A rewrite rule with an attribute and constants: 2 * leaky_relu(x), where negative numbers are halved, is the larger of 2x and x.
#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr const char* pattern = R"({"heddle": 1, "inputs": ["x"], "outputs": ["y"], "values": [
  {"name": "x", "kind": "input", "dtype": "f32", "dims": ["N"]}, {"name": "two", "kind": "constant", "dtype": "f32", "dims": [], "data": [2]}],
  "nodes": [{"type": "LeakyRelu", "name": "l", "inputs": ["x"], "outputs": ["l"], "attributes": {"alpha": {"float": 0.5}}},
            {"type": "Mul", "name": "y", "inputs": ["l", "two"], "outputs": ["y"]}]})";
constexpr const char* replacement = R"({"heddle": 1, "inputs": ["x"], "outputs": ["y"], "values": [
  {"name": "x", "kind": "input", "dtype": "f32", "dims": ["N"]}, {"name": "two", "kind": "constant", "dtype": "f32", "dims": [], "data": [2]}],
  "nodes": [{"type": "Mul", "name": "m", "inputs": ["x", "two"], "outputs": ["m"]},
            {"type": "Max", "name": "y", "inputs": ["m", "x"], "outputs": ["y"]}]})";

}  // namespace

HEDDLE_PLUGIN("rules_constants", "1.0", plugin) {
  plugin.rule("doubled-leaky", pattern, replacement);
}
