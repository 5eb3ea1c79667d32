// heddle_operator::cost: the costs that operators report, in the plan; and the effect of a function that lies, fails or throws.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <utility>

#include "plugins.h"
#include "session/session_impl.h"
#include "session_plan.h"
#include "small_nets.h"

namespace heddle {
namespace {

// Returns the steps of a net's plan with the CPU plugin, by name.
std::map<std::string, const PlanStep*> steps_of(const Session& session) {
  std::map<std::string, const PlanStep*> steps;
  const auto plan = last_plan(session);
  for (const PlanStep& step : plan->steps) steps[step.name] = &step;
  return steps;
}

Result<std::shared_ptr<const Plan>> plan_with(const std::string& type) {
  RuntimeOptions options;
  options.default_plugins = false;
  options.plugins = {test_plugin("hostile_kernels")};
  HEDDLE_TRY(const Runtime runtime, Runtime::create(options));
  NetBuilder b("net");
  b.output(b.add1(type, "culprit", {b.input("x", DType::f32, Shape{4})}, {}, "hostile"));
  HEDDLE_TRY(Session session, runtime.open(b.finish(), {}));
  float x[4] = {};
  const TensorView view = {DType::f32, {4}, x};
  HEDDLE_TRY(const auto entry, Internals::of(session).find_plan(&view, 1));
  return entry->plan;
}

TEST(Cost, ConvolutionsAndProductsAreCounted) {
  const Runtime runtime = testing_nets::runtime();
  Session session = testing_nets::open(runtime, testing_nets::convolution_net(2));
  ASSERT_TRUE(session.prepare().ok());
  const auto steps = steps_of(session);
  // Each of the outputs takes 8 * 3 * 3 multiplications and additions, the bias (left of bn1 by folding) and relu1.
  const double outputs = 2 * 8 * 14 * 14;
  ASSERT_TRUE(steps.count("conv1") && steps.count("conv2") && steps.count("fc"));
  ASSERT_EQ(steps.at("conv1")->fused->size(), 1u);
  EXPECT_EQ(steps.at("conv1")->fused->front().name, "relu1");
  EXPECT_EQ(steps.at("conv1")->flops, outputs * (2 * 72 + 1 + 1));
  EXPECT_EQ(steps.at("conv2")->fused->size(), 2u);
  EXPECT_EQ(steps.at("conv2")->flops, outputs * (2 * 72 + 1 + 2));
  EXPECT_EQ(steps.at("pool")->flops, outputs);
  EXPECT_EQ(steps.at("fc")->flops, 2 * 5 * (2 * 8 + 1));
  EXPECT_EQ(steps.at("fc")->bytes, 4 * (2 * 8 + 8 * 5 + 5 + 2 * 5));
  // The residual operand of conv2 is read too.
  EXPECT_EQ(steps.at("conv2")->bytes, static_cast<int64_t>(4 * (3 * outputs + 8 * 72 + 8)));
}

TEST(Cost, BatchesOfMatricesAndExpressionsAreCounted) {
  const Runtime runtime = testing_nets::runtime();
  NetBuilder b("net");
  const ValueId a = b.input("a", DType::f32, Shape{3, 1, 4, 5}), x = b.input("x", DType::f32, Shape{2, 5, 6});
  const ValueId y = b.add1("MatMul", "product", {a, x});
  b.output(y);
  b.output(b.add1("Exp", "exponential", {b.input("p", DType::f32, Shape{7})}));
  b.output(b.add1("Transpose", "moved", {b.input("q", DType::f32, Shape{7, 2})}));
  Session session = testing_nets::open(runtime, b.finish());
  ASSERT_TRUE(session.prepare().ok());
  const auto steps = steps_of(session);
  EXPECT_EQ(steps.at("product")->flops, 2.0 * (3 * 2 * 4 * 6) * 5);
  EXPECT_EQ(steps.at("exponential")->flops, 7);
  EXPECT_EQ(steps.at("moved")->flops, std::nullopt) << "says nothing";
  EXPECT_EQ(steps.at("moved")->bytes, 2 * 14 * 4);
}

TEST(Cost, OfAnOperatorStandsInForTheKernelsThatDeclareNone) {
  const auto plan = plan_with("CostLies");
  ASSERT_TRUE(plan.ok()) << plan.status().text();
  EXPECT_EQ((*plan)->steps[0].flops, 1e12);
  EXPECT_EQ((*plan)->steps[0].bytes, 2 * 4 * 4);
  EXPECT_GT((*plan)->steps[0].cost_ns, 1e10);
  EXPECT_EQ((*plan)->graph.cost_ns[0], static_cast<float>((*plan)->steps[0].cost_ns));
  const auto silent = plan_with("Slow");
  ASSERT_TRUE(silent.ok()) << silent.status().text();
  EXPECT_EQ((*silent)->steps[0].flops, std::nullopt);
  EXPECT_EQ((*silent)->steps[0].cost_ns, 0) << "unknown";
}

TEST(Cost, FunctionsThatFailAreErrorsOfTheirOperator) {
  const std::pair<const char*, const char*> cases[] = {{"CostNegative", "its cost is -1 flops and 32 bytes"},
                                                       {"CostInfinite", "its cost is 0 flops and inf bytes"},
                                                       {"CostThrows", "cannot count"},
                                                       {"CostReadsAbsent", "cost reads input 7, which is absent"},
                                                       {"RawCostThrows", "cost threw an exception across the plugin boundary"}};
  for (const auto& [type, text] : cases) {
    const auto plan = plan_with(type);
    ASSERT_FALSE(plan.ok()) << type;
    EXPECT_EQ(plan.status().code(), Code::kernel_failed) << plan.status().text();
    EXPECT_NE(plan.status().text().find(text), std::string::npos) << plan.status().text();
    EXPECT_NE(plan.status().text().find("\"culprit\" (hostile::" + std::string(type) + ")"), std::string::npos) << plan.status().text();
  }
}

}  // namespace
}  // namespace heddle
