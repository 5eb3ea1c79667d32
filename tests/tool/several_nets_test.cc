// Files of several nets in the tool: converted whole, checked whole, one chosen with --net.
#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

// "train" updates "w" by its input; the other net multiplies with it.
constexpr const char* model = R"({"heddle": 1, "name": "train", "inputs": ["g"], "outputs": ["w1"],
 "variables": [{"name": "w", "dtype": "f32", "dims": [3], "trainable": true, "data": [1, 2, 3]}],
 "values": [{"name": "g", "kind": "input", "dtype": "f32", "dims": [3]}, {"name": "w", "kind": "variable", "variable": "w", "version": 0},
  {"name": "rate", "kind": "constant", "dtype": "f32", "dims": [], "data": [0.5]},
  {"name": "w1", "kind": "variable", "variable": "w", "version": 1}],
 "nodes": [{"name": "update", "type": "SgdUpdate", "domain": "heddle", "inputs": ["w", "g", "rate"], "outputs": ["w1"]}],
 "nets": [
  {"name": "test", "inputs": ["x"], "outputs": ["y"], "variables": [{"name": "w", "dtype": "f32", "dims": [3], "trainable": true}],
   "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [3]}, {"name": "w", "kind": "variable", "variable": "w", "version": 0}],
   "nodes": [{"name": "y", "type": "Mul", "inputs": ["x", "w"], "outputs": ["y"]}]}]})";

struct ModelFolder {
  ModelFolder() { std::ofstream(json) << model; }
  const TemporaryFolder folder;
  const std::string json = (folder / "model.json").string(), binary = (folder / "model.heddle").string();
};

TEST(ToolSeveralNets, AreConvertedWithoutLoss) {
  const ModelFolder files;
  const std::string back = (files.folder / "back.json").string(), again = (files.folder / "again.heddle").string();
  ASSERT_EQ(heddle({"convert", files.json, files.binary}).status, 0);
  ASSERT_EQ(heddle({"convert", files.binary, back}).status, 0);
  ASSERT_EQ(heddle({"convert", back, again}).status, 0);
  EXPECT_EQ(read_text(again), read_text(files.binary));
}

TEST(ToolSeveralNets, OneIsChosenByName) {
  const ModelFolder files;
  EXPECT_TRUE(heddle_json({"run", files.json, "--random", "1"})["outputs"].contains("w1")) << "the first";
  EXPECT_TRUE(heddle_json({"run", files.json, "--net", "test", "--random", "1"})["outputs"].contains("y"));
  EXPECT_EQ(codes(heddle_json({"run", files.json, "--net", "other", "--random", "1"}, 2)), Words{"unknown-name"});
  EXPECT_EQ(heddle({"bench", files.json, "--net", "test", "--repeat", "2"}).status, 0);
  EXPECT_EQ(heddle_json({"plan", files.json, "--net", "test"})["steps"].size(), 1u);
  EXPECT_EQ(heddle_json({"inspect", files.json, "--net", "test"})["net"]["name"], "test");
  EXPECT_EQ(codes(heddle_json({"inspect", files.json, "--net", "other"}, 2)), Words{"unknown-name"});
  EXPECT_EQ(codes(heddle_json({"inspect", files.json, "--dot"}, 2)), Words{"invalid-argument"}) << "a graph is one net's";
}

// Without --net each net is listed with its inputs and outputs; a single one with all that inspect reports of a net.
TEST(ToolSeveralNets, AreAllShown) {
  const ModelFolder files;
  const Outcome shown = heddle({"inspect", files.json});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_EQ(shown.out, R"(net "train": 1 operators, 1 variables
  input  "g" f32[3]
  output "w1" f32[3]
net "test": 1 operators, 1 variables
  input  "x" f32[3]
  output "y" f32[3]
with --net NAME one of them with its operators
)");
  const Json object = heddle_json({"inspect", files.json, "--stats"});
  EXPECT_TRUE(object["net"].is_null());
  EXPECT_TRUE(object["stats"].is_null());
  ASSERT_EQ(object["nets"].size(), 2u);
  EXPECT_EQ(object["nets"][1]["stats"]["operators_by_type"], (Json{{"Mul", 1}}));
  const Json one = heddle_json({"inspect", files.json, "--net", "test", "--stats"});
  EXPECT_EQ(one["nets"], Json::array({object["nets"][1]}));
  EXPECT_EQ(one["stats"], object["nets"][1]["stats"]);
}

TEST(ToolSeveralNets, AreAllChecked) {
  const ModelFolder files;
  EXPECT_EQ(heddle_json({"check", files.json})["operators"], 2);
  EXPECT_EQ(codes(heddle_json({"check", files.json, "--net", "other"}, 2)), Words{"unknown-name"});
  std::string broken = model;
  broken.replace(broken.find("\"Mul\""), 5, "\"Mule\"");
  std::ofstream(files.json) << broken;
  EXPECT_EQ(codes(heddle_json({"check", files.json}, 1)), Words{"unknown-operator"});
}

}  // namespace
}  // namespace heddle::tool_tests
