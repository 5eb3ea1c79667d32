// A BERT base encoder (Devlin et al., 2018): 12 post-norm layers of width 768, 12 heads, exact GELU.
#include <fmt/format.h>

#include "models/builders.h"
#include "models/layers.h"

namespace heddle::models {
namespace {

constexpr int64_t layers = 12;
constexpr int64_t width = 768;
constexpr int64_t heads = 12;
constexpr int64_t head_width = width / heads;
constexpr int64_t length = 128;
constexpr int64_t vocabulary = 30522;
constexpr int64_t positions = 512;
constexpr double layer_norm_epsilon = 1e-12;

using Ints = std::vector<int64_t>;

ValueId layer_norm(LayerBuilder& b, const std::string& name, ValueId x) {
  const ValueId scale = b.parameter_between(name + ".weight", Shape{width}, 0.8f, 1.2f);
  const ValueId bias = b.parameter_between(name + ".bias", Shape{width}, -0.1f, 0.1f);
  return b.net().add1("LayerNormalization", name, {x, scale, bias}, {{"axis", int64_t{-1}}, {"epsilon", layer_norm_epsilon}});
}

struct Shapes {
  ValueId split;  // [batch, length, heads, head_width]
  ValueId merge;  // [batch, length, width]
  ValueId scale;  // 1 / sqrt(head_width)
};

ValueId split_heads(LayerBuilder& b, const Shapes& shapes, const std::string& name, ValueId x, Ints order) {
  const ValueId split = b.net().add1("Reshape", name + ".split", {x, shapes.split});
  return b.net().add1("Transpose", name + ".heads", {split}, {{"perm", std::move(order)}});
}

// [batch, length, width] → the same
ValueId attention(LayerBuilder& b, const Shapes& shapes, const std::string& name, ValueId x) {
  NetBuilder& net = b.net();
  const ValueId query = split_heads(b, shapes, name + ".query", b.dense(name + ".query", x, width, width), {0, 2, 1, 3});
  const ValueId key = split_heads(b, shapes, name + ".key", b.dense(name + ".key", x, width, width), {0, 2, 3, 1});
  const ValueId value = split_heads(b, shapes, name + ".value", b.dense(name + ".value", x, width, width), {0, 2, 1, 3});
  const ValueId scores = net.add1("Mul", name + ".scaled", {net.add1("MatMul", name + ".scores", {query, key}), shapes.scale});
  const ValueId weights = net.add1("Softmax", name + ".weights", {scores}, {{"axis", int64_t{-1}}});
  const ValueId mixed = net.add1("MatMul", name + ".mixed", {weights, value});
  const ValueId rows = net.add1("Transpose", name + ".rows", {mixed}, {{"perm", Ints{0, 2, 1, 3}}});
  return b.dense(name + ".output", net.add1("Reshape", name + ".merge", {rows, shapes.merge}), width, width);
}

ValueId feed_forward(LayerBuilder& b, const std::string& name, ValueId x) {
  const ValueId wide = b.dense(name + ".intermediate", x, width, 4 * width, 1.4f);
  const ValueId active = b.net().add1("Gelu", name + ".gelu", {wide}, {{"approximate", std::string("none")}});
  return b.dense(name + ".output", active, 4 * width, width);
}

ValueId embed(LayerBuilder& b, ValueId tokens) {
  NetBuilder& net = b.net();
  Ints places(length);
  for (int64_t i = 0; i < length; ++i) places[static_cast<size_t>(i)] = i;
  const ValueId words = b.parameter("embeddings.word.weight", Shape{vocabulary, width}, 1);
  const ValueId table = b.parameter("embeddings.position.weight", Shape{positions, width}, 1);
  const ValueId word = net.add1("Gather", "embeddings.word", {words, tokens}, {{"axis", int64_t{0}}});
  const ValueId place = net.add1("Gather", "embeddings.position", {table, net.constant_ints("positions", places)}, {{"axis", int64_t{0}}});
  return layer_norm(b, "embeddings.norm", net.add1("Add", "embeddings.sum", {word, place}));
}

// Uses the position of the first token, as BERT classifies sequences: [batch, length, width] → [batch, 2]
ValueId classifier(LayerBuilder& b, ValueId x) {
  NetBuilder& net = b.net();
  const int64_t place = 0;
  const ValueId first_place = net.constant("first_place", Blob::copy_of(DType::i64, Shape{}, &place));
  const ValueId first = net.add1("Gather", "first", {x, first_place}, {{"axis", int64_t{1}}});
  const ValueId pooled = net.add1("Tanh", "pooler.tanh", {b.dense("pooler.dense", first, width, width)});
  return b.dense("classifier", pooled, width, 2);
}

}  // namespace

Net encoder(const RecipeOptions& options) {
  LayerBuilder b("encoder", options);
  NetBuilder& net = b.net();
  ValueId x = embed(b, net.input("tokens", DType::i64, Shape{options.batch, length}));
  const Shapes shapes{net.constant_ints("split_shape", {0, 0, heads, head_width}), net.constant_ints("merge_shape", {0, 0, width}),
                      net.constant_float("scale", 0.125f)};
  static_assert(head_width == 64, "scale is 1 / sqrt(64)");
  for (int64_t i = 0; i < layers; ++i) {
    const std::string name = fmt::format("layer.{}", i);
    const ValueId attended = attention(b, shapes, name + ".attention", x);
    x = layer_norm(b, name + ".attention.norm", net.add1("Add", name + ".attention.sum", {x, attended}));
    const ValueId widened = feed_forward(b, name, x);
    x = layer_norm(b, name + ".norm", net.add1("Add", name + ".sum", {x, widened}));
  }
  return options.purpose != Purpose::inference ? b.finish(classifier(b, x), "logits") : b.finish(x, "hidden");
}

}  // namespace heddle::models
