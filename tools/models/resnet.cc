// ResNet-18 and ResNet-50 (He et al., 2015), as torchvision builds them.
#include <fmt/format.h>

#include <array>

#include "models/builders.h"
#include "models/layers.h"

namespace heddle::models {
namespace {

// Scale of the last normalisation of a block: small, so that sixteen residual sums in a row stay O(1).
constexpr float residual_gain = 0.3f;

struct ResidualBlock {
  std::string name;
  int64_t in;
  int64_t width;
  int64_t out;
  int64_t stride;
};

ValueId shortcut(LayerBuilder& b, const ResidualBlock& block, ValueId x) {
  if (block.stride == 1 && block.in == block.out) return x;
  const ValueId projected = b.conv(block.name + ".downsample.0", x, ConvSpec::square(block.in, block.out, 1, block.stride));
  return b.batch_norm(block.name + ".downsample.1", projected, block.out);
}

ValueId join_residual(LayerBuilder& b, const ResidualBlock& block, ValueId branch, ValueId x) {
  const ValueId sum = b.net().add1("Add", block.name + ".add", {branch, shortcut(b, block, x)});
  return b.relu(block.name + ".relu", sum);
}

ValueId conv_norm(LayerBuilder& b, const ResidualBlock& block, const std::string& index, ValueId x, const ConvSpec& spec, float gain = 1) {
  return b.batch_norm(block.name + ".bn" + index, b.conv(block.name + ".conv" + index, x, spec), spec.out, gain);
}

ValueId basic_block(LayerBuilder& b, const ResidualBlock& block, ValueId x) {
  ValueId y = conv_norm(b, block, "1", x, ConvSpec::square(block.in, block.width, 3, block.stride, 1));
  y = b.relu(block.name + ".relu1", y);
  y = conv_norm(b, block, "2", y, ConvSpec::square(block.width, block.out, 3, 1, 1), residual_gain);
  return join_residual(b, block, y, x);
}

ValueId bottleneck(LayerBuilder& b, const ResidualBlock& block, ValueId x) {
  ValueId y = conv_norm(b, block, "1", x, ConvSpec::square(block.in, block.width, 1));
  y = b.relu(block.name + ".relu1", y);
  y = conv_norm(b, block, "2", y, ConvSpec::square(block.width, block.width, 3, block.stride, 1));
  y = b.relu(block.name + ".relu2", y);
  y = conv_norm(b, block, "3", y, ConvSpec::square(block.width, block.out, 1), residual_gain);
  return join_residual(b, block, y, x);
}

using BlockFunction = ValueId (*)(LayerBuilder&, const ResidualBlock&, ValueId);

Net resnet(const std::string& name, const RecipeOptions& options, BlockFunction block, int64_t expansion, std::array<int, 4> depths) {
  LayerBuilder b(name, options);
  ValueId x = b.conv("conv1", b.image(3, 224), ConvSpec::square(3, 64, 7, 2, 3));
  x = b.relu("relu", b.batch_norm("bn1", x, 64));
  x = b.pool("maxpool", x, Pool::max, 3, 2, 1);
  int64_t in = 64;
  for (size_t stage = 0; stage < depths.size(); ++stage) {
    const int64_t width = int64_t{64} << stage;
    for (int i = 0; i < depths[stage]; ++i) {
      const int64_t stride = i == 0 && stage > 0 ? 2 : 1;
      const std::string block_name = fmt::format("layer{}.{}", stage + 1, i);
      x = block(b, {block_name, in, width, width * expansion, stride}, x);
      in = width * expansion;
    }
  }
  return b.finish(b.linear("fc", b.global_pool("avgpool", x), in, 1000), "logits");
}

}  // namespace

Net resnet18(const RecipeOptions& options) {
  return resnet("resnet18", options, basic_block, 1, {2, 2, 2, 2});
}

Net resnet50(const RecipeOptions& options) {
  return resnet("resnet50", options, bottleneck, 4, {3, 4, 6, 3});
}

}  // namespace heddle::models
