// The plugins and nets in docs/writing_an_operator.md and docs/operator_guide.md.
#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

const std::filesystem::path guide = HEDDLE_SOURCE_DIR "/tests/authors/guide";

TEST(ToolGuide, EveryPluginPassesTheSuiteInFull) {
  int plugins = 0;
  for (const auto& entry : std::filesystem::directory_iterator(guide)) {
    if (entry.path().extension() != ".cc") continue;
    ++plugins;
    const Json object = heddle_json({"plugin", "check", test_plugin("guide_" + entry.path().stem().string()), "--strict"});
    EXPECT_FALSE(object["operators"].empty()) << entry.path();
    for (const Json& one : object["operators"]) {
      EXPECT_EQ(one["status"], "pass") << one;
      EXPECT_TRUE(one["never_with"].empty()) << one;
    }
  }
  EXPECT_GE(plugins, 6);
}

// The errors in attributes that the guide describes.
TEST(ToolGuide, WrongAttributesAreRefused) {
  const std::string plugin = test_plugin("guide_attributes");
  const auto said = [&](const std::string& attributes, int status) {
    const Outcome outcome = heddle({"plugin", "run", "guide::Bucket", "--plugin", plugin, "--example", "f32[2] = 0 1; " + attributes});
    EXPECT_EQ(outcome.status, status) << attributes << ": " << outcome.err;
    return outcome.err;
  };
  said("bounds=[0.0,1.0]", 0);
  said("bounds=[0,1]", 0);  // integers where floats are expected
  struct Row {
    const char *attributes, *text;
    int status;
  };
  for (const Row& row :
       {Row{"bounds=[0.0,1.0], sides=\"left\"", "it has: bounds, side, first, labels", 3},
        Row{"bounds=[0.0,1.0], side=1", "attribute \"side\" is an integer, must be a string", 3},
        Row{"first=1", "attribute \"bounds\" is missing and has no default", 3}, Row{"bounds=[1.0,0.0]", "bounds do not ascend", 1},
        Row{"bounds=[0.0], side=\"up\"", "side is \"up\", expected \"left\" or \"right\"", 1},
        Row{"bounds=[0.0], labels=f32[2] = 1 2", "labels are to be i64, one more than the bounds", 1}}) {
    const std::string error = said(row.attributes, row.status);
    EXPECT_NE(error.find(row.text), std::string::npos) << row.attributes << ": " << error;
  }
}

TEST(ToolGuide, AKernelTakesTheLayoutOfItsNeighbours) {
  const Json steps =
      heddle_json({"plan", (guide / "between_convolutions.json").string(), "--plugin", test_plugin("guide_layouts")})["steps"];
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[1]["name"], "scaled");
  EXPECT_EQ(steps[1]["inputs"][0]["layout"], "channels-last");
  EXPECT_EQ(steps[1]["outputs"][0]["layout"], "channels-last");
}

// Numbers follow from seed and step: the same net gives them again, a later run and another seed give others.
TEST(ToolGuide, NoiseFollowsFromTheSeedAndTheStep) {
  const auto noise = [](const Words& more) {
    Words words = {"run", (guide / "noise.json").string(), "--plugin", test_plugin("guide_random"), "--quiet", "--print", "y"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = heddle(words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  };
  const std::string first = noise({}), second = noise({"--repeat", "2"});
  EXPECT_EQ(noise({"--seed", "0"}), first);
  EXPECT_NE(second, first);
  EXPECT_NE(noise({"--seed", "1"}), first);
  EXPECT_EQ(noise({"--repeat", "2", "--threads", "1"}), second);
  // Without a counter each run draws the same numbers.
  std::string text = read_text(guide / "noise.json");
  const std::string counter = ", \"step_counter\": \"step\"";
  ASSERT_NE(text.find(counter), std::string::npos);
  text.erase(text.find(counter), counter.size());
  const TemporaryFolder folder;
  write_text(folder / "still.json", text);
  for (const char* times : {"1", "2"})
    EXPECT_EQ(heddle({"run", (folder / "still.json").string(), "--plugin", test_plugin("guide_random"), "--quiet", "--print", "y",
                      "--repeat", times})
                  .out,
              first);
}

}  // namespace
}  // namespace heddle::tool_tests
