// Small nets: LeNet-5 (LeCun et al., 1998, with ReLU and max pooling), one for scikit-learn's digits of 8 x 8, one for
// photographs of few kinds, and a multilayer perceptron.
#include <fmt/format.h>

#include "models/builders.h"
#include "models/layers.h"

namespace heddle::models {

Net lenet(const RecipeOptions& options) {
  LayerBuilder b("lenet", options);
  ValueId x = b.relu("relu1", b.conv_bias("conv1", b.image(1, 28), ConvSpec::square(1, 6, 5, 1, 2)));
  x = b.pool("pool1", x, Pool::max, 2, 2);
  x = b.relu("relu2", b.conv_bias("conv2", x, ConvSpec::square(6, 16, 5)));
  x = b.pool("pool2", x, Pool::max, 2, 2);
  x = b.net().add1("Flatten", "flatten", {x}, {{"axis", int64_t{1}}});
  x = b.relu("relu3", b.linear("fc1", x, 400, 120, 1.4f));
  x = b.relu("relu4", b.linear("fc2", x, 120, 84, 1.4f));
  return b.finish(b.linear("fc3", x, 84, 10), "logits");
}

Net digits(const RecipeOptions& options) {
  LayerBuilder b("digits", options);
  ValueId x = b.relu("relu1", b.batch_norm("bn1", b.conv("conv1", b.image(1, 8), ConvSpec::square(1, 32, 3, 1, 1)), 32));
  x = b.relu("relu2", b.batch_norm("bn2", b.conv("conv2", x, ConvSpec::square(32, 64, 3, 1, 1)), 64));
  x = b.dropout("dropout1", b.pool("pool1", x, Pool::max, 2, 2), 0.3f);
  x = b.relu("relu3", b.batch_norm("bn3", b.conv("conv3", x, ConvSpec::square(64, 64, 3, 1, 1)), 64));
  x = b.dropout("dropout2", b.pool("pool2", x, Pool::max, 2, 2), 0.3f);
  x = b.net().add1("Flatten", "flatten", {x}, {{"axis", int64_t{1}}});
  x = b.dropout("dropout3", b.relu("relu4", b.linear("fc1", x, 256, 128, 1.4f)), 0.5f);
  return b.finish(b.linear("fc2", x, 128, 10), "logits");
}

Net photos(const RecipeOptions& options) {
  LayerBuilder b("photos", options);
  ValueId x = b.image(3, 64);
  int64_t channels = 3;
  int layer = 0;
  for (const int64_t wider : {32, 64, 128, 128}) {
    ++layer;
    x = b.conv(fmt::format("conv{}", layer), x, ConvSpec::square(channels, wider, 3, 1, 1));
    x = b.relu(fmt::format("relu{}", layer), b.batch_norm(fmt::format("bn{}", layer), x, wider));
    x = b.pool(fmt::format("pool{}", layer), x, Pool::max, 2, 2);
    channels = wider;
  }
  x = b.net().add1("Flatten", "flatten", {b.net().add1("GlobalAveragePool", "pool5", {x})}, {{"axis", int64_t{1}}});
  return b.finish(b.linear("fc", b.dropout("dropout", x, 0.3f), 128, 10), "logits");
}

Net mlp(const RecipeOptions& options) {
  LayerBuilder b("mlp", options);
  ValueId x = b.net().input("rows", DType::f32, Shape{options.batch, 784});
  x = b.relu("relu1", b.linear("fc1", x, 784, 512, 1.4f));
  x = b.relu("relu2", b.linear("fc2", x, 512, 256, 1.4f));
  return b.finish(b.linear("fc3", x, 256, 10), "logits");
}

}  // namespace heddle::models
