// heddle model --train: the training forms of recipes.
#include "tool/train/learning_samples.h"

namespace heddle::tool_tests {
namespace {

// A step looks up rows of the tables: there are 26 updates by rows, and none of a whole table.
TEST(ToolModel, TheTrainingFormOfDlrmUpdatesRowsOfItsTables) {
  for (const char* optimizer : {"adagrad", "adam"}) {
    const TemporaryFolder folder;
    const std::string net = (folder / "net.heddle").string();
    heddle_json({"model", "dlrm", "--train", "--optimizer", optimizer, "--learning-rate", "0.01", "-o", net});
    const Json shown = heddle_json({"inspect", net, "--net", "train", "--stats"});
    const Json& types = shown["stats"]["operators_by_type"];
    EXPECT_EQ(types["heddle::EmbeddingBag"], 26);
    EXPECT_EQ(types[std::string(optimizer) == "adam" ? "heddle::AdamUpdateRows" : "heddle::AdagradUpdateRows"], 26) << types;
    const Json object =
        heddle_json({"train", net, "--steps", "12", "--batch", "8", "--data", "synthetic", "--samples", "16", "--seed", "1"});
    EXPECT_LT(object["train"]["last_loss"].get<double>(), object["train"]["first_loss"].get<double>()) << optimizer;
  }
}

TEST(ToolModel, ATrainingFormMayHaveABatch) {
  const TemporaryFolder folder;
  const std::string net = (folder / "net.json").string();
  ASSERT_EQ(heddle({"model", "mlp", "--train", "--batch", "5", "-o", net}).status, 0);
  const Words train = {"train", net, "--steps", "1", "--data", "synthetic", "--samples", "16"};
  EXPECT_EQ(heddle_json(train)["train"]["batch"], 5);
  Words other = train;
  other.insert(other.end(), {"--batch", "4"});
  EXPECT_EQ(codes(heddle_json(other, 3)).front(), "shape-mismatch");
}

TEST(ToolModel, LargeTrainingFormsTakeSteps) {
  for (const char* recipe : {"encoder", "inception_v3", "unet"}) {
    const TemporaryFolder folder;
    const std::string net = (folder / "net.heddle").string();
    heddle_json({"model", recipe, "--train", "--learning-rate", "0.001", "-o", net});
    const Json object = heddle_json({"train", net, "--steps", "2", "--batch", "2", "--data", "synthetic", "--samples", "2"});
    EXPECT_LT(object["train"]["last_loss"].get<double>(), object["train"]["first_loss"].get<double>()) << recipe;
  }
}

TEST(ToolModel, TrainingFormsLearn) {
  for (const char* recipe : {"digits", "lenet", "lstm_tagger"}) {
    const TemporaryFolder folder;
    const std::string net = (folder / "net.heddle").string();
    const Json model = heddle_json({"model", recipe, "--train", "--optimizer", "adam", "--learning-rate", "0.001", "-o", net});
    EXPECT_GT(model["net"]["operators"], 40) << recipe;
    const Json object = heddle_json({"train", net, "--steps", "12", "--batch", "8", "--data", "synthetic", "--samples", "8"});
    EXPECT_LT(object["train"]["last_loss"].get<double>(), object["train"]["first_loss"].get<double>()) << recipe;
  }
  const TemporaryFolder folder;
  EXPECT_EQ(codes(heddle_json({"model", "mlp", "--optimizer", "adam", "-o", (folder / "net.heddle").string()}, 2)),
            Words{"invalid-argument"});
  EXPECT_EQ(codes(heddle_json({"model", "mlp", "--average", "0.9", "-o", (folder / "net.heddle").string()}, 2)), Words{"invalid-argument"});
  EXPECT_EQ(codes(heddle_json({"model", "gru_seq2seq", "--train", "-o", (folder / "net.heddle").string()}, 2)), Words{"not-implemented"});
}

}  // namespace
}  // namespace heddle::tool_tests
