// The training flags of heddle train and of heddle model --train: each changes what it describes.
#include <array>
#include <filesystem>
#include <regex>
#include <tuple>

#include "tool/train/learning_samples.h"

namespace heddle::tool_tests {
namespace {

// Returns the numbers of one name in the log of a training, step by step.
std::vector<double> logged(const Samples& samples, const char* name, Words more) {
  const std::string log = samples.file("log.jsonl");
  more.insert(more.end(), {"--log", log});
  heddle_json(samples.train(more));
  std::vector<double> numbers;
  for (const Json& line : lines_of(log)) numbers.push_back(line[name].get<double>());
  EXPECT_GE(numbers.size(), 2u);
  return numbers;
}

TEST(ToolTrainingFlags, TheRateFollowsScheduleAndWarmUp) {
  const Samples samples;
  const std::vector<double> rates = logged(samples, "learning_rate", {"--schedule", "step(5, 0.1)", "--warm-up", "4"});
  ASSERT_EQ(rates.size(), 20u);
  EXPECT_NEAR(rates[0], 0.125, 1e-7);
  EXPECT_NEAR(rates[3], 0.5, 1e-7);
  EXPECT_NEAR(rates[4], 0.5, 1e-7);
  EXPECT_NEAR(rates[5], 0.05, 1e-7);
  EXPECT_NEAR(rates[10], 0.005, 1e-7);
}

// Clipping all four gradients by their norm shortens the step more than clipping each of them by value.
TEST(ToolTrainingFlags, GradientsAreClippedByValueAndByNorm) {
  const Samples samples;
  const auto second = [&](const Words& more) { return logged(samples, "loss", more)[1]; };
  const double first = logged(samples, "loss", {})[0], free = second({}), by_value = second({"--clip-value", "0.05"}),
               by_norm = second({"--clip-norm", "0.05"});
  EXPECT_LT(free, by_value);
  EXPECT_LT(by_value, by_norm);
  EXPECT_LT(by_norm, first);
}

// Nothing else changes: the losses are those of a training without it.
TEST(ToolTrainingFlags, TheNormOfGradientsIsLoggedWithoutClipping) {
  const Samples samples;
  const auto norms = [&](const Words& more) { return logged(samples, "gradient_norm", more); };
  const std::vector<double> shown = norms({"--gradient-norm"}), wide = norms({"--clip-norm", "1000"});
  ASSERT_EQ(shown.size(), 20u);
  EXPECT_EQ(shown, wide) << "a norm that is never reached clips nothing";
  EXPECT_GT(shown.front(), shown.back());
  EXPECT_EQ(logged(samples, "loss", {"--gradient-norm"}), logged(samples, "loss", {}));
  const std::vector<double> first = norms({"--gradient-norm", "--clip-value", "0.05"});
  EXPECT_EQ(first[0], shown[0]) << "before gradients are clipped";
  EXPECT_EQ(logged(samples, "loss", {"--gradient-norm", "--clip-norm", "0.05"}), logged(samples, "loss", {"--clip-norm", "0.05"}));
  // A training form has it too.
  const std::string form = samples.file("form.heddle"), log = samples.file("form.jsonl");
  heddle_json({"model", "lenet", "--train", "--gradient-norm", "-o", form});
  heddle_json({"train", form, "--steps", "2", "--batch", "2", "--data", "synthetic", "--samples", "4", "--log", log, "--no-output"});
  EXPECT_GT(lines_of(log)[1]["gradient_norm"].get<double>(), 0);
}

// The loss is a number, and the gradient of w at 0 infinite; in each dtype that gradients may have.
TEST(ToolTrainingFlags, AnInfiniteNormOfGradientsEndsIt) {
  constexpr const char* text = R"json({"heddle": 1, "name": "train", "inputs": ["x"], "outputs": ["loss"],
   "variables": [{"name": "w", "dtype": "DTYPE", "dims": [2], "trainable": true, "data": [0, 4]}],
   "values": [{"name": "x", "kind": "input", "dtype": "DTYPE", "dims": ["N"]},
    {"name": "w", "kind": "variable", "variable": "w", "version": 0}],
   "nodes": [{"name": "root", "type": "Sqrt", "inputs": ["w"], "outputs": ["root"]},
    {"name": "of_w", "type": "ReduceSum", "inputs": ["root"], "outputs": ["of_w"], "attributes": {"keepdims": {"int": 0}}},
    {"name": "of_x", "type": "ReduceSum", "inputs": ["x"], "outputs": ["of_x"], "attributes": {"keepdims": {"int": 0}}},
    {"name": "loss", "type": "Add", "inputs": ["of_w", "of_x"], "outputs": ["loss"]}]})json";
  for (const auto& [dtype, type, width] : {std::tuple("f32", "<f4", 4), std::tuple("f64", "<f8", 8), std::tuple("f16", "<f2", 2)}) {
    SCOPED_TRACE(dtype);
    const TemporaryFolder folder;
    const std::string net = (folder / "net.json").string(), trained = (folder / "trained.heddle").string();
    write_text(net, std::regex_replace(text, std::regex("DTYPE"), dtype));
    const std::array<double, 4> zeros = {};
    write_text(folder / "x.npy", npy_of(type, "4,", zeros.data(), static_cast<size_t>(4 * width)));
    const Json object = heddle_json({"train", net, "--steps", "2", "--batch", "1", "--optimizer", "sgd", "--clip-norm", "1", "--data",
                                     "x=" + (folder / "x.npy").string(), "-o", trained},
                                    1);
    EXPECT_EQ(codes(object), Words{"numerics"});
    EXPECT_NE(object.dump().find("the norm of the gradients of step 1 is inf"), std::string::npos) << object.dump();
    EXPECT_FALSE(std::filesystem::exists(trained));
  }
}

