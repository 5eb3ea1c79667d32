#include "models/recipes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "models/training_form.h"
#include "models/weights.h"
#include "weights/safetensors.h"

namespace heddle::models {
namespace {

uint64_t fnv1a(uint64_t hash, const std::byte* bytes, int64_t count) {
  for (int64_t i = 0; i < count; ++i) hash = (hash ^ static_cast<uint64_t>(bytes[i])) * 0x100000001b3;
  return hash;
}

uint64_t weights_hash(const Net& net) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const Value& value : net.values)
    if (value.kind == Value::Kind::constant) hash = fnv1a(hash, value.content.blob->data, value.content.blob->bytes);
  return hash;
}

// Counts of torchvision's models (inception_v3 with aux_logits=False); for the encoder, of BERT base without token types and pooler; for
// unet, of mateuszbuda's, which has 7,763,041, with a second class; for digits and photos, of torch.nn's Conv2d and BatchNorm2d; for the others, of
// torch.nn's Embedding, EmbeddingBag, LSTM, GRU and Linear of their sizes.
struct Expected {
  const char* name;
  int64_t parameters;
};
constexpr Expected expected[] = {{"densenet121", 7'978'856},  {"digits", 90'090},          {"dlrm", 17'139'521},
                                 {"encoder", 108'890'112},    {"gru_seq2seq", 10'697'024}, {"inception_v3", 23'834'568},
                                 {"lenet", 61'706},           {"lstm_tagger", 3'670'573},  {"mlp", 535'818},
                                 {"mobilenet_v2", 3'504'872}, {"photos", 242'474}, {"resnet18", 11'689'512},    {"resnet50", 25'557'032},
                                 {"unet", 7'763'074}};

TEST(Recipes, HaveThePublishedParameterCounts) {
  std::set<std::string> listed;
  for (const Recipe& recipe : list()) listed.insert(recipe.name);
  for (const Expected& e : expected) {
    const Result<Net> net = build(e.name, {});
    ASSERT_TRUE(net.ok()) << net.status().text();
    EXPECT_EQ(parameter_count(*net), e.parameters) << e.name;
    EXPECT_EQ(listed.erase(e.name), 1u);
  }
  EXPECT_TRUE(listed.empty()) << "a recipe without a count: " << *listed.begin();
}

TEST(Recipes, NamesAreUniqueAndInputsDefined) {
  for (const Recipe& recipe : list()) {
    if (std::string(recipe.name) == "encoder") continue;  // its names are made the same way, its weights are large
    const Result<Net> net = build(recipe.name, {.batch = 3});
    ASSERT_TRUE(net.ok());
    std::set<std::string> names;
    for (const Value& value : net->values) EXPECT_TRUE(names.insert(value.name).second) << recipe.name << ": " << value.name;
    for (const Node& node : net->nodes)
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const bool left_out = node.type == "GRU" && i == 4;  // sequence_lens, in front of the initial state
        EXPECT_TRUE(left_out ? !node.inputs[i].valid() : node.inputs[i].index < net->values.size()) << recipe.name << ": " << node.name;
      }
    ASSERT_FALSE(net->inputs.empty());
    for (const ValueId input : net->inputs) EXPECT_EQ((*net)[input].type.dims[0], Dim::of(3)) << recipe.name << ": " << (*net)[input].name;
    ASSERT_EQ(net->outputs.size(), 1u);
  }
}

// Checks the same of training forms: their trainable variables are the parameters, and their heads have what either net needs.
TEST(Recipes, TrainingFormsAreWhole) {
  for (const Recipe& recipe : list()) {
    if (recipe.labels == Labels::none || std::string(recipe.name) == "encoder") continue;
    SCOPED_TRACE(recipe.name);
    const Result<TrainingForm> form = training_form(recipe.name, {});
    ASSERT_TRUE(form.ok()) << form.status().text();
    for (const Net* net : {&form->train, &form->test}) {
      std::set<std::string> names, nodes;
      for (const Value& value : net->values) EXPECT_TRUE(names.insert(value.name).second) << value.name;
      for (const Node& node : net->nodes) EXPECT_TRUE(nodes.insert(node.name).second) << node.name;
      EXPECT_EQ((*net)[net->outputs[0]].name, "loss");
      for (const ValueId input : net->inputs) EXPECT_EQ((*net)[input].type.dims[0], Dim::named("N"));
    }
    int64_t trainable = 0;
    for (const Variable& variable : form->train.variables)
      if (variable.trainable) trainable += variable.initial.blob->shape.element_count();
    EXPECT_EQ(trainable, form->parameters);
    EXPECT_EQ(form->test.outputs.size(), 3u);
  }
  // This is torchvision's with its auxiliary head.
  EXPECT_EQ(training_form("inception_v3", {})->parameters, 27161264);
  EXPECT_EQ(training_form("gru_seq2seq", {}).status().code(), Code::not_implemented);
}

TEST(Recipes, AreSorted) {
  EXPECT_TRUE(std::is_sorted(list().begin(), list().end(), [](const Recipe& a, const Recipe& b) { return std::string(a.name) < b.name; }));
}

// docs/command_line.md has a row for each, with its description and its parameters.
TEST(Recipes, AreDocumented) {
  std::ifstream file(HEDDLE_SOURCE_DIR "/docs/command_line.md");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::map<std::string, int64_t> counts;
  for (const Expected& e : expected) counts[e.name] = e.parameters;
  for (const Recipe& recipe : list()) {
    const std::string row = fmt::format("\n| `{}` | {} | {} |\n", recipe.name, recipe.description, counts[recipe.name]);
    EXPECT_NE(text.find(row), std::string::npos) << "not in docs/command_line.md:" << row;
  }
}

TEST(Recipes, BytesDependOnTheSeedAlone) {
  const Result<Net> a = build("lenet", {.batch = 1, .seed = 7});
  const Result<Net> b = build("lenet", {.batch = 4, .seed = 7});
  const Result<Net> c = build("lenet", {.batch = 1, .seed = 8});
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  EXPECT_EQ(weights_hash(*a), weights_hash(*b));
  EXPECT_NE(weights_hash(*a), weights_hash(*c));
  // Computed by an independent implementation of the generator (Python, numpy): another machine or compiler must not change a bit.
  EXPECT_EQ(weights_hash(*build("lenet", {})), 0x88a959f79272d22eu);
}

TEST(Recipes, WeightsAreWrittenUnderTheirNames) {
  const Result<Net> net = build("lenet", {});
  ASSERT_TRUE(net.ok());
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("heddle_weights_" + std::to_string(::getpid()) + ".safetensors");
  const Status written = write_weights(*net, file);
  ASSERT_TRUE(written.ok()) << written.text();
  const Result<Safetensors> read = Safetensors::open(file.parent_path(), file.filename().string(), {});
  std::filesystem::remove(file);
  ASSERT_TRUE(read.ok()) << read.status().text();
  ASSERT_NE(read->find("conv1.bias"), nullptr);
  EXPECT_EQ(read->find("conv1.bias")->shape, (Shape{6}));
  EXPECT_EQ(read->find("fc3.weight")->shape, (Shape{10, 84}));
}

TEST(Recipes, WrongUseIsAnError) {
  EXPECT_EQ(build("resnet5", {}).status().code(), Code::unknown_name);
  EXPECT_NE(build("resnet5", {}).status().diagnostic().hint.find("\"resnet50\""), std::string::npos);
  EXPECT_EQ(build("lenet", {.batch = 0}).status().code(), Code::invalid_argument);
  EXPECT_EQ(build("lenet", {.batch = int64_t{1} << 40}).status().code(), Code::limit_exceeded);
}

TEST(Weights, FollowTheirDistribution) {
  const auto blob = spread("some.weight", Shape{100, 1000}, 0.5f, 3);
  const auto* values = reinterpret_cast<const float*>(blob->data);
  double sum = 0, squares = 0;
  for (int i = 0; i < 100000; ++i) {
    sum += values[i];
    squares += double{values[i]} * values[i];
    ASSERT_LE(std::fabs(values[i]), 0.8661f);  // sqrt(3) / 2
  }
  EXPECT_NEAR(sum / 100000, 0, 0.01);
  EXPECT_NEAR(std::sqrt(squares / 100000), 0.5, 0.01);
}

}  // namespace
}  // namespace heddle::models
