// A net with a loss, as text, as a program brings it; and functions that train it and read its variables.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/training.h"
#include "small_nets.h"

namespace heddle::testing_line {

// guess = x w + b, of x [N, 2] and y [N, 1]; the loss is the mean square of its distance from y.
inline constexpr std::string_view line_text = R"json({"heddle": 1, "name": "line", "operator_sets": [{"domain": "", "version": 18}],
 "inputs": ["x", "y"], "outputs": ["guess", "loss"],
 "variables": [{"name": "w", "dtype": "f32", "dims": [2, 1], "trainable": true, "initializer": "normal(0, 0.1)"},
  {"name": "b", "dtype": "f32", "dims": [1], "trainable": true, "initializer": "constant(0)"}],
 "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": ["N", 2]}, {"name": "y", "kind": "input", "dtype": "f32", "dims": ["N", 1]},
  {"name": "w", "kind": "variable", "variable": "w", "version": 0}, {"name": "b", "kind": "variable", "variable": "b", "version": 0}],
 "nodes": [{"name": "guess", "type": "Gemm", "inputs": ["x", "w", "b"], "outputs": ["guess"]},
  {"name": "difference", "type": "Sub", "inputs": ["guess", "y"], "outputs": ["difference"]},
  {"name": "square", "type": "Mul", "inputs": ["difference", "difference"], "outputs": ["square"]},
  {"name": "loss", "type": "ReduceMean", "inputs": ["square"], "outputs": ["loss"], "attributes": {"keepdims": {"int": 0}}}]})json";

inline Nets line() {
  auto nets = Nets::read_bytes(line_text.data(), line_text.size(), "");
  EXPECT_TRUE(nets.ok()) << nets.status().text();
  return *nets;
}

inline TrainingOptions learning(const char* optimizer = "adam") {
  TrainingOptions options;
  options.losses = {"loss"};
  options.optimizer = optimizer;
  options.learning_rate = *LearningRate::parse(0.1, "exponential(0.99)");
  return options;
}

// Returns "line", and "train" that trains it.
inline Nets learning_line(const Runtime& runtime, const char* optimizer = "adam") {
  Nets nets = line();
  const Status added = nets.add_training(runtime, "line", learning(optimizer), "train");
  EXPECT_TRUE(added.ok()) << added.text();
  return nets;
}

inline Session open(const Runtime& runtime, const Nets& nets) {
  auto session = runtime.open(nets);
  EXPECT_TRUE(session.ok()) << session.status().text();
  return *session;
}

// Runs a net on four points of y = 3 x0 - 2 x1 + 1; returns its outputs.
inline std::vector<Tensor> run_line(const Session& session, const char* net) {
  static const std::vector<float> x = {0, 0, 1, 0, 0, 1, 1, 1}, y = {1, 4, -1, 2};
  auto chosen = session.net(net);
  EXPECT_TRUE(chosen.ok()) << chosen.status().text();
  auto ran = chosen->run({testing_nets::view(x.data(), DType::f32, Shape{4, 2}), testing_nets::view(y.data(), DType::f32, Shape{4, 1})});
  EXPECT_TRUE(ran.ok()) << ran.status().text();
  return ran.ok() ? *ran : std::vector<Tensor>();
}

inline float number(const Tensor& tensor) {
  return *static_cast<const float*>(tensor.data());
}

inline void train(const Session& session, int steps) {
  for (int i = 0; i < steps; ++i) run_line(session, "train");
}

// Returns the contents of every variable, by name.
inline std::map<std::string, std::string> contents(const Session& session) {
  std::map<std::string, std::string> all;
  for (const std::string& name : session.variables()) {
    const auto value = session.read_variable(name);
    EXPECT_TRUE(value.ok()) << value.status().text();
    if (value.ok()) all[name].assign(static_cast<const char*>(value->data()), static_cast<size_t>(value->byte_size()));
  }
  return all;
}

}  // namespace heddle::testing_line
