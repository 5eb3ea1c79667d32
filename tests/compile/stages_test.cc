// Tests the list of the stages, and the two ways to go through it.
#include "compile/stages.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "infer/registry_evaluator.h"
#include "resolve/resolve.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

// One operator has inputs of no valid shape and one is on a device that does not exist: infer finds the first, verify the second.
Net net_with_two_mistakes() {
  NetBuilder b("two mistakes");
  const ValueId x = b.input("x", DType::f32, Shape{4, 5});
  b.output(b.add1("MatMul", "wrong", {x, x}));
  b.output(b.add1("Relu", "lost", {x}));
  b.net().nodes.back().device = "nowhere:0";
  return b.finish();
}

struct Way {
  Runtime runtime = testing_nets::runtime();
  std::shared_ptr<const RegistrySnapshot> registry = Internals::of(runtime).registry.snapshot();
  std::unique_ptr<Evaluator> evaluator = make_registry_evaluator(registry);
  CompilationTarget target = host_target();
  CompileOptions options;
  Compilation compilation{target, registry, *evaluator, options};
  Net resolved(Net net) const {
    auto result = resolve(std::move(net), registry);
    EXPECT_TRUE(result.ok()) << result.status().text();
    return std::move(*result);
  }
};

TEST(Stages, AreInTheOrderInWhichANetPassesThem) {
  std::vector<std::string> names;
  for (const Stage& stage : stages()) names.emplace_back(stage.name);
  EXPECT_EQ(names, (std::vector<std::string>{"infer", "place", "verify", "transform", "compile"}));
}

TEST(Stages, RangesThatAdjoinAreTheWholeWay) {
  Way way;
  PlanInfo::Times times;
  way.compilation.times = &times;
  const Net net = way.resolved(convolution_net());
  ASSERT_TRUE(run_stages(way.compilation, &net, {nullptr, "verify"}).ok());
  EXPECT_EQ(way.compilation.plan, nullptr);
  ASSERT_TRUE(run_stages(way.compilation, nullptr, {"verify", "compile"}).ok());
  ASSERT_TRUE(run_stages(way.compilation, nullptr, {"compile", nullptr}).ok());
  ASSERT_NE(way.compilation.plan, nullptr);
  EXPECT_GT(way.compilation.plan->steps.size(), 0u);
  for (const int64_t ns : {times.infer_ns, times.verify_ns, times.transform_ns, times.compile_ns, times.prepare_ns}) EXPECT_GT(ns, 0);
}

TEST(Stages, StopAtTheFirstThatFindsSomething) {
  Way way;
  const Net net = way.resolved(net_with_two_mistakes());
  const Status status = run_stages(way.compilation, &net);
  EXPECT_EQ(status.code(), Code::shape_mismatch) << status.text();
  EXPECT_EQ(way.compilation.findings.count(), 1u);
}

TEST(Stages, CollectWhatAllOfThemFind) {
  Way way;
  way.compilation.on_findings = OnFindings::collect;
  const Net net = way.resolved(net_with_two_mistakes());
  EXPECT_TRUE(run_stages(way.compilation, &net).ok());
  std::vector<Code> codes;
  for (const Diagnostic& d : way.compilation.findings.all()) codes.push_back(d.code);
  EXPECT_EQ(codes, (std::vector<Code>{Code::shape_mismatch, Code::no_such_device}));
  EXPECT_EQ(way.compilation.plan, nullptr);
}

}  // namespace
}  // namespace heddle
