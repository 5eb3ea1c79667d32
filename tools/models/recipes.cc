#include "models/recipes.h"

#include <fmt/format.h>

#include <vector>

#include "base/text/text.h"
#include "models/builders.h"
#include "trainable/weight_choice.h"
#include "weights/safetensors.h"

namespace heddle::models {
namespace {

constexpr Recipe recipes[] = {
    {"densenet121", "DenseNet-121, images [batch, 3, 224, 224]", densenet121, Labels::of_samples},
    {"digits", "three convolutions and two layers, images [batch, 1, 8, 8] of digits as scikit-learn has them", digits, Labels::of_samples},
    {"dlrm", "DLRM: 26 tables of 10,000 x 64, dense features [batch, 13] and 26 bags of indices [batch, 20], without the last sigmoid",
     dlrm, Labels::clicks},
    {"encoder", "12 transformer layers of width 768 with 12 heads (BERT base, post-norm), tokens [batch, 128]", encoder,
     Labels::of_samples},
    {"gru_seq2seq", "GRU encoder and decoder with dot-product attention, source [batch, 32] and target tokens [batch, 24]", gru_seq2seq,
     Labels::none},
    {"inception_v3", "Inception v3 without its auxiliary head, images [batch, 3, 299, 299]", inception_v3, Labels::of_samples},
    {"lenet", "LeNet-5 with ReLU and max pooling, images [batch, 1, 28, 28]", lenet, Labels::of_samples},
    {"lstm_tagger", "two bidirectional LSTM layers of hidden size 256 and 45 tags, tokens [batch, 64]", lstm_tagger, Labels::of_elements},
    {"mlp", "three fully connected layers, rows [batch, 784]", mlp, Labels::of_samples},
    {"mobilenet_v2", "MobileNet v2, width 1.0, images [batch, 3, 224, 224]", mobilenet_v2, Labels::of_samples},
    {"photos", "four convolutions and a layer, images [batch, 3, 64, 64] of up to ten kinds", photos, Labels::of_samples},
    {"resnet18", "ResNet-18, images [batch, 3, 224, 224]", resnet18, Labels::of_samples},
    {"resnet50", "ResNet-50 (v1.5: stride in the 3x3 convolution), images [batch, 3, 224, 224]", resnet50, Labels::of_samples},
    {"unet", "U-Net with batch normalisation, 4 levels from 32 channels on, images [batch, 3, 128, 128]", unet, Labels::of_pixels},
};
constexpr int64_t largest_batch = 65536;

// Layers name their weights <layer>.<part>; other constants (shapes, bounds) have no dot in their names.
bool is_weight(const Value& value) {
  return value.kind == Value::Kind::constant && value.type.dtype == DType::f32 && value.name.find('.') != std::string::npos;
}

bool is_floating(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

}  // namespace

std::span<const Recipe> list() {
  return recipes;
}

Result<Recipe> find(const std::string& name) {
  std::vector<std::string> names;
  for (const Recipe& recipe : recipes) {
    if (recipe.name == name) return recipe;
    names.emplace_back(recipe.name);
  }
  const std::string near = suggestion(name, names);
  return Status(Code::unknown_name, fmt::format("there is no recipe {}", quoted(name)),
                near.empty() ? fmt::format("the recipes are {}", join(names, ", ")) : near);
}

Result<Net> build(const std::string& name, const RecipeOptions& options) {
  if (options.batch < 1) return Status(Code::invalid_argument, fmt::format("a batch of {}", options.batch), "give 1 or more");
  if (options.batch > largest_batch)
    return Status(Code::limit_exceeded, fmt::format("a batch of {} is over {}", options.batch, largest_batch), "give a smaller one");
  HEDDLE_TRY(const Recipe recipe, find(name));
  return recipe.write(options);
}

Status write_weights(const Net& net, const std::filesystem::path& file) {
  std::vector<TensorToWrite> tensors;
  for (const Value& value : net.values)
    if (is_weight(value)) tensors.push_back({value.name, value.type.dtype, value.content.blob->shape, value.content.blob->data});
  return write_safetensors(file, tensors).status();
}

int64_t parameter_count(const Net& net) {
  std::vector<char> excluded(net.values.size(), 0);
  int64_t count = 0;
  for (const Node& node : net.nodes) {
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i].valid() && trainable::holds_no_parameter(node, i)) excluded[node.inputs[i].index] = 1;
    for (const Attribute& attribute : node.attributes)
      if (const auto* subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value)) count += parameter_count(**subnet);
  }
  const bool learns = std::any_of(net.variables.begin(), net.variables.end(), [](const Variable& v) { return v.trainable; });
  for (const Variable& variable : net.variables) {
    const std::optional<Shape> shape = variable.type.fixed_shape();
    const bool counts = shape && shape->rank() > 0 && is_floating(variable.type.dtype) && !excluded[variable.first.index];
    if (counts && variable.trainable == learns) count += shape->element_count();
  }
  for (size_t i = 0; i < net.values.size(); ++i) {
    const Value& value = net.values[i];
    const Blob* content = value.kind == Value::Kind::constant ? value.content.blob.get() : nullptr;
    if (content && !excluded[i] && content->shape.rank() > 0 && is_floating(content->dtype)) count += content->shape.element_count();
  }
  return count;
}

}  // namespace heddle::models
