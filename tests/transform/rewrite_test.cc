// Rewrite rules of plugins (tests/plugins/rules.cc): where they apply, where they must not, and what a bad one is told.
#include <gtest/gtest.h>

#include <algorithm>

#include "infer/infer.h"
#include "resolve/resolve.h"
#include "small_nets.h"
#include "transform/transform.h"

namespace heddle {
namespace {

using namespace testing_nets;

Runtime runtime_with(const char* rules) {
  RuntimeOptions options;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", std::string(HEDDLE_BINARY_DIR "/lib/test/rules_") + rules + ".so"};
  options.default_plugins = false;
  options.threads = 1;
  auto made = Runtime::create(options);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return *made;
}

// y = x * sigmoid(x), z = |y|; `leak`: sigmoid(x) is an output too.
Net swish_net(DType dtype = DType::f32, bool leak = false, bool swapped = false) {
  NetBuilder b("swish");
  const ValueId x = b.input("x", dtype, Shape{2, 3});
  const ValueId s = b.add1("Sigmoid", "s", {x});
  const ValueId y = swapped ? b.add1("Mul", "y", {s, x}) : b.add1("Mul", "y", {x, s});
  b.output(b.add1("Abs", "z", {y}));
  if (leak) b.output(s);
  return b.finish();
}

bool rewritten(Net net) {
  const Runtime r = runtime_with("sound");
  const auto registry = Internals::of(r).registry.snapshot();
  auto resolved = resolve(std::move(net), registry);
  EXPECT_TRUE(resolved.ok()) << resolved.status().text();
  auto typed = infer(std::move(*resolved), registry, {});
  EXPECT_TRUE(typed.ok()) << typed.status().text();
  auto result = apply_rules(std::move(*typed), {});
  EXPECT_TRUE(result.ok()) << result.status().text();
  const auto& nodes = result->net.nodes;
  return std::any_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.type == "Swish"; });
}

TEST(Rewrite, AppliesWhereThePatternOccurs) {
  EXPECT_TRUE(rewritten(swish_net()));
}

TEST(Rewrite, NotWhereAnInnerValueIsReadOutside) {
  EXPECT_FALSE(rewritten(swish_net(DType::f32, true)));
}

TEST(Rewrite, NotForAnotherDtypeOrOrderOfInputs) {
  EXPECT_FALSE(rewritten(swish_net(DType::f64)));
  EXPECT_FALSE(rewritten(swish_net(DType::f32, false, true)));
}

TEST(Rewrite, GivesTheSameResult) {
  const std::vector<float> x = {-2, -1, 0, 1, 2, 3};
  std::vector<std::vector<float>> results;
  for (const bool apply : {true, false}) {
    const Runtime r = runtime_with("sound");
    Session session = open(r, swish_net());
    Internals::of(session).pipeline.transform.apply_rules = apply;
    auto result = session.run({{DType::f32, Shape{2, 3}, const_cast<float*>(x.data())}});
    ASSERT_TRUE(result.ok()) << result.status().text();
    const auto* data = static_cast<const float*>((*result)[0].data());
    results.emplace_back(data, data + 6);
  }
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(results[0][i], results[1][i], 1e-5f);
}

void expect_refused(const char* rules, const char* text) {
  const Runtime r = runtime_with(rules);
  Session session = open(r, swish_net());
  const auto context = session.prepare({});
  ASSERT_FALSE(context.ok());
  EXPECT_NE(context.status().text().find(text), std::string::npos) << context.status().text();
  EXPECT_NE(context.status().text().find("in rewrite rule \"rules_"), std::string::npos) << context.status().text();
}

TEST(Rewrite, ARuleThatChangesATypeIsNamed) {
  expect_refused("wrong_type", "the replacement makes i64[2] of what was f32[2, 3]");
}

TEST(Rewrite, ARuleWithAnUnknownOperatorIsNamed) {
  expect_refused("unknown", "Swosh");
}

}  // namespace
}  // namespace heddle