TEST(ToolTrainingFlags, SettingsAreTheOptimizers) {
  const Samples samples;
  const auto losses = [&](const Words& more) { return logged(samples, "loss", more); };
  const std::vector<double> plain = losses({"--optimizer", "sgd"});
  EXPECT_EQ(losses({"--optimizer", "momentum", "--set", "momentum=0"}), plain);
  EXPECT_NE(losses({"--optimizer", "momentum", "--set", "momentum=0.5"}), plain);
  EXPECT_NE(losses({"--optimizer", "sgd", "--set", "weight_decay=0.5"}), plain);
}

constexpr const char* table_text = R"json({"heddle": 1, "name": "train", "inputs": ["x", "labels"], "outputs": ["loss"],
 "variables": [{"name": "table", "dtype": "f32", "dims": [4, 2], "trainable": true, "initializer": "normal(0, 0.1)"}],
 "values": [{"name": "x", "kind": "input", "dtype": "i64", "dims": ["N"]}, {"name": "labels", "kind": "input", "dtype": "i64", "dims": ["N"]},
  {"name": "table", "kind": "variable", "variable": "table", "version": 0}],
 "nodes": [{"name": "rows", "type": "Gather", "inputs": ["table", "x"], "outputs": ["rows"]},
  {"name": "loss", "type": "SoftmaxCrossEntropyLoss", "inputs": ["rows", "labels"], "outputs": ["loss"]}]})json";

TEST(ToolTrainingFlags, ATableMayHaveADenseGradient) {
  const TemporaryFolder folder;
  const std::string net = (folder / "net.json").string(), trained = (folder / "trained.json").string();
  write_text(net, table_text);
  for (const bool dense : {false, true}) {
    Words words = {"train", net, "--steps", "2", "--batch", "2", "--data", "synthetic", "--samples", "4", "-o", trained};
    if (dense) words.insert(words.end(), {"--dense", "table"});
    ASSERT_EQ(heddle(words).status, 0);
    EXPECT_EQ(read_text(trained).find("\"MomentumUpdateRows\"") == std::string::npos, dense);
  }
}

// heddle model --train has the same flags: each changes the net that it writes.
TEST(ToolTrainingFlags, AreThoseOfModels) {
  const TemporaryFolder folder;
  const auto net_by = [&](const Words& more) {
    const std::string file = (folder / "net.json").string();
    Words words = {"model", "mlp", "--train", "-o", file};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome made = heddle(words);
    EXPECT_EQ(made.status, 0) << made.err;
    return read_text(file);
  };
  const std::string plain = net_by({});
  const std::pair<Words, const char*> flags[] = {{{"--optimizer", "adagrad"}, "\"AdagradUpdate\""},
                                                 {{"--set", "momentum=0.625"}, "0.625"},
                                                 {{"--learning-rate", "0.375"}, "0.375"},
                                                 {{"--schedule", "exponential(0.8125)"}, "0.8125"},
                                                 {{"--warm-up", "1739261"}, "1739261"},
                                                 {{"--clip-value", "0.4375"}, "0.4375"},
                                                 {{"--clip-norm", "0.6875"}, "0.6875"},
                                                 {{"--average", "0.9375"}, "0.9375"}};
  for (const auto& [flag, said] : flags) {
    EXPECT_EQ(plain.find(said), std::string::npos) << said;
    EXPECT_NE(net_by(flag).find(said), std::string::npos) << flag[0];
  }
}

TEST(ToolTrainingFlags, OfAModelsTablesOneMayHaveADenseGradient) {
  const TemporaryFolder folder;
  const std::string net = (folder / "net.heddle").string();
  heddle_json({"model", "dlrm", "--train", "--dense", "emb_l.0.weight", "-o", net});
  const Json shown = heddle_json({"inspect", net, "--net", "train", "--stats"});
  EXPECT_EQ(shown["stats"]["operators_by_type"]["heddle::MomentumUpdateRows"], 25);
}

}  // namespace
}  // namespace heddle::tool_tests
