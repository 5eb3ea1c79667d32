// DenseNet-121 (Huang et al., 2017), as torchvision builds it.
#include <fmt/format.h>

#include <array>

#include "models/builders.h"
#include "models/layers.h"

namespace heddle::models {
namespace {

constexpr int64_t growth = 32;
constexpr std::array<int, 4> dense_blocks = {6, 12, 24, 16};

// Normalisation and ReLU, followed by a convolution. `index`: for their names in the layer, "" where it has one of each
ValueId norm_relu_conv(LayerBuilder& b, const std::string& layer, const std::string& index, ValueId x, const ConvSpec& spec) {
  x = b.relu(layer + ".relu" + index, b.batch_norm(layer + ".norm" + index, x, spec.in));
  return b.conv(layer + ".conv" + index, x, spec);
}

// Each layer takes the outputs of all earlier ones: [n, in, ...] → [n, in + layers * growth, ...]
ValueId dense_block(LayerBuilder& b, const std::string& block, ValueId x, int64_t in, int layers) {
  std::vector<ValueId> features = {x};
  const auto joined = [&](const std::string& name) {
    return features.size() == 1 ? x : b.net().add1("Concat", name, features, {{"axis", int64_t{1}}});
  };
  for (int i = 1; i <= layers; ++i, in += growth) {
    const std::string layer = fmt::format("{}.denselayer{}", block, i);
    const ValueId narrow = norm_relu_conv(b, layer, "1", joined(layer + ".concat"), ConvSpec::square(in, 4 * growth, 1));
    features.push_back(norm_relu_conv(b, layer, "2", narrow, ConvSpec::square(4 * growth, growth, 3, 1, 1)));
  }
  return joined(block + ".concat");
}

}  // namespace

Net densenet121(const RecipeOptions& options) {
  LayerBuilder b("densenet121", options);
  ValueId x = b.conv("features.conv0", b.image(3, 224), ConvSpec::square(3, 64, 7, 2, 3));
  x = b.relu("features.relu0", b.batch_norm("features.norm0", x, 64));
  x = b.pool("features.pool0", x, Pool::max, 3, 2, 1);
  int64_t width = 64;
  for (size_t i = 0; i < dense_blocks.size(); ++i) {
    x = dense_block(b, fmt::format("features.denseblock{}", i + 1), x, width, dense_blocks[i]);
    width += dense_blocks[i] * growth;
    if (i + 1 == dense_blocks.size()) break;
    const std::string transition = fmt::format("features.transition{}", i + 1);
    x = norm_relu_conv(b, transition, "", x, ConvSpec::square(width, width / 2, 1));
    x = b.pool(transition + ".pool", x, Pool::average, 2, 2);
    width /= 2;
  }
  x = b.relu("relu", b.batch_norm("features.norm5", x, width));
  return b.finish(b.linear("classifier", b.global_pool("pool", x), width, 1000, 2), "logits");
}

}  // namespace heddle::models
