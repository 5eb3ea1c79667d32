// Small ONNX models that `heddle import --trainable` makes into nets, and parts of these nets as JSON.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "tool/onnx_bytes.h"
#include "tool/tool_runner.h"

namespace heddle::tool_tests {

namespace onnx = onnx_bytes;

inline std::vector<float> ramp(size_t count, float scale) {
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) values.push_back(scale * std::sin(1.7F * static_cast<float>(i + 1)));
  return values;
}

// x [N, 2] → MatMul w1 [2, 6] → BatchNormalization → Relu → Mul half → Dropout → MatMul w2 [6, 2] + b2 → logits.
inline onnx::Graph normalised() {
  return onnx::Graph()
      .input(onnx::batch("x", {2}))
      .output(onnx::batch("logits", {2}))
      .constant(onnx::tensor("fc1.weight", {2, 6}, ramp(12, 1)))
      .constant(onnx::tensor("bn.weight", {6}, std::vector<float>(6, 1)))
      .constant(onnx::tensor("bn.bias", {6}, std::vector<float>(6, 0)))
      .constant(onnx::tensor("bn.mean", {6}, std::vector<float>(6, 0)))
      .constant(onnx::tensor("bn.var", {6}, std::vector<float>(6, 1)))
      .constant(onnx::tensor("half", {}, {0.5F}))
      .constant(onnx::tensor("ratio", {}, {0.5F}))
      .constant(onnx::tensor("fc2.weight", {6, 2}, ramp(12, 1)))
      .constant(onnx::tensor("fc2.bias", {2}, {0, 0}))
      .node(onnx::node("MatMul", {"x", "fc1.weight"}, {"h"}))
      .node(onnx::node("BatchNormalization", {"h", "bn.weight", "bn.bias", "bn.mean", "bn.var"}, {"normal"}))
      .node(onnx::node("Relu", {"normal"}, {"positive"}))
      .node(onnx::node("Mul", {"positive", "half"}, {"halved"}))
      .node(onnx::node("Dropout", {"halved", "ratio"}, {"dropped"}))
      .node(onnx::node("MatMul", {"dropped", "fc2.weight"}, {"product"}))
      .node(onnx::node("Add", {"product", "fc2.bias"}, {"logits"}));
}

// Holds a model and imports it.
struct Model {
  explicit Model(const onnx::Graph& graph, uint64_t opset = 13) { write_text(file("m.onnx"), graph.model(opset)); }
  std::string file(const std::string& name) const { return (folder / name).string(); }
  Words words(const std::string& loss, const Words& patterns) const {
    Words all = {"import", file("m.onnx"), "--loss", loss, "-o", file("net.json")};
    for (const std::string& pattern : patterns) {
      all.emplace_back("--trainable");
      if (!pattern.empty()) all.push_back(pattern);
    }
    return all;
  }
  Json import(const std::string& loss, const Words& patterns = {""}) const { return heddle_json(words(loss, patterns)); }
  // Returns the net of the file that was made, "train" or "test".
  Json net(const std::string& name, const std::string& from = "net.json") const {
    Json object = Json::parse(read_text(file(from)));
    return name == "train" ? object : object["nets"][0];
  }
  // Returns the diagnostic of an import that is refused.
  Json refusal(const std::string& loss, const Words& patterns = {""}) const {
    const Outcome outcome = heddle([&] {
      Words all = words(loss, patterns);
      all.emplace_back("--json");
      return all;
    }());
    EXPECT_NE(outcome.status, 0) << loss;
    const Json list = checked_object(outcome, "import.json")["diagnostics"];
    EXPECT_EQ(list.size(), 1u) << list;
    EXPECT_FALSE(list[0].value("hint", "").empty()) << list;
    EXPECT_FALSE(std::filesystem::exists(folder / "net.json"));
    return list[0];
  }
  const TemporaryFolder folder;
};

inline Json node_of(const Json& net, const std::string& type) {
  for (const Json& node : net["nodes"])
    if (node["type"] == type) return node;
  return Json::object();
}

inline Json called(const Json& list, const std::string& name) {
  for (const Json& one : list)
    if (one["name"] == name) return one;
  return Json::object();
}

inline Words names_of(const Json& net, const char* list) {
  Words names;
  for (const Json& one : net[list]) names.push_back(one.is_string() ? one.get<std::string>() : one["name"].get<std::string>());
  return names;
}

}  // namespace heddle::tool_tests
