// MobileNet v2 (Sandler et al., 2018), width 1.0, as torchvision builds it.
#include <fmt/format.h>

#include <vector>

#include "models/builders.h"
#include "models/layers.h"

namespace heddle::models {
namespace {

ValueId conv_norm(LayerBuilder& b, const std::string& conv, const std::string& norm, ValueId x, const ConvSpec& spec, float gain = 1) {
  return b.batch_norm(norm, b.conv(conv, x, spec), spec.out, gain);
}

// ReLU6: Clip to [0, 6], bounds as inputs shared by all.
struct Relu6 {
  LayerBuilder& b;
  ValueId least;
  ValueId most;
  ValueId operator()(const std::string& name, ValueId x) const { return b.net().add1("Clip", name, {x, least, most}); }
};

struct InvertedResidual {
  std::string name;
  int64_t in;
  int64_t out;
  int64_t stride;
  int64_t expansion;
};

ValueId inverted_residual(LayerBuilder& b, const Relu6& relu6, const InvertedResidual& block, ValueId x) {
  const int64_t hidden = block.in * block.expansion;
  const std::string conv = block.name + ".conv.";
  ValueId y = x;
  int index = 0;
  if (block.expansion != 1) {
    y = conv_norm(b, conv + "0.0", conv + "0.1", y, ConvSpec::square(block.in, hidden, 1));
    y = relu6(conv + "0.2", y);
    index = 1;
  }
  const std::string depthwise = conv + fmt::to_string(index);
  y = conv_norm(b, depthwise + ".0", depthwise + ".1", y, ConvSpec::square(hidden, hidden, 3, block.stride, 1, hidden));
  y = relu6(depthwise + ".2", y);
  const bool residual = block.stride == 1 && block.in == block.out;
  y = conv_norm(b, conv + fmt::to_string(index + 1), conv + fmt::to_string(index + 2), y, ConvSpec::square(hidden, block.out, 1),
                residual ? 0.5f : 1.0f);
  return residual ? b.net().add1("Add", block.name + ".add", {x, y}) : y;
}

struct Stage {
  int64_t expansion;
  int64_t out;
  int repeats;
  int64_t stride;
};
constexpr Stage stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

}  // namespace

Net mobilenet_v2(const RecipeOptions& options) {
  LayerBuilder b("mobilenet_v2", options);
  const ValueId image = b.image(3, 224);
  const Relu6 relu6{b, b.net().constant_float("relu6_least", 0), b.net().constant_float("relu6_most", 6)};
  ValueId x = conv_norm(b, "features.0.0", "features.0.1", image, ConvSpec::square(3, 32, 3, 2, 1));
  x = relu6("features.0.2", x);
  int64_t in = 32;
  int index = 1;
  for (const Stage& stage : stages)
    for (int i = 0; i < stage.repeats; ++i) {
      const std::string name = fmt::format("features.{}", index++);
      x = inverted_residual(b, relu6, {name, in, stage.out, i == 0 ? stage.stride : 1, stage.expansion}, x);
      in = stage.out;
    }
  x = conv_norm(b, "features.18.0", "features.18.1", x, ConvSpec::square(in, 1280, 1));
  x = relu6("features.18.2", x);
  return b.finish(b.linear("classifier.1", b.global_pool("pool", x), 1280, 1000), "logits");
}

}  // namespace heddle::models
