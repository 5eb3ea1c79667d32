// Rewrite rules whose patterns have operators with the trait COMMUTATIVE, and one without. "too_many" has more of them than are tried in
// both orders.
#include "../plugin_case.h"
#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

// A net of f32 vectors in text form. `nodes` are lines of type, result and inputs: "Add y t x".
std::string net(const std::vector<std::string>& inputs, const std::vector<std::vector<std::string>>& nodes,
                const std::string& domain = "") {
  const auto list = [](const std::vector<std::string>& names, size_t first) {
    std::string text;
    for (size_t i = first; i < names.size(); ++i) text += (i > first ? ", \"" : "\"") + names[i] + "\"";
    return "[" + text + "]";
  };
  std::string values, operators;
  for (const std::string& name : inputs)
    values += (values.empty() ? "" : ", ") + ("{\"name\": \"" + name) + R"(", "kind": "input", "dtype": "f32", "dims": ["N"]})";
  for (const auto& node : nodes)
    operators += (operators.empty() ? "" : ", ") + ("{\"type\": \"" + node[0]) + R"(", "domain": ")" + domain + R"(", "name": ")" +
                 node[1] + R"(", "inputs": )" + list(node, 2) + R"(, "outputs": [")" + node[1] + "\"]}";
  return R"({"heddle": 1, "inputs": )" + list(inputs, 0) + R"(, "outputs": ["y"], "values": [)" + values + R"(], "nodes": [)" + operators +
         "]}";
}

// Keeps the text: the host reads rules after the function that makes them has returned.
const char* kept(const std::string& text) {
  static std::vector<std::unique_ptr<const std::string>> texts;
  return texts.emplace_back(std::make_unique<const std::string>(text))->c_str();
}

// t1 = x + exp(x), t2 = t1 + exp(x), ...
std::string sums(int count) {
  std::vector<std::vector<std::string>> nodes = {{"Exp", "e", "x"}};
  for (int i = 1; i <= count; ++i)
    nodes.push_back({"Add", i == count ? "y" : "t" + std::to_string(i), i == 1 ? "x" : "t" + std::to_string(i - 1), "e"});
  return net({"x"}, nodes);
}

// (a0 + exp(b0)) + (a1 + exp(b1)) + ... - tanh(c): each sum fits a sum of two exponentials in both orders.
std::string wide(int leaves) {
  std::vector<std::string> inputs = {"c"};
  std::vector<std::vector<std::string>> nodes;
  for (int i = 0; i < leaves; ++i) {
    const std::string k = std::to_string(i);
    inputs.push_back("a" + k);
    inputs.push_back("b" + k);
    nodes.push_back({"Exp", "e" + k, "b" + k});
    nodes.push_back({"Add", "l" + k, "a" + k, "e" + k});
    if (i > 0) nodes.push_back({"Add", "s" + k, i == 1 ? "l0" : "s" + std::to_string(i - 1), "l" + k});
  }
  nodes.push_back({"Tanh", "t", "c"});
  nodes.push_back({"Sub", "y", "s" + std::to_string(leaves - 1), "t"});
  return net(inputs, nodes);
}

}  // namespace

HEDDLE_PLUGIN(test_plugin_name, "1.0", plugin) {
  if (std::string(test_plugin_case) == "too_many") {
    plugin.rule("many-sums", kept(sums(13)), kept(net({"x"}, {{"Relu", "y", "x"}})));
    return;
  }
  plugin.add(Op("SwishPlus", "rules").in("x").out("y").pointwise("x * sigmoid(x) + x"));
  plugin.add(Op("ReluMinus", "rules").in("x").out("y").pointwise("max(x, 0) - x"));
  plugin.add(Op("SquaredTanh", "rules").in("x").out("y").pointwise("t = tanh(x); t * t"));
  plugin.add(Op("LargerExp", "rules").in("a").in("b").out("y").pointwise("max(exp(a), exp(b))"));
  plugin.add(Op("ScaledPlus", "rules").in("a").in("b").out("y").pointwise("a * exp(b) + tanh(b)"));
  plugin.add(Op("MinusTanh", "rules").in("x").out("y").pointwise("-tanh(x)"));
  plugin.rule("swish-plus", kept(net({"x"}, {{"Sigmoid", "s", "x"}, {"Mul", "m", "x", "s"}, {"Add", "y", "m", "x"}})),
              kept(net({"x"}, {{"SwishPlus", "y", "x"}}, "rules")));
  plugin.rule("relu-minus", kept(net({"x"}, {{"Relu", "r", "x"}, {"Sub", "y", "r", "x"}})),
              kept(net({"x"}, {{"ReluMinus", "y", "x"}}, "rules")));
  plugin.rule("squared-tanh", kept(net({"x"}, {{"Tanh", "t", "x"}, {"Mul", "y", "t", "t"}})),
              kept(net({"x"}, {{"SquaredTanh", "y", "x"}}, "rules")));
  plugin.rule("larger-exp", kept(net({"a", "b"}, {{"Exp", "p", "a"}, {"Exp", "q", "b"}, {"Max", "y", "p", "q"}})),
              kept(net({"a", "b"}, {{"LargerExp", "y", "a", "b"}}, "rules")));
  plugin.rule("scaled-plus", kept(net({"a", "b"}, {{"Exp", "e", "b"}, {"Mul", "m", "a", "e"}, {"Tanh", "t", "b"}, {"Add", "y", "m", "t"}})),
              kept(net({"a", "b"}, {{"ScaledPlus", "y", "a", "b"}}, "rules")));
  plugin.rule("many-sums", kept(sums(12)), kept(net({"x"}, {{"MinusTanh", "y", "x"}}, "rules")));
  std::vector<std::string> inputs = {"c"};
  for (int i = 0; i < 6; ++i) {
    inputs.push_back("a" + std::to_string(i));
    inputs.push_back("b" + std::to_string(i));
  }
  plugin.rule("wide", kept(wide(6)), kept(net(inputs, {{"MinusTanh", "y", "c"}}, "rules")));
}
