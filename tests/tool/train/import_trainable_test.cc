// `heddle import --trainable`: ONNX models as nets that learn.
#include <set>

#include "tool/train/learning_samples.h"
#include "tool/train/trainable_model.h"

namespace heddle::tool_tests {
namespace {

TEST(ToolImportTrainable, WritesANetThatLearnsAndOneThatTests) {
  const Model model(normalised());
  const Json object = model.import("cross_entropy:logits,labels");
  const Words weights = {"fc1.weight", "bn.weight", "bn.bias", "fc2.weight", "fc2.bias"};
  EXPECT_EQ(object["trainable"], Json(weights));
  EXPECT_EQ(object["net"]["parameters"], 12 + 6 + 6 + 12 + 2);
  const Json train = model.net("train"), test = model.net("test");
  EXPECT_EQ(train["name"], "train");
  EXPECT_EQ(test["name"], "test");
  EXPECT_EQ(names_of(train, "outputs"), Words{"loss"});
  EXPECT_EQ(names_of(test, "outputs"), (Words{"loss", "accuracy", "logits"}));
  EXPECT_EQ(names_of(train, "inputs"), (Words{"x", "labels"}));
  EXPECT_EQ(called(train["values"], "labels")["dtype"], "i64");
  EXPECT_EQ(called(train["values"], "labels")["dims"], Json({"N"}));
  EXPECT_EQ(names_of(train, "variables"), names_of(test, "variables"));
  for (const Json& variable : train["variables"])
    EXPECT_EQ(variable.value("trainable", false),
              !variable["name"].get<std::string>().starts_with("bn.mean") && !variable["name"].get<std::string>().starts_with("bn.var"))
        << variable;
  EXPECT_EQ(called(train["values"], "half")["kind"], "constant");
  EXPECT_EQ(node_of(train, "BatchNormalization")["attributes"]["training_mode"]["int"], 1);
  EXPECT_FALSE(node_of(test, "BatchNormalization").value("attributes", Json::object()).contains("training_mode"));
  EXPECT_EQ(node_of(train, "Dropout")["inputs"].size(), 3u);
  EXPECT_EQ(called(train["values"], node_of(train, "Dropout")["inputs"][2])["data"], Json({1}));
  EXPECT_EQ(node_of(test, "Dropout")["inputs"].size(), 2u);
}

TEST(ToolImportTrainable, TheLossFallsAndRunningStatisticsFollowTheBatches) {
  const Model model(normalised());
  const Samples samples;
  model.import("cross_entropy:logits,labels");
  const Words data = {"x=" + samples.file("x.npy"), "labels=" + samples.file("labels.npy")};
  heddle_json({"train",
               model.file("net.json"),
               "--optimizer",
               "sgd",
               "--learning-rate",
               "0.2",
               "--batch",
               "8",
               "--steps",
               "60",
               "--data",
               data[0],
               "--data",
               data[1],
               "--test-data",
               data[0],
               "--test-data",
               data[1],
               "--log",
               model.file("log.jsonl"),
               "-o",
               model.file("trained.json")});
  const std::vector<Json> lines = lines_of(model.file("log.jsonl"));
  std::vector<double> losses;
  for (const Json& line : lines)
    if (line.contains("loss")) losses.push_back(line["loss"]);
  ASSERT_EQ(losses.size(), 60u);
  EXPECT_LT(losses.back(), losses.front() / 2);
  const Json mean = called(model.net("train", "trained.json")["variables"], "bn.mean");
  EXPECT_NE(mean["data"], called(model.net("train")["variables"], "bn.mean")["data"]);
  EXPECT_EQ(heddle({"predictor", model.file("trained.json"), "--output", "logits", "-o", model.file("p.heddle")}).status, 0);
}

// Dropout draws other elements for another seed in the net that learns, and is the identity in the one that tests.
TEST(ToolImportTrainable, DropoutIsActiveInTrainAlone) {
  const Model model(normalised());
  const Samples samples;
  model.import("cross_entropy:logits,labels");
  const auto loss = [&](const std::string& net, const std::string& seed) {
    return heddle_json({"run", model.file("net.json"), "--net", net, "--seed", seed, "--input", "x=" + samples.file("x.npy"), "--input",
                        "labels=" + samples.file("labels.npy"), "--fetch", "loss", "--print", "loss"})["printed"]["loss"];
  };
  EXPECT_NE(loss("train", "1"), loss("train", "2"));
  EXPECT_EQ(loss("test", "1"), loss("test", "2"));
}

// A model that was exported in training mode: the normalisation has its statistics as outputs, and Dropout a mode.
TEST(ToolImportTrainable, AModelInTrainingModeIsTestedInInferenceMode) {
  const bool yes = true;
  const std::string mode = onnx::integer(2, 9) + onnx::part(8, "mode") + onnx::part(9, {reinterpret_cast<const char*>(&yes), 1});
  const Model model(onnx::Graph()
                        .input(onnx::batch("x", {2}))
                        .output(onnx::batch("logits", {2}))
                        .output(onnx::value("m", {2}))
                        .constant(onnx::tensor("bn.weight", {2}, {1, 1}))
                        .constant(onnx::tensor("bn.bias", {2}, {0, 0}))
                        .constant(onnx::tensor("bn.mean", {2}, {0, 0}))
                        .constant(onnx::tensor("bn.var", {2}, {1, 1}))
                        .constant(onnx::tensor("ratio", {}, {0.5F}))
                        .constant(mode)
                        .node(onnx::node("BatchNormalization", {"x", "bn.weight", "bn.bias", "bn.mean", "bn.var"}, {"y", "m", "v"}, "",
                                         onnx::int_attribute("training_mode", 1)))
                        .node(onnx::node("Dropout", {"y", "ratio", "mode"}, {"logits"})),
                    15);
  model.import("cross_entropy:logits,labels");
  EXPECT_EQ(names_of(model.net("test"), "outputs"), (Words{"loss", "accuracy", "logits"}));
  EXPECT_EQ(node_of(model.net("train"), "BatchNormalization")["outputs"].size(), 3u);
  EXPECT_EQ(node_of(model.net("test"), "BatchNormalization")["outputs"].size(), 1u);
  EXPECT_EQ(node_of(model.net("train"), "Dropout")["inputs"].size(), 3u);
  EXPECT_EQ(node_of(model.net("test"), "Dropout")["inputs"].size(), 2u);
}

// Exporters write equal statistics once.
TEST(ToolImportTrainable, NormalisationsThatShareStatisticsGetTheirOwn) {
  onnx::Graph graph = onnx::Graph()
                          .input(onnx::batch("x", {2}))
                          .output(onnx::batch("logits", {2}))
                          .constant(onnx::tensor("one", {2}, {1, 1}))
                          .constant(onnx::tensor("zero", {2}, {0, 0}))
                          .node(onnx::node("Identity", {"zero"}, {"copy"}))
                          .node(onnx::node("BatchNormalization", {"x", "one", "zero", "zero", "one"}, {"y"}))
                          .node(onnx::node("BatchNormalization", {"y", "one", "zero", "copy", "one"}, {"logits"}));
  graph.node(onnx::node("Identity", {"one"}, {"one.copy"})).node(onnx::node("Mul", {"logits", "one.copy"}, {"more"}));
  const Model model(graph);
  const Outcome told = heddle(model.words("mse:more,target", {""}));
  EXPECT_NE(told.out.find("\"one.copy\" is a copy of \"one\": they learn as one"), std::string::npos) << told.out << told.err;
  model.import("mse:logits,target");
  Words statistics;
  const Json train = model.net("train");
  for (const Json& node : train["nodes"])
    if (node["type"] == "BatchNormalization") statistics.insert(statistics.end(), {node["inputs"][3], node["inputs"][4]});
  EXPECT_EQ(std::set<std::string>(statistics.begin(), statistics.end()).size(), 4u) << Json(statistics);
  for (const std::string& name : statistics) EXPECT_FALSE(called(train["variables"], name).value("trainable", false)) << name;
  for (const char* name : {"one", "zero"}) EXPECT_TRUE(called(train["variables"], name).value("trainable", false)) << name;
  const Samples samples;
  samples.write("target.npy", "<f4", "8, 2", ramp(16, 1).data(), 16 * sizeof(float));
  const Outcome trained = heddle({"train", model.file("net.json"), "--batch", "8", "--steps", "2", "--no-output", "--data",
                                  "x=" + samples.file("x.npy"), "--data", "target=" + samples.file("target.npy")});
  EXPECT_EQ(trained.status, 0) << trained.err;
}

}  // namespace
}  // namespace heddle::tool_tests
