// A small net that can be trained, and eight samples for it.
#pragma once

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "tool/tool_runner.h"

namespace heddle::tool_tests {

inline constexpr const char* learning_net_text = R"json({"heddle": 1, "name": "train", "inputs": ["x", "labels"], "outputs": ["logits"],
 "variables": [{"name": "w", "dtype": "f32", "dims": [2, 2], "trainable": true, "initializer": "normal(0, 0.1)"}],
 "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": ["N", 2]}, {"name": "labels", "kind": "input", "dtype": "i64", "dims": ["N"]},
  {"name": "w", "kind": "variable", "variable": "w", "version": 0}],
 "nodes": [{"name": "logits", "type": "MatMul", "inputs": ["x", "w"], "outputs": ["logits"]},
  {"name": "loss", "type": "SoftmaxCrossEntropyLoss", "inputs": ["logits", "labels"], "outputs": ["loss"]}],
 "nets": [{"name": "test", "inputs": ["x", "labels"], "outputs": ["loss"],
  "variables": [{"name": "w", "dtype": "f32", "dims": [2, 2], "trainable": true}],
  "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": ["N", 2]}, {"name": "labels", "kind": "input", "dtype": "i64", "dims": ["N"]},
   {"name": "w", "kind": "variable", "variable": "w", "version": 0}],
  "nodes": [{"name": "logits", "type": "MatMul", "inputs": ["x", "w"], "outputs": ["logits"]},
   {"name": "loss", "type": "SoftmaxCrossEntropyLoss", "inputs": ["logits", "labels"], "outputs": ["loss"]}]}]})json";

// Eight samples of two classes, which differ by the sign of x.
struct Samples {
  Samples() {
    std::vector<float> x;
    std::vector<int64_t> labels;
    for (int i = 0; i < 8; ++i) {
      x.push_back(i % 2 == 0 ? 1.0F : -1.0F);
      x.push_back(0.5F);
      labels.push_back(i % 2);
    }
    write("x.npy", "<f4", "8, 2", x.data(), 16 * sizeof(float));
    write("labels.npy", "<i8", "8,", labels.data(), 8 * sizeof(int64_t));
    write("few.npy", "<i8", "7,", labels.data(), 7 * sizeof(int64_t));
    std::ofstream(net) << learning_net_text;
  }
  void write(const char* name, const char* type, const char* shape, const void* data, size_t bytes) const {
    write_text(folder / name, npy_of(type, shape, data, bytes));
  }
  std::string file(const char* name) const { return (folder / name).string(); }
  Words train(const Words& more) const {
    Words words = {"train", net, "--data", "x=" + file("x.npy"), "--data", "labels=" + file("labels.npy")};
    for (const auto& [option, value] : {std::pair("--batch", "4"), std::pair("--learning-rate", "0.5"), std::pair("--steps", "20")})
      if (std::find(more.begin(), more.end(), option) == more.end()) words.insert(words.end(), {option, value});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  const TemporaryFolder folder;
  const std::string net = (folder / "net.json").string();
};

inline std::vector<Json> lines_of(const std::string& file) {
  std::vector<Json> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

}  // namespace heddle::tool_tests
