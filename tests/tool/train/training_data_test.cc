// Trainings on the pictures of a folder, as they are called.
#include <fmt/format.h>

#include <random>

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
    Words words = {"train", path("net.json"), "--data", "x=" + path("photos"), "--data", "labels=" + path("photos") + ":class", "--seed",
                   "3"};
    for (const auto& [option, value] : {std::pair("--batch", "4"), std::pair("--steps", "30"), std::pair("--learning-rate", "0.3")})
      if (std::find(more.begin(), more.end(), option) == more.end()) words.insert(words.end(), {option, value});
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

// A net that decodes its picture takes the bytes of a file.
TEST(ToolTrainData, NetsDecodePicturesThemselves) {
  const Pictures pictures;
  pictures.write("decoding.json", R"json({"heddle": 1, "name": "decoding", "inputs": ["bytes"], "outputs": ["numbers"],
 "values": [{"name": "bytes", "kind": "input", "dtype": "u8", "dims": ["B"]}],
 "nodes": [{"name": "image", "type": "ImageDecoder", "inputs": ["bytes"], "outputs": ["image"]},
  {"name": "resized", "type": "ImageResize", "domain": "heddle", "inputs": ["image"], "outputs": ["resized"], "attributes": {"size": {"ints": [2, 2]}}},
  {"name": "numbers", "type": "ImageNormalize", "domain": "heddle", "inputs": ["resized"], "outputs": ["numbers"]}]})json");
  const std::string picture = pictures.path("photos/dark/1.png"), numbers = pictures.path("numbers.npy");
  ASSERT_EQ(heddle({"run", pictures.path("decoding.json"), "--input", "bytes=" + picture, "--output", "numbers=" + numbers}).status, 0);
  const std::vector<float> made = npy_values(numbers);
  const heddle::pictures::Decoded decoded = heddle::pictures::decoded(read_text(picture));
  ASSERT_EQ(made.size(), 12u);
  for (size_t i = 0; i < 4; ++i)
    for (size_t c = 0; c < 3; ++c) EXPECT_EQ(made[c * 4 + i], static_cast<float>(decoded.pixels[i * 3 + c]) * (1.0F / 255));
  write_text(picture, read_text(picture).substr(0, 60));
  const Json failed = heddle_json({"run", pictures.path("decoding.json"), "--input", "bytes=" + picture}, 1);
  EXPECT_EQ(codes(failed), Words{"kernel-failed"});
}

TEST(ToolTrainData, ADamagedPictureIsNamed) {
  const Pictures pictures;
  const std::string file = pictures.path("photos/dark/5.png"), whole = read_text(file);
  write_text(file, whole.substr(0, whole.size() - 20));
  const Json failed = heddle_json(pictures.train({"--no-output"}), 3);
  ASSERT_EQ(codes(failed), Words{"file-corrupt"});
  EXPECT_NE(failed["diagnostics"][0]["message"].get<std::string>().find("photos/dark/5.png"), std::string::npos) << failed;
  const Json skipped = heddle_json(pictures.train({"--no-output", "--skip-bad", "1"}));
  EXPECT_EQ(skipped["train"]["bad_samples"], 1);
  ASSERT_EQ(codes(skipped), Words{"file-corrupt"});
  EXPECT_EQ(skipped["diagnostics"][0]["severity"], "warning");
  EXPECT_EQ(skipped["train"]["steps"], 30);
  write_text(pictures.path("photos/dark/7.png"), "no picture");
  EXPECT_EQ(heddle_json(pictures.train({"--no-output", "--skip-bad", "1"}), 3)["train"]["bad_samples"], 1);
}

