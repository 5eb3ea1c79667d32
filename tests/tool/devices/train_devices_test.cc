// heddle train and model --train on several devices.
#include "tool/tool_runner.h"

namespace heddle::tool_tests {
namespace {

void run_tool(const Words& words) {
  const Outcome outcome = heddle(words);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

// The numbers of that name in a training's log.
std::vector<double> logged(const std::string& log, const char* name) {
  std::vector<double> all;
  std::istringstream lines(read_text(log));
  for (std::string line; std::getline(lines, line);)
    if (const Json one = Json::parse(line); one.contains(name)) all.push_back(one[name].get<double>());
  return all;
}

std::vector<double> losses(const std::string& log) {
  return logged(log, "loss");
}

void expect_same(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance * std::abs(b[i])) << "step " << i + 1;
}

// Recipes learn the same on one and on two devices, those with batch statistics if these are combined; losses fall.
TEST(ToolTrainDevices, LearnAsOneDoes) {
  const TemporaryFolder folder;
  const auto file = [&](const std::string& name) { return (folder / name).string(); };
  struct Recipe {
    std::string name, batch, steps, samples = "32", rate = "0.01";
    Words options = {};
  };
  const std::vector<Recipe> recipes = {{"lenet", "8", "6"},
                                       {"lstm_tagger", "4", "3"},
                                       {"dlrm", "8", "3", "32", "0.01", {"--single", "emb_l.*"}},
                                       {"resnet18", "4", "2", "4", "0.01", {"--combine-statistics"}},
                                       {"encoder", "2", "2", "2", "0.001"}};
  for (const Recipe& recipe : recipes) {
    SCOPED_TRACE(recipe.name);
#ifdef __SANITIZE_THREAD__
    if (recipe.name == "encoder") continue;  // on two devices it takes 21 GB with the sanitizer's shadow
#endif
    const std::string net = file(recipe.name + ".heddle");
    run_tool({"model", recipe.name, "--loss", "-o", net});
    const auto train = [&](const std::string& log, const Words& more) {
      Words words = {"train",        net,     "--steps", recipe.steps,      "--batch",   recipe.batch,  "--data", "synthetic", "--samples",
                     recipe.samples, "--log", file(log), "--learning-rate", recipe.rate, "--no-output", "--quiet"};
      words.insert(words.end(), more.begin(), more.end());
      run_tool(words);
      return losses(file(log));
    };
    Words on_two = {"--devices", "sim:0,sim:1"};
    on_two.insert(on_two.end(), recipe.options.begin(), recipe.options.end());
    const std::vector<double> alone = train("alone.jsonl", {}), together = train("together.jsonl", on_two);
    expect_same(together, alone, 1e-4);
    if (recipe.name == "dlrm" || recipe.name == "lenet") {  // with and without variables that have no replicas
      on_two.emplace_back("--gradient-norm");
      train("alone.jsonl", {"--gradient-norm"});
      train("together.jsonl", on_two);
      expect_same(logged(file("together.jsonl"), "gradient_norm"), logged(file("alone.jsonl"), "gradient_norm"), 1e-4);
    }
    EXPECT_LT(alone.back(), alone.front());
  }
}

// A net that was made for devices learns on them, and what it learned goes on.
TEST(ToolTrainDevices, NetsThatAreMadeForThemGoOn) {
  const TemporaryFolder folder;
  const auto file = [&](const std::string& name) { return (folder / name).string(); };
  run_tool({"model", "digits", "--train", "--devices", "sim:0,sim:1", "-o", file("digits.heddle")});
  const auto train = [&](const std::string& from, const std::string& to) {
    run_tool({"train", file(from), "--steps", "3", "--batch", "8", "--data", "synthetic", "--samples", "32", "-o", file(to), "--quiet"});
  };
  train("digits.heddle", "once.heddle");
  train("once.heddle", "twice.heddle");
  const Json plan = heddle_json({"plan", file("twice.heddle"), "--net", "train", "--symbol", "N=8", "--copies", "auto"});
  ASSERT_EQ(plan["communicators"].size(), 1u);
  EXPECT_EQ(plan["communicators"][0]["devices"], Json::parse(R"(["sim:0", "sim:1"])"));
  int64_t bytes = 0;
  for (const Json& collective : plan["collectives"])
    if (collective["device"] == "sim:0" && collective["signature"].get<std::string>().starts_with("heddle::AllReduce"))
      bytes += collective["bytes"].get<int64_t>();
  EXPECT_EQ(bytes, 90090 * 4);
}

TEST(ToolTrainDevices, OptionsAreThoseOfReplicas) {
  const TemporaryFolder folder;
  const std::string net = (folder / "lenet.heddle").string();
  run_tool({"model", "lenet", "--loss", "-o", net});
  const auto refused = [&](const Words& more, const std::string& text) {
    Words words = {"train", net, "--steps", "1", "--data", "synthetic", "--no-output"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = heddle(words);
    EXPECT_NE(outcome.status, 0);
    EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
  };
  refused({"--whole", "image"}, "--whole: there are no replicas");
  refused({"--single", "conv1.weight"}, "--single: there are no replicas");
  refused({"--combine-statistics"}, "--combine-statistics: there are no replicas");
  refused({"--devices", "sim:0,sim:1", "--whole", "picture"}, "the net has no input \"picture\"");
  refused({"--devices", "sim:0,sim:0"}, "device \"sim:0\" is to have two replicas");
}

// A predictor that is made of the first replica gets the whole batch, and needs none of the devices.
TEST(ToolTrainDevices, PredictorsAreOfTheWholeBatch) {
  const TemporaryFolder folder;
  const auto file = [&](const std::string& name) { return (folder / name).string(); };
  for (const char* const devices : {"", "sim:0,sim:1"}) {
    Words words = {"model", "mlp", "--train", "-o", file("mlp.heddle")};
    if (*devices) words.insert(words.end(), {"--devices", devices});
    run_tool(words);
    run_tool({"predictor", file("mlp.heddle"), "--output", "logits", "-o", file("p.heddle")});
    const Json run = heddle_json({"run", file("p.heddle"), "--symbol", "N=5", "--random", "1"});
    EXPECT_EQ(run["outputs"]["logits"]["shape"].dump(), "[5,10]") << devices << run["outputs"].dump();
    const Json plan = heddle_json({"plan", file("p.heddle"), "--symbol", "N=5"});
    for (const auto& step : plan["steps"]) EXPECT_EQ(step["device"], "cpu:0");
  }
}

}  // namespace
}  // namespace heddle::tool_tests
