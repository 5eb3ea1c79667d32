// Rewrite rules of plugins (tests/plugins/rules/rules.cc) from load to run, and the errors of bad ones; where they apply:
// apply_rules_test.cc.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "resolve/rule_reader.h"
#include "small_nets.h"

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

// y = x * sigmoid(x), z = |y|
Net swish_net() {
  NetBuilder b("swish");
  const ValueId x = b.input("x", DType::f32, Shape{2, 3});
  b.output(b.add1("Abs", "z", {b.add1("Mul", "y", {x, b.add1("Sigmoid", "s", {x})})}));
  return b.finish();
}

// |swish(x)| for x = -2 .. 3, by those rules.
std::vector<float> result_with(const char* rules, bool rewrite_rules) {
  const std::vector<float> x = {-2, -1, 0, 1, 2, 3};
  SessionOptions options;
  options.rewrite_rules = rewrite_rules;
  auto result = open(runtime_with(rules), swish_net(), options).run({{DType::f32, Shape{2, 3}, const_cast<float*>(x.data())}});
  EXPECT_TRUE(result.ok()) << result.status().text();
  const auto* data = static_cast<const float*>((*result)[0].data());
  return {data, data + x.size()};
}

TEST(Rewrite, GivesTheSameResult) {
  const std::vector<float> with = result_with("sound", true), without = result_with("sound", false);
  for (size_t i = 0; i < with.size(); ++i) EXPECT_NEAR(with[i], without[i], 1e-5f);
}

// A wrong rule shows it: that rule makes a Relu of the swish.
TEST(Rewrite, ASessionThatWantsNoRulesGetsNone) {
  EXPECT_EQ(result_with("wrong_result", true)[0], 0);
  EXPECT_EQ(result_with("wrong_result", false), result_with("sound", false));
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

// A rule is read when its plugin is loaded: one that can not be read is refused with its plugin, by name and file.
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

TEST(Rewrite, ARuleWhosePatternIsNoNetRefusesItsPlugin) {
  expect_refused("no_pattern", "nothing-swish", "this is not valid JSON");
}

TEST(Rewrite, ARuleWithOtherPortsRefusesItsPlugin) {
  expect_refused("other_ports", "swish-ports", "the pattern has the inputs \"x\", the replacement \"a\"");
  expect_refused("fewer_inputs", "sum-absolute", "the pattern has the inputs \"x\", \"z\", the replacement \"x\"");
}

TEST(Rewrite, ARuleWithSeveralOutputsRefusesItsPlugin) {
  expect_refused("two_outputs", "two-outputs", "the pattern has 2 outputs (\"y\", \"z\"): a rule replaces what makes one value");
}

TEST(Rewrite, ARuleWithTooManyOrdersRefusesItsPlugin) {
  expect_refused("too_many", "many-sums", "the pattern has 13 operators whose inputs may stand in either order, more than 12: \"t1\", ");
}

// Open sessions continue, and sessions that are opened later do not use the plugin.
TEST(Rewrite, ARefusedPluginChangesNothingForOthers) {
  Runtime r = runtime_with("sound");
  Session before = open(r, swish_net());
  for (const char* rules : {"no_pattern", "no_net", "fewer_inputs", "unknown", "two_outputs"}) {
    const Status status = r.load_plugin(rules_file(rules));
    EXPECT_FALSE(status.ok()) << rules;
  }
  std::vector<float> x = {-2, -1, 0, 1, 2, 3};
  Session after = open(r, swish_net());
  for (Session* session : {&before, &after}) {
    const auto result = session->run({{DType::f32, Shape{2, 3}, x.data()}});
    ASSERT_TRUE(result.ok()) << result.status().text();
    const auto* data = static_cast<const float*>((*result)[0].data());
    EXPECT_EQ(std::vector<float>(data, data + x.size()), result_with("sound", true));
  }
  EXPECT_EQ(Internals::of(r).registry.snapshot()->plugins().size(), 2u);
}

TEST(Rewrite, RulesAreReadOnceAndNotInEachCompile) {
  const Runtime r = runtime_with("sound");
  const auto registry = Internals::of(r).registry.snapshot();
  ASSERT_EQ(registry->rewrite_rules().size(), 1u);
  const RewriteRule& rule = *registry->rewrite_rules()[0];
  EXPECT_EQ(rule.name, "rules_sound: swish");
  for (const Net* net : {&rule.pattern, &rule.replacement})
    for (const Node& node : net->nodes) EXPECT_NE(node.schema, nullptr) << node.name;
}

// The cpu plugin comes last, as the default plugins do: the rule names its operators.
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

// A rule's nets hold no reference to the registry that holds them.
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