// A checkpoint knows its pictures, their classes and what becomes of them, but not where they are.
TEST(ToolTrainData, ATrainingContinuesWithTheSamePicturesAlone) {
  const Pictures pictures;
  const Words checkpoints = {"--no-output", "--checkpoint-dir", pictures.path("checkpoints"), "--resume"};
  const auto resumed = [&](const Words& more, int status) {
    Words words = checkpoints;
    words.insert(words.end(), more.begin(), more.end());
    return heddle_json(pictures.train(words), status);
  };
  resumed({"--steps", "10"}, 0);
  EXPECT_EQ(codes(resumed({"--steps", "20", "--augment", "flip"}, 2)), Words{"invalid-argument"});
  EXPECT_EQ(codes(resumed({"--steps", "20", "--normalize", "none"}, 2)), Words{"invalid-argument"});
  EXPECT_EQ(resumed({"--steps", "20", "--readers", "3"}, 0)["train"]["resumed_from"], 10);
  std::filesystem::rename(pictures.folder / "photos/dark", pictures.folder / "photos/a");
  const Json renamed = resumed({"--steps", "30"}, 2);
  ASSERT_EQ(codes(renamed), Words{"invalid-argument"});
  EXPECT_NE(renamed["diagnostics"][0]["message"].get<std::string>().find("has other samples"), std::string::npos) << renamed;
  std::filesystem::rename(pictures.folder / "photos/a", pictures.folder / "photos/dark");
  std::filesystem::create_directory(pictures.folder / "moved");
  std::filesystem::rename(pictures.folder / "photos", pictures.folder / "moved/photos");
  Words words = {"train",           pictures.path("net.json"),
                 "--data",          "x=" + pictures.path("moved/photos"),
                 "--data",          "labels=" + pictures.path("moved/photos") + ":class",
                 "--batch",         "4",
                 "--learning-rate", "0.3",
                 "--steps",         "30",
                 "--seed",          "3"};
  words.insert(words.end(), checkpoints.begin(), checkpoints.end());
  EXPECT_EQ(heddle_json(words)["train"]["resumed_from"], 20);
}

TEST(ToolTrainData, NoPictureIsWrittenOver) {
  const Pictures pictures;
  const std::string picture = pictures.path("photos/dark/5.png"), before = read_text(picture);
  for (const char* option : {"--log", "--curve", "-o"}) {
    Words words = pictures.train({option, picture});
    EXPECT_EQ(codes(heddle_json(words, 2)), Words{"invalid-argument"}) << option;
    EXPECT_EQ(read_text(picture), before) << option;
  }
}

TEST(ToolTrainData, AFileOfTheLogHasTheMeansThoughTheFirstSampleIsBad) {
  const Pictures pictures;
  write_text(pictures.path("photos/bright/0.png"), "no picture");
  const std::string log = pictures.path("log.csv");
  const Json run =
      heddle_json(pictures.train({"--no-output", "--skip-bad", "2", "--log", log, "--test-data", "x=" + pictures.path("photos"),
                                  "--test-data", "labels=" + pictures.path("photos") + ":class"}));
  EXPECT_EQ(run["train"]["bad_samples"], 2) << "one of the training and one of the test";
  EXPECT_NE(read_text(log).find("test_loss"), std::string::npos);
}

// A thousand files that are cut anywhere, have other bytes, or promise more than they have, among as many pictures.
TEST(ToolTrainData, BrokenPicturesAreCountedAndNothingElse) {
  const Pictures pictures;
  const std::string png = read_text(pictures.path("photos/dark/1.png"));
  const std::string jpeg = pictures::jpeg_of(pictures::random_bytes(16 * 16 * 3), 16, 16);
  std::mt19937_64 random(47);
  for (int i = 0; i < 1000; ++i) {
    const bool is_png = i % 2 == 0;
    std::string broken = is_png ? png : jpeg;
    switch (i % 8 / 2) {
      case 0:
        broken.resize(random() % broken.size());
        break;
      case 1:  // of a PNG file each byte is checked; a JPEG file without its first markers is none
        broken[is_png ? random() % broken.size() : random() % 2] ^= static_cast<char>(1 + random() % 255);
        break;
      case 2:  // extents of 40000 x 40000
        if (is_png)
          broken.replace(16, 8, std::string("\0\0\x9c\x40\0\0\x9c\x40", 8));
        else
          broken.replace(broken.find("\xFF\xC0") + 5, 4, "\x9c\x40\x9c\x40");
        break;
      default:
        broken.clear();
    }
    pictures.write(fmt::format("photos/dark/broken{}.{}", i, is_png ? "png" : "jpg"), broken);
    pictures.write(fmt::format("photos/dark/good{}.png", i), png);
  }
  const Json run = heddle_json(pictures.train({"--no-output", "--skip-bad", "1000", "--epochs", "1", "--batch", "64", "--last-batch",
                                               "keep", "--steps", "1000", "--readers", "2"}));
  EXPECT_EQ(run["train"]["bad_samples"], 1000);
  EXPECT_EQ(run["train"]["samples"], 2012);
  EXPECT_EQ(run["train"]["steps"], 32);
}

}  // namespace
}  // namespace heddle::tool_tests
