// Versions of variables, streams of randomness and control inputs in nets that were written by hand.
#include <gtest/gtest.h>

#include <cstring>

#include "load/json.h"
#include "resolve/resolve.h"
#include "session/pipeline.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

Status run_json(const std::string& text, std::vector<Tensor>* results = nullptr) {
  HEDDLE_TRY(Net net, net_from_json(text, {}));
  const Runtime r = runtime(2);
  HEDDLE_TRY(Session session, r.open(std::move(net), {}));
  const std::vector<float> x = {1, 2};
  HEDDLE_TRY(std::vector<Tensor> outputs, session.run({{DType::f32, Shape{2}, const_cast<float*>(x.data())}}));
  if (results) *results = std::move(outputs);
  return {};
}

// A net with one update w -> w1 made by `nodes`; `outputs` are those of the net.
std::string update_net(const std::string& outputs, const std::string& nodes) {
  return R"({"heddle": 1, "name": "n", "inputs": ["x"], "outputs": )" + outputs +
         R"(, "variables": [{"name": "w", "dtype": "f32", "dims": [2], "data": [1, 2]}, {"name": "u", "dtype": "f32", "dims": [2], "data": [5, 6]}],
 "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [2]}, {"name": "w0", "kind": "variable", "variable": "w", "version": 0},
  {"name": "u0", "kind": "variable", "variable": "u", "version": 0}, {"name": "w1", "kind": "variable", "variable": "w", "version": 1}],
 "nodes": [)" +
         nodes + "]}";
}
const char* const update = R"({"name": "a", "type": "AccumulateAdd", "domain": "heddle", "inputs": ["w0", "x"], "outputs": ["w1"]})";

void expect_hazard(const std::string& text, const char* part) {
  const Status status = run_json(text);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::hazard) << status.text();
  EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
}

TEST(Versions, OnlyAnUpdateOfThatVariableMakesOne) {
  expect_hazard(update_net(R"(["w1"])", R"({"name": "a", "type": "Neg", "inputs": ["w0"], "outputs": ["w1"]})"),
                "the operator updates nothing");
  expect_hazard(
      update_net(R"(["w1"])", R"({"name": "a", "type": "AccumulateAdd", "domain": "heddle", "inputs": ["u0", "x"], "outputs": ["w1"]})"),
      "is version 1 of \"w\"");
}

TEST(Versions, AnOverwrittenOneIsNoOutput) {
  expect_hazard(update_net(R"(["w0", "w1"])", update), "which is overwritten in the same run");
}

TEST(Versions, ACopyOfAnOverwrittenOneKeepsItsContent) {
  std::vector<Tensor> results;
  const std::string copy = R"({"name": "c", "type": "Identity", "inputs": ["w0"], "outputs": ["old"]}, )";
  const Status status = run_json(update_net(R"(["old", "w1"])", copy + update), &results);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(static_cast<const float*>(results[0].data())[0], 1.0f);
  EXPECT_EQ(static_cast<const float*>(results[1].data())[0], 2.0f);
}

TEST(Versions, AnInputWithoutADtypeIsRefused) {
  const auto net = net_from_json(R"({"heddle": 1, "name": "n", "inputs": ["x"], "outputs": ["y"],
 "values": [{"name": "x", "kind": "input", "dims": [2]}], "nodes": [{"name": "a", "type": "MatMul", "inputs": ["x", "x"], "outputs": ["y"]}]})",
                                 {});
  ASSERT_TRUE(net.ok()) << net.status().text();
  const Runtime r = runtime();
  Session session = open(r, *net);
  const auto context = session.prepare({});
  ASSERT_FALSE(context.ok());
  EXPECT_EQ(context.status().code(), Code::dtype_mismatch) << context.status().text();
}

TEST(Streams, RandomOperatorsWithoutIdsDrawDifferentNumbers) {
  std::vector<Tensor> results;
  const Status status = run_json(R"({"heddle": 1, "name": "n", "inputs": ["x"], "outputs": ["a", "b"],
 "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [2]}],
 "nodes": [{"name": "a", "type": "RandomUniformLike", "inputs": ["x"], "outputs": ["a"]},
           {"name": "b", "type": "RandomUniformLike", "inputs": ["x"], "outputs": ["b"]}]})",
                                 &results);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_NE(std::memcmp(results[0].data(), results[1].data(), 2 * sizeof(float)), 0);
}

// "late" waits for "view", a reshape of the output of "first": the order must hold although the view becomes no step.
TEST(Control, WhatWaitsForAViewWaitsForItsProducer) {
  auto net = net_from_json(R"({"heddle": 1, "name": "n", "inputs": ["x"], "outputs": ["late", "view"],
 "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [2]}, {"name": "s", "kind": "constant", "dtype": "i64", "dims": [2], "data": [2, 1]}],
 "nodes": [{"name": "first", "type": "Softmax", "inputs": ["x"], "outputs": ["f"]},
           {"name": "view", "type": "Reshape", "inputs": ["f", "s"], "outputs": ["view"]},
           {"name": "late", "type": "Softmax", "inputs": ["x"], "outputs": ["late"], "control": ["view"]}]})",
                           {});
  ASSERT_TRUE(net.ok()) << net.status().text();
  const Runtime r = runtime(2);
  Session session = open(r, std::move(*net));
  auto context = session.prepare({});
  ASSERT_TRUE(context.ok()) << context.status().text();
  const Plan& plan = Internals::execution(*context).plan();
  // The steps that must be done before `name`.
  std::vector<std::vector<uint32_t>> before(plan.steps.size());
  for (uint32_t s = 0; s < plan.graph.count; ++s)
    for (uint32_t e = plan.graph.successor_begin[s]; e < plan.graph.successor_begin[s + 1]; ++e) {
      before[plan.graph.successors[e]].push_back(s);
      for (const uint32_t earlier : before[s]) before[plan.graph.successors[e]].push_back(earlier);
    }
  std::vector<std::string> names;
  for (uint32_t s = 0; s < plan.graph.count; ++s)
    if (plan.steps[s].name == "late")
      for (const uint32_t b : before[s]) names.push_back(plan.steps[b].name);
  EXPECT_NE(std::find(names.begin(), names.end(), "first"), names.end());
}

TEST(Check, MissingDevicesAreNamedEvenWhereShapesAreWrong) {
  auto net = net_from_json(R"({"heddle": 1, "name": "n", "inputs": ["x"], "outputs": ["y", "z"],
 "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [4, 5]}],
 "nodes": [{"name": "wrong", "type": "MatMul", "inputs": ["x", "x"], "outputs": ["y"]},
           {"name": "lost", "type": "Relu", "inputs": ["x"], "outputs": ["z"], "device": "nowhere:0"}]})",
                           {});
  ASSERT_TRUE(net.ok()) << net.status().text();
  const Runtime r = runtime();
  const auto registry = Internals::of(r).registry.snapshot();
  auto resolved = resolve(std::move(*net), registry);
  ASSERT_TRUE(resolved.ok()) << resolved.status().text();
  std::vector<Code> codes;
  const Findings findings = check_net(*resolved, registry, host_target(), {});
  for (const Diagnostic& d : findings.all()) codes.push_back(d.code);
  EXPECT_EQ(codes, (std::vector<Code>{Code::shape_mismatch, Code::no_such_device}));
}

}  // namespace
}  // namespace heddle
