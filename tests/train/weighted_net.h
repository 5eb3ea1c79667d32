// A net whose loss is a mean by the weights of its samples.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "heddle/trainer.h"
#include "session/line_net.h"

namespace heddle::testing_train {

// This is "line" with a weight for each sample: the loss is the mean of the squares by weight.
inline constexpr std::string_view weighted_text = R"json({"heddle": 1, "name": "weighted", "operator_sets": [{"domain": "", "version": 18}],
 "inputs": ["x", "y", "weights"], "outputs": ["loss"],
 "variables": [{"name": "w", "dtype": "f32", "dims": [2, 1], "trainable": true, "initializer": "constant(0.5)"}],
 "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": ["N", 2]}, {"name": "y", "kind": "input", "dtype": "f32", "dims": ["N", 1]},
  {"name": "weights", "kind": "input", "dtype": "f32", "dims": ["N", 1]}, {"name": "w", "kind": "variable", "variable": "w", "version": 0}],
 "nodes": [{"name": "guess", "type": "MatMul", "inputs": ["x", "w"], "outputs": ["guess"]},
  {"name": "difference", "type": "Sub", "inputs": ["guess", "y"], "outputs": ["difference"]},
  {"name": "square", "type": "Mul", "inputs": ["difference", "difference"], "outputs": ["square"]},
  {"name": "weighted", "type": "Mul", "inputs": ["square", "weights"], "outputs": ["weighted"]},
  {"name": "sum", "type": "ReduceSum", "inputs": ["weighted"], "outputs": ["sum"], "attributes": {"keepdims": {"int": 0}}},
  {"name": "total", "type": "ReduceSum", "inputs": ["weights"], "outputs": ["total"], "attributes": {"keepdims": {"int": 0}}},
  {"name": "loss", "type": "Div", "inputs": ["sum", "total"], "outputs": ["loss"]}]})json";

struct Weighted {
  Weighted() : runtime(testing_nets::runtime()), nets(read(runtime)), all(testing_line::open(runtime, nets)) {}
  static Nets read(const Runtime& runtime) {
    auto nets = Nets::read_bytes(weighted_text.data(), weighted_text.size(), "");
    EXPECT_TRUE(nets.ok()) << nets.status().text();
    const Status added = nets->add_training(runtime, "weighted", testing_line::learning("sgd"), "train");
    EXPECT_TRUE(added.ok()) << added.text();
    return *nets;
  }
  float w(size_t i) const { return static_cast<const float*>(all.read_variable("w")->data())[i]; }
  Runtime runtime;
  Nets nets;
  Session all;
};

}  // namespace heddle::testing_train
