// --commit: when updates of variables are made, and the costs of either choice.
#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

// Gradients of layers are as large as their weights: made early, an update needs its gradient no longer than it takes.
TEST(ToolPlan, SaysWhatEitherCommitCosts) {
  const TemporaryFolder folder;
  const std::string net = (folder / "mlp.heddle").string();
  ASSERT_EQ(heddle({"model", "mlp", "--train", "-o", net}).status, 0);
  const auto plan = [&](const std::string& mode) {
    return heddle_json({"plan", net, "--net", "train", "--symbol", "N=1", "--commit", mode});
  };
  const Json late = plan("late"), early = plan("early");
  EXPECT_EQ(late["commit"]["mode"], "late");
  EXPECT_EQ(early["commit"]["mode"], "early");
  for (const char* mode : {"late", "early"}) EXPECT_EQ(late["commit"][mode], early["commit"][mode]) << mode;
  EXPECT_EQ(late["commit"]["late"]["cpu"], late["devices"]["cpu"]["peak_bytes"]);
  EXPECT_EQ(early["commit"]["early"]["cpu"], early["devices"]["cpu"]["peak_bytes"]);
  EXPECT_LT(early["commit"]["early"]["cpu"].get<int64_t>(), late["commit"]["late"]["cpu"].get<int64_t>());
  const auto tails = [](const Json& of) {
    return std::count_if(of["steps"].begin(), of["steps"].end(), [](const Json& step) { return step["tail"] == true; });
  };
  EXPECT_GT(tails(late), 0);
  EXPECT_EQ(tails(early), 0);
  EXPECT_EQ(heddle_json({"plan", net, "--net", "train", "--symbol", "N=1", "--dot"})["commit"], late["commit"]);
  // A net without updates has no choice to compare.
  EXPECT_TRUE(heddle_json({"plan", net, "--net", "test", "--symbol", "N=1"})["commit"].is_null());
  EXPECT_EQ(codes(heddle_json({"plan", net, "--net", "train", "--commit", "soon"}, 2)), Words{"unknown-option"});
}

// Either choice makes the same updates.
TEST(ToolTrain, LearnsTheSameWithEitherCommit) {
  const TemporaryFolder folder;
  const std::string net = (folder / "mlp.heddle").string();
  ASSERT_EQ(heddle({"model", "mlp", "--train", "-o", net}).status, 0);
  const auto losses = [&](const std::string& mode) {
    const Json trained =
        heddle_json({"train", net, "--steps", "5", "--batch", "8", "--data", "synthetic", "--samples", "8", "--commit", mode});
    return trained["train"]["last_loss"].get<double>();
  };
  EXPECT_EQ(losses("late"), losses("early"));
}

}  // namespace
}  // namespace heddle::tool_tests
