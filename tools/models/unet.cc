// U-Net (Ronneberger et al., 2015) with padded convolutions and batch normalisation: 4 levels, 32 channels in the first. Names are those of
// mateuszbuda/brain-segmentation-pytorch.
#include <fmt/format.h>

#include <array>

#include "models/builders.h"
#include "models/layers.h"

namespace heddle::models {
namespace {

constexpr int64_t first_width = 32;
constexpr int unet_levels = 4;
constexpr int64_t classes = 2;

// Two times a convolution 3 x 3, normalisation and ReLU. `prefix`: <block>.<label>
ValueId two_convolutions(LayerBuilder& b, const std::string& prefix, ValueId x, int64_t in, int64_t out) {
  for (const int i : {1, 2}) {
    x = b.conv(fmt::format("{}conv{}", prefix, i), x, ConvSpec::square(i == 1 ? in : out, out, 3, 1, 1));
    x = b.relu(fmt::format("{}relu{}", prefix, i), b.batch_norm(fmt::format("{}norm{}", prefix, i), x, out));
  }
  return x;
}

}  // namespace

Net unet(const RecipeOptions& options) {
  LayerBuilder b("unet", options);
  ValueId x = b.image(3, 128);
  std::array<ValueId, unet_levels> skipped;
  int64_t in = 3, width = first_width;
  for (int level = 1; level <= unet_levels; ++level, in = width, width *= 2) {
    x = two_convolutions(b, fmt::format("encoder{0}.enc{0}", level), x, in, width);
    skipped[static_cast<size_t>(level - 1)] = x;
    x = b.pool(fmt::format("pool{}", level), x, Pool::max, 2, 2);
  }
  x = two_convolutions(b, "bottleneck.bottleneck", x, in, width);
  for (int level = unet_levels; level >= 1; --level, width /= 2) {
    const ValueId up = b.upsample(fmt::format("upconv{}", level), x, width, width / 2);
    x = b.net().add1("Concat", fmt::format("concat{}", level), {up, skipped[static_cast<size_t>(level - 1)]}, {{"axis", int64_t{1}}});
    x = two_convolutions(b, fmt::format("decoder{0}.dec{0}", level), x, width, width / 2);
  }
  return b.finish(b.conv_bias("conv", x, ConvSpec::square(width, classes, 1)), "logits");
}

}  // namespace heddle::models
