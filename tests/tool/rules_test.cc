// Rewrite rules of plugins in the tool: broken ones are reported when they are loaded, wrong ones by plugin check.
#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

TEST(ToolRules, ABrokenRuleRefusesItsPluginByName) {
  const NetFolder net(two_outputs());
  const std::map<std::string, std::string> rules = {{"no_pattern", "nothing-swish"},
                                                    {"no_net", "swish-nothing"},
                                                    {"unknown", "swish-swosh"},
                                                    {"fewer_inputs", "sum-absolute"},
                                                    {"two_outputs", "two-outputs"}};
  for (const auto& [plugin, rule] : rules) {
    const std::string file = test_plugin("rules_" + plugin);
    for (const Words& command : {Words{"plugin", "list", "--plugin", file}, Words{"plugin", "check", file},
                                 Words{"run", net.net(), "--random", "1", "--plugin", file}}) {
      const Outcome outcome = heddle(command);
      EXPECT_EQ(outcome.status, 3) << plugin << ": " << outcome.err;
      EXPECT_NE(outcome.err.find("in rewrite rule \"rules_" + plugin + ": " + rule + "\""), std::string::npos) << outcome.err;
      EXPECT_NE(outcome.err.find(file), std::string::npos) << outcome.err;
    }
  }
  EXPECT_EQ(heddle({"run", net.net(), "--random", "1", "--plugin", test_plugin("rules_sound")}).status, 0);
}

// A rule whose inputs have no dims applies at any rank, and is tried at those of its examples.
TEST(ToolRules, ARuleWithoutDimsIsTriedOnItsExamples) {
  const Words arguments = {"plugin", "check", test_plugin("rules_any_rank")};
  const Json object = heddle_json(arguments);
  ASSERT_EQ(object["rules"].size(), 2u);
  EXPECT_EQ(object["rules"][0]["status"], "pass") << object["rules"][0];
  EXPECT_EQ(object["rules"][1]["status"], "not-run") << "it has no examples";
  Words strict = arguments;
  strict.push_back("--strict");
  EXPECT_EQ(heddle(strict).status, 1);
  const Json wrong = heddle_json({"plugin", "check", test_plugin("rules_other_axis")}, 1)["rules"][0];
  EXPECT_EQ(wrong["mistake"], "value") << wrong;
  EXPECT_NE(wrong["reason"].get<std::string>().find("(example: f32[2,3])"), std::string::npos) << "right at rank 1: " << wrong;
}

}  // namespace
}  // namespace heddle::tool_tests
