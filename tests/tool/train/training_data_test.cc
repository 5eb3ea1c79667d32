// Trainings on the pictures of a folder, as they are called.
#include <fmt/format.h>

#include "image/picture_files.h"
#include "learning_samples.h"

namespace heddle::tool_tests {
namespace {

// A net of pictures of 2 x 2 pixels, and one that tests it.
std::string picture_net() {
  const std::string parts = R"json("inputs": ["x", "labels"], "outputs": ["loss"],
 "variables": [{"name": "w", "dtype": "f32", "dims": [12, 2], "trainable": true, "initializer": "normal(0, 0.1)"}],
 "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": ["N", 3, 2, 2]}, {"name": "labels", "kind": "input", "dtype": "i64", "dims": ["N"]},
  {"name": "w", "kind": "variable", "variable": "w", "version": 0}],
 "nodes": [{"name": "row", "type": "Flatten", "inputs": ["x"], "outputs": ["row"]},
  {"name": "logits", "type": "MatMul", "inputs": ["row", "w"], "outputs": ["logits"]},
  {"name": "loss", "type": "SoftmaxCrossEntropyLoss", "inputs": ["logits", "labels"], "outputs": ["loss"]}])json";
  return R"json({"heddle": 1, "name": "train", )json" + parts + R"json(, "nets": [{"name": "test", )json" + parts + "}]}";
}

struct Pictures {
  Pictures() {
    for (int i = 0; i < 12; ++i) {
      std::vector<uint8_t> pixels = pictures::random_bytes(12);
      for (size_t k = 0; k < 12; ++k) pixels[k] = static_cast<uint8_t>(pixels[k] / 4 + (i % 2 == 0 ? 150 : 0) + i);
      write(fmt::format("photos/{}/{}.png", i % 2 == 0 ? "bright" : "dark", i), pictures::png_of(pixels, 2, 2));
    }
    write("net.json", picture_net());
  }
  void write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((folder / name).parent_path());
    write_text(folder / name, content);
  }
  std::string path(const std::string& name) const { return (folder / name).string(); }
  Words train(const Words& more) const {
    Words words = {"train",           path("net.json"),
                   "--data",          "x=" + path("photos"),
                   "--data",          "labels=" + path("photos") + ":class",
                   "--batch",         "4",
                   "--steps",         "30",
                   "--learning-rate", "0.3",
                   "--seed",          "3"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  const TemporaryFolder folder;
};

TEST(ToolTrainData, PicturesOfAFolderAreReadByAnyNumberOfThreads) {
  const Pictures pictures;
  std::string learned;
  for (const char* readers : {"0", "1", "4"}) {
    const std::string file = pictures.path("trained.heddle");
    const Json run =
        heddle_json(pictures.train({"--readers", readers, "--augment", "crop,flip,color=0.2", "-o", file, "--test-data",
                                    "x=" + pictures.path("photos"), "--test-data", "labels=" + pictures.path("photos") + ":class"}));
    EXPECT_EQ(run["train"]["classes"]["labels"], Json({"bright", "dark"}));
    EXPECT_EQ(run["train"]["samples"], 12);
    EXPECT_LT(run["train"]["test"]["loss"].get<double>(), 0.3);
    const std::string now = read_text(file);
    EXPECT_TRUE(learned.empty() || now == learned) << readers;
    learned = now;
  }
  // A picture is the input of a run too, a batch of one.
  const std::string predictor = pictures.path("predictor.heddle");
  ASSERT_EQ(heddle({"predictor", pictures.path("trained.heddle"), "--output", "logits", "-o", predictor}).status, 0);
  const Json run = heddle_json({"run", predictor, "--input", "x=" + pictures.path("photos/dark/1.png")});
  EXPECT_EQ(run["outputs"]["logits"]["shape"], Json({1, 2})) << run["outputs"];
}

TEST(ToolTrainData, ADamagedPictureIsNamed) {
  const Pictures pictures;
  const std::string file = pictures.path("photos/dark/5.png"), whole = read_text(file);
  write_text(file, whole.substr(0, whole.size() - 20));
  const Json failed = heddle_json(pictures.train({"--no-output"}), 3);
  ASSERT_EQ(codes(failed), Words{"file-corrupt"});
  EXPECT_NE(failed["diagnostics"][0]["message"].get<std::string>().find("photos/dark/5.png"), std::string::npos) << failed;
}

}  // namespace
}  // namespace heddle::tool_tests
