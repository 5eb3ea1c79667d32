// Rewrite rules of plugins (tests/plugins/rules.cc): where they apply, where they must not, and what a bad one is told.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "infer/infer.h"
#include "resolve/resolve.h"
#include "resolve/rule_reader.h"
#include "small_nets.h"
#include "transform/transform.h"

namespace heddle {
namespace {

using namespace testing_nets;

constexpr const char* cpu_file = HEDDLE_BINARY_DIR "/lib/cpu.so";

std::string rules_file(const std::string& rules) {
  return HEDDLE_BINARY_DIR "/lib/test/rules_" + rules + ".so";
}

Runtime runtime_with(const char* rules) {
  RuntimeOptions options;
  options.plugins = {cpu_file, rules_file(rules)};
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
  auto result = apply_rules(std::move(*typed));
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

TEST(Rewrite, ARuleThatChangesATypeIsNamed) {
  const Runtime r = runtime_with("wrong_type");
  Session session = open(r, swish_net());
  const auto context = session.prepare({});
  ASSERT_FALSE(context.ok());
  const std::string text = context.status().text();
  EXPECT_NE(text.find("the replacement makes i64[2] of what was f32[2, 3]"), std::string::npos) << text;
  EXPECT_NE(text.find("in rewrite rule \"rules_wrong_type: swish-shape\""), std::string::npos) << text;
}

// A rule is read when its plugin is loaded: one that can not be is refused with its plugin, by name and file.
void expect_refused(const char* rules, const char* rule, const char* text) {
  const std::string file = rules_file(rules);
  Registry registry(read_rewrite_rule);
  ASSERT_TRUE(registry.load(cpu_file).ok());
  const auto before = registry.snapshot();
  const Status status = registry.load(file);
  ASSERT_FALSE(status.ok());
  for (const std::string& part : {std::string(text), "in rewrite rule \"rules_" + std::string(rules) + ": " + rule, file})
    EXPECT_NE(status.text().find(part), std::string::npos) << part << " is not in: " << status.text();
  EXPECT_EQ(registry.snapshot(), before);
}

TEST(Rewrite, ARuleWithAnUnknownOperatorRefusesItsPlugin) {
  expect_refused("unknown", "swish-swosh", "Swosh");
}

TEST(Rewrite, ARuleThatIsNoNetRefusesItsPlugin) {
  expect_refused("no_net", "swish-nothing", "this is not valid JSON");
}

TEST(Rewrite, ARuleWithOtherPortsRefusesItsPlugin) {
  expect_refused("other_ports", "swish-ports", "pattern and replacement have different inputs or outputs");
}

TEST(Rewrite, RulesAreReadOnceAndNotInEachCompile) {
  const Runtime r = runtime_with("sound");
  const auto registry = Internals::of(r).registry.snapshot();
  ASSERT_EQ(registry->rewrite_rules().size(), 1u);
  const RewriteRule& rule = *registry->rewrite_rules()[0];
  EXPECT_EQ(rule.name, "rules_sound: swish");
  for (const Net* net : {&rule.pattern, &rule.replacement})
    for (const Node& node : net->nodes) EXPECT_NE(node.schema, nullptr) << node.name;
  EXPECT_TRUE(rewritten(swish_net()));
}

// The cpu plugin comes last, as the default plugins do: the rule speaks of its operators.
TEST(Rewrite, OperatorsOfPluginsThatAreLoadedTogetherAreKnown) {
  const std::filesystem::path together[] = {rules_file("sound"), cpu_file};
  Registry registry(read_rewrite_rule);
  EXPECT_FALSE(registry.load(together[0]).ok());
  const Status status = registry.load(together);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(registry.snapshot()->rewrite_rules().size(), 1u);
}

TEST(Rewrite, ARuleKeepsThePluginWhoseOperatorsItNeeds) {
  Runtime r = runtime_with("sound");
  const Status status = r.unload_plugin("cpu");
  EXPECT_EQ(status.code(), Code::busy) << status.text();
  EXPECT_NE(status.text().find("rules_sound: swish"), std::string::npos) << status.text();
  EXPECT_TRUE(r.unload_plugin("rules_sound").ok());
  EXPECT_TRUE(Internals::of(r).registry.snapshot()->rewrite_rules().empty());
  EXPECT_TRUE(r.unload_plugin("cpu").ok());
}

// A rule's nets do not hold the registry that holds them.
TEST(Rewrite, ASnapshotWithRulesGoesWithItsLastUser) {
  std::weak_ptr<const RegistrySnapshot> snapshot;
  {
    const Runtime r = runtime_with("sound");
    snapshot = Internals::of(r).registry.snapshot();
    EXPECT_FALSE(snapshot.expired());
  }
  EXPECT_TRUE(snapshot.expired());
}

}  // namespace
}  // namespace heddle
