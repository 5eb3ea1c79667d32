// The losses and patterns of `heddle import --trainable`, and what it refuses.
#include <cmath>

#include "tool/train/learning_samples.h"
#include "tool/train/trainable_model.h"

namespace heddle::tool_tests {
namespace {

// x [N, 2] → Mul w [2] → y
onnx::Graph scaled() {
  return onnx::Graph()
      .input(onnx::batch("x", {2}))
      .output(onnx::batch("y", {2}))
      .constant(onnx::tensor("w", {2}, {2, -1}))
      .node(onnx::node("Mul", {"x", "w"}, {"y"}));
}

constexpr float xs[] = {1, 2, -3, 4}, targets[] = {1, 0, 0, 1};

// Returns the loss of the net "test" of scaled(), for two samples.
double loss_of(const Model& model) {
  write_text(model.file("x.npy"), npy_of("<f4", "2, 2", xs, sizeof(xs)));
  write_text(model.file("t.npy"), npy_of("<f4", "2, 2", targets, sizeof(targets)));
  heddle_json({"run", model.file("net.json"), "--net", "test", "--input", "x=" + model.file("x.npy"), "--input",
               "target=" + model.file("t.npy"), "--output", "loss=" + model.file("loss.npy")});
  return npy_values(model.file("loss.npy"))[0];
}

TEST(ToolImportLosses, MeanSquaredErrorIsThatOfAllElements) {
  const Model model(scaled());
  model.import("mse:y,target");
  const Json train = model.net("train");
  EXPECT_EQ(called(train["values"], "target")["dtype"], "f32");
  EXPECT_EQ(called(train["values"], "target")["dims"], Json({"N", 2}));
  EXPECT_EQ(names_of(model.net("test"), "outputs"), (Words{"loss", "y"}));
  double expected = 0;
  for (int i = 0; i < 4; ++i) expected += std::pow(xs[i] * (i % 2 == 0 ? 2 : -1) - targets[i], 2) / 4;
  EXPECT_NEAR(loss_of(model), expected, 1e-5);
}

TEST(ToolImportLosses, BinaryCrossEntropyTakesLogits) {
  const Model model(scaled());
  model.import("bce:y,target");
  double expected = 0;
  for (int i = 0; i < 4; ++i) {
    const double likely = 1 / (1 + std::exp(-xs[i] * (i % 2 == 0 ? 2.0 : -1.0)));
    expected -= std::log(targets[i] > 0 ? likely : 1 - likely) / 4;
  }
  EXPECT_NEAR(loss_of(model), expected, 1e-5);
}

// The classes are the second axis, as in ONNX and PyTorch; a batch that the model fixes stays.
TEST(ToolImportLosses, CrossEntropyHasALabelForEachElement) {
  const Model model(onnx::Graph()
                        .input(onnx::value("x", {4, 3, 5}))
                        .output(onnx::value("y", {4, 3, 5}))
                        .constant(onnx::tensor("w", {3, 1}, {1, 2, 3}))
                        .node(onnx::node("Mul", {"x", "w"}, {"y"})));
  model.import("cross_entropy:y,labels");
  EXPECT_EQ(called(model.net("train")["values"], "labels")["dims"], Json({4, 5}));
  EXPECT_EQ(heddle({"run", model.file("net.json"), "--net", "test", "--input", "x=" + model.file("x.npy")}).status, 3) << "no file";
  std::vector<float> x;
  std::vector<int64_t> labels;
  for (int i = 0; i < 60; ++i) x.push_back(static_cast<float>(i % 7));
  for (int i = 0; i < 20; ++i) labels.push_back(i % 3);
  write_text(model.file("x.npy"), npy("4, 3, 5", x));
  write_text(model.file("labels.npy"), npy_of("<i8", "4, 5", labels.data(), 160));
  const Words data = {"--input", "x=" + model.file("x.npy"), "--input", "labels=" + model.file("labels.npy")};
  for (const char* net : {"train", "test"}) {
    Words words = {"run", model.file("net.json"), "--net", net};
    words.insert(words.end(), data.begin(), data.end());
    EXPECT_EQ(heddle(words).status, 0) << net;
  }
}

TEST(ToolImportLosses, PatternsChooseTheWeights) {
  const Model model(normalised());
  const auto chosen = [&](const Words& patterns) { return model.import("cross_entropy:logits,labels", patterns)["trainable"]; };
  EXPECT_EQ(chosen({"fc*"}), Json({"fc1.weight", "fc2.weight", "fc2.bias"}));
  EXPECT_EQ(chosen({"fc2.*,bn.w*"}), Json({"bn.weight", "fc2.weight", "fc2.bias"}));
  EXPECT_EQ(chosen({"fc2.bias", "*1*"}), Json({"fc1.weight", "fc2.bias"}));
  // Numbers without axes are weights only by their whole names.
  EXPECT_EQ(chosen({"*"}).size(), 5u);
  EXPECT_EQ(chosen({"half"}), Json({"half"}));
  // Weights that do not learn stay constants, and running statistics are variables all the same.
  EXPECT_EQ(names_of(model.net("train"), "variables").size(), 3u);
  EXPECT_EQ(called(model.net("train")["values"], "fc1.weight")["kind"], "constant");
}

// Exporters write numbers of their own as Constant nodes: the ones and zeros of a normalisation without parameters.
TEST(ToolImportLosses, ConstantNodesAreNoWeightsBesideInitializers) {
  const auto constant = [](const char* name, const std::vector<float>& values) {
    return onnx::node("Constant", {}, {name}, "", onnx::tensor_attribute("value", onnx::tensor("", {2}, values)));
  };
  onnx::Graph graph = scaled().node(constant("ones", {1, 1})).node(onnx::node("Mul", {"y", "ones"}, {"z"}));
  const Model model(graph);
  EXPECT_EQ(model.import("mse:z,t")["trainable"], Json({"w"}));
  EXPECT_EQ(model.import("mse:z,t", {"*"})["trainable"], Json({"w"}));
  EXPECT_EQ(model.import("mse:z,t", {"*,ones"})["trainable"], Json({"w", "ones"}));
  const Model none(onnx::Graph()
                       .input(onnx::batch("x", {2}))
                       .output(onnx::batch("z", {2}))
                       .node(constant("ones", {1, 1}))
                       .node(onnx::node("Mul", {"x", "ones"}, {"z"})));
  EXPECT_EQ(none.import("mse:z,t")["trainable"], Json({"ones"})) << "a model that has no others";
}

TEST(ToolImportLosses, OneOptionWithoutTheOtherIsRefused) {
  const Model model(normalised());
  const Words neither = {"import", model.file("m.onnx"), "-o", model.file("net.json")};
  for (const Words& more : {Words{"--trainable"}, Words{"--loss", "mse:logits,t"}}) {
    Words words = neither;
    words.insert(words.end(), more.begin(), more.end());
    const Json object = heddle_json(words, 2);
    EXPECT_EQ(codes(object), Words{"invalid-argument"}) << object;
    EXPECT_TRUE(object["trainable"].is_null());
  }
}

TEST(ToolImportLosses, WhatTheModelHasNotIsRefused) {
  const Model model(normalised());
  struct Row {
    std::string loss, pattern, code, says, hint;
  };
  const std::string fits = "cross_entropy:logits,labels";
  for (const Row& row :
       std::vector<Row>{{"cross_entropi:logits,labels", "", "unknown-name", "no loss \"cross_entropi\"", "cross_entropy"},
                        {"hinge:logits,labels", "", "unknown-name", "no loss \"hinge\"", "cross_entropy, mse, bce"},
                        {"cross_entropy:logits", "", "invalid-argument", "a name for the labels", "cross_entropy:logits,labels"},
                        {"logits,labels", "", "invalid-argument", "does not say a kind", "mse:output,target"},
                        {"mse:,t", "", "invalid-argument", "does not say a kind", "mse:output,target"},
                        {"cross_entropy:logit,labels", "", "unknown-name", "no value \"logit\"", "did you mean \"logits\"?"},
                        {"cross_entropy:elsewhere,labels", "", "unknown-name", "no value \"elsewhere\"", "its outputs are \"logits\""},
                        {"cross_entropy:x,labels", "", "invalid-argument", "\"x\" is computed by no operator", "output"},
                        {"cross_entropy:logits,x", "", "duplicate-name", "a value \"x\" already", "another name"},
                        {"cross_entropy:logits,accuracy", "", "duplicate-name", "\"accuracy\" is the name of a result", "another name"},
                        {fits, "fc1.weigth", "unknown-name", "\"fc1.weigth\": no constant", "did you mean \"fc1.weight\" or"},
                        {fits, "head*", "unknown-name", "\"head*\": no constant", "the weights are \"fc1.weight\", \"bn.weight\""},
                        {fits, "bn.mean", "invalid-argument", "no operator takes as a weight", "running statistics"},
                        {"mse:h,target", "fc2*", "invalid-argument", "\"h\" depends on none of the weights", "choose others"}}) {
    const Json refused = model.refusal(row.loss, {row.pattern});
    EXPECT_EQ(refused["code"], row.code) << refused;
    EXPECT_NE(refused["message"].get<std::string>().find(row.says), std::string::npos) << refused;
    EXPECT_NE(refused["hint"].get<std::string>().find(row.hint), std::string::npos) << refused;
  }
}

TEST(ToolImportLosses, ModelsThatHaveNoSuchLossAreRefused) {
  const onnx::Graph sums = onnx::Graph(scaled()).node(onnx::node("ReduceSum", {"y"}, {"s"}, "", onnx::int_attribute("keepdims", 0)));
  const Json scalar = Model(sums).refusal("cross_entropy:s,labels");
  EXPECT_EQ(scalar["code"], "shape-mismatch") << scalar;
  const onnx::Graph compares = onnx::Graph(scaled()).node(onnx::node("Less", {"y", "x"}, {"less"}));
  EXPECT_EQ(Model(compares).refusal("mse:less,t")["code"], "dtype-mismatch");
  const onnx::Graph has_loss = onnx::Graph(scaled()).node(onnx::node("Abs", {"y"}, {"loss"}));
  EXPECT_EQ(Model(has_loss).refusal("mse:y,t")["code"], "duplicate-name");
  EXPECT_EQ(Model(onnx::unary("Relu", 3)).refusal("mse:y,t")["code"], "invalid-argument") << "there are no weights";
}

TEST(ToolImportLosses, QuantisedWeightsAreRefused) {
  const std::string bytes = onnx::integer(1, 2) + onnx::integer(2, 3) + onnx::part(8, "w.quantised") + onnx::part(9, "ab");
  const onnx::Graph graph = onnx::Graph(scaled())
                                .constant(bytes)
                                .constant(onnx::ints("shape", {-1, 2}))
                                .node(onnx::node("Cast", {"w.quantised"}, {"v"}, "", onnx::int_attribute("to", 1)))
                                .node(onnx::node("Add", {"y", "v"}, {"z"}))
                                .node(onnx::node("Reshape", {"z", "shape"}, {"r"}));
  for (const char* pattern : {"w.*", "w.quantised", "shape"}) {
    const Json refused = Model(graph).refusal("mse:r,t", {pattern});
    EXPECT_EQ(refused["code"], "unsupported") << refused;
    EXPECT_NE(refused["message"].get<std::string>().find("only floats are trained"), std::string::npos) << refused;
  }
  EXPECT_EQ(Model(graph).import("mse:r,t")["trainable"], Json({"w"}));
}

// scaled(), and an If whose first branch is one operator over values outside of it.
onnx::Graph with_branch(const std::string& type, const Words& inputs) {
  const auto branch = [](const std::string& of, const Words& read) {
    return onnx::Graph().node(onnx::node(of, read, {"b"})).output(onnx::batch("b", {2})).bytes + onnx::part(2, of);
  };
  const std::string branches =
      onnx::graph_attribute("then_branch", branch(type, inputs)) + onnx::graph_attribute("else_branch", branch("Relu", {"y"}));
  return onnx::Graph(scaled())
      .constant(onnx::tensor("inner", {2}, {3, 4}))
      .node(onnx::node("ReduceMax", {"x"}, {"most"}, "", onnx::int_attribute("keepdims", 0)))
      .node(onnx::node("Cast", {"most"}, {"is_any"}, "", onnx::int_attribute("to", 9)))
      .node(onnx::node("If", {"is_any"}, {"z"}, "", branches));
}

TEST(ToolImportLosses, ABranchThatNormalisesIsRefused) {
  const Json refused = Model(with_branch("BatchNormalization", {"y", "w", "w", "w", "w"})).refusal("mse:z,t");
  EXPECT_EQ(refused["code"], "unsupported") << refused;
  EXPECT_EQ(refused["operator"], "z") << refused;
}

TEST(ToolImportLosses, WeightsThatABranchReadsLearn) {
  const Model model(with_branch("Mul", {"y", "inner"}));
  EXPECT_EQ(model.import("mse:z,target")["trainable"], Json({"w", "inner"}));
  write_text(model.file("x.npy"), npy_of("<f4", "2, 2", xs, sizeof(xs)));
  write_text(model.file("t.npy"), npy_of("<f4", "2, 2", targets, sizeof(targets)));
  heddle_json({"train", model.file("net.json"), "--optimizer", "sgd", "--learning-rate", "0.001", "--batch", "2", "--steps", "3", "--data",
               "x=" + model.file("x.npy"), "--data", "target=" + model.file("t.npy"), "-o", model.file("trained.json")});
  for (const char* name : {"w", "inner"})
    EXPECT_NE(called(model.net("train", "trained.json")["variables"], name)["data"], called(model.net("train")["variables"], name)["data"])
        << name;
}

}  // namespace
}  // namespace heddle::tool_tests
