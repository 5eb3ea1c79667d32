// heddle predictor: the part of a trained net that predicts.
#include <cstring>

#include "tool/train/learning_samples.h"

namespace heddle::tool_tests {
namespace {

TEST(ToolPredictor, RunsWhatWasLearned) {
  const Samples samples;
  const std::string trained = samples.file("trained.heddle"), predictor = samples.file("predictor.heddle");
  ASSERT_EQ(heddle(samples.train({"-o", trained})).status, 0);
  const Json made = heddle_json({"predictor", trained, "--net", "train", "--input", "x", "--output", "logits", "-o", predictor});
  EXPECT_EQ(made["net"]["operators"], 1);
  EXPECT_EQ(made["net"]["inputs"], 1);
  const Json run = heddle_json({"run", predictor, "--input", "x=" + samples.file("x.npy")});
  EXPECT_EQ(run["outputs"]["logits"]["shape"], (Json{8, 2}));
  EXPECT_EQ(codes(heddle_json({"predictor", trained, "--input", "x", "--output", "loss", "-o", predictor}, 2)), Words{"missing-input"});
  EXPECT_EQ(codes(heddle_json({"predictor", trained, "--output", "loss", "-o", trained}, 2)), Words{"invalid-argument"});
}

TEST(ToolPredictor, RenamesAndPlaces) {
  const Samples samples;
  const std::string predictor = samples.file("predictor.json");
  ASSERT_EQ(
      heddle({"predictor", samples.net, "--output", "logits", "--rename", "logits=scores", "--device", "sim", "-o", predictor}).status, 0);
  const Json net = Json::parse(read_text(predictor));
  EXPECT_EQ(net["outputs"], Json{"scores"});
  EXPECT_EQ(net["nodes"][0]["device"], "sim:0");
  EXPECT_EQ(codes(heddle_json({"predictor", samples.net, "--output", "logits", "--rename", "loss=error", "-o", predictor}, 2)),
            Words{"unknown-name"});
}

// After one step the average has moved a quarter of the way that w moved, and so have the logits.
TEST(ToolPredictor, TakesAveragesInThePlaceOfTheWeights) {
  const Samples samples;
  const std::string trained = samples.file("trained.heddle"), predictor = samples.file("predictor.heddle");
  ASSERT_EQ(heddle(samples.train({"--steps", "1", "--average", "0.75", "-o", trained})).status, 0);
  const auto logits = [&](const std::string& file, const Words& more) {
    Words words = {"predictor", file, "--input", "x", "--output", "logits", "-o", predictor};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome made = heddle(words);
    EXPECT_EQ(made.status, 0) << made.err;
    EXPECT_EQ(made.out.find("1 of 1 variables are averages") != std::string::npos, words.back() == "--average") << made.out;
    const std::string array = samples.file("logits.npy");
    EXPECT_EQ(heddle({"run", predictor, "--input", "x=" + samples.file("x.npy"), "--output", "logits=" + array}).status, 0);
    const std::string bytes = read_text(array);
    std::vector<float> values(16);  // after the header
    EXPECT_GT(bytes.size(), 64u);
    std::memcpy(values.data(), bytes.data() + bytes.size() - 64, 64);
    return values;
  };
  const std::vector<float> before = logits(samples.net, {}), after = logits(trained, {});
  // This works for another net of the file, too: the averages are in the one that is trained.
  for (const char* net : {"train", "test"}) {
    const std::vector<float> average = logits(trained, {"--net", net, "--average"});
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_NE(after[i], before[i]);
      EXPECT_NEAR(average[i], 0.75F * before[i] + 0.25F * after[i], 1e-6F) << net;
    }
  }
  ASSERT_EQ(heddle(samples.train({"--steps", "1", "-o", trained})).status, 0);
  EXPECT_EQ(codes(heddle_json({"predictor", trained, "--output", "logits", "--average", "-o", predictor}, 2)), Words{"invalid-argument"});
}

}  // namespace
}  // namespace heddle::tool_tests
