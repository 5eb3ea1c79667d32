// A recommendation model (DLRM, Naumov et al., 2019) for Criteo's 13 dense and 26 categorical features: a table and a bag of lookups for
// each of the latter, the dot products of all pairs of vectors, and two multilayer perceptrons. Names are those of facebookresearch/dlrm.
#include <fmt/format.h>

#include <cmath>

#include "models/builders.h"
#include "models/layers.h"

namespace heddle::models {
namespace {

constexpr int64_t dense_features = 13;
constexpr int64_t tables = 26;
constexpr int64_t table_rows = 10'000;
constexpr int64_t vector_width = 64;
constexpr int64_t lookups = 20;  // of a bag
constexpr int64_t vectors = tables + 1;
constexpr int64_t pairs = vectors * (vectors - 1) / 2;

using Ints = std::vector<int64_t>;

ValueId linear_relu(LayerBuilder& b, const std::string& net, int index, ValueId x, int64_t in, int64_t out) {
  return b.relu(fmt::format("{}.{}", net, index + 1), b.linear(fmt::format("{}.{}", net, index), x, in, out, 1.4f));
}

// indices [batch, lookups] → sums of rows [batch, vector_width], with a deviation for which the product of two such sums has deviation 1
// `axis`: that of the lookups of a bag; invalid where the net is trained.
ValueId bag(LayerBuilder& b, const std::string& name, ValueId indices, ValueId axis) {
  const float deviation = 1 / std::sqrt(static_cast<float>(lookups) * std::sqrt(static_cast<float>(vector_width)));
  if (!axis.valid()) return b.bag(name, indices, table_rows, vector_width, deviation);
  const ValueId rows = b.embedding(name, indices, table_rows, vector_width, deviation);
  return b.net().add1("ReduceSum", name + ".sum", {rows, axis}, {{"keepdims", int64_t{0}}});
}

// [batch, vectors, vector_width] → [batch, pairs]: the products below the diagonal, row by row
ValueId interact(LayerBuilder& b, ValueId joined) {
  NetBuilder& net = b.net();
  Ints below;
  for (int64_t i = 0; i < vectors; ++i)
    for (int64_t j = 0; j < i; ++j) below.push_back(i * vectors + j);
  const ValueId across = net.add1("Transpose", "interaction.across", {joined}, {{"perm", Ints{0, 2, 1}}});
  const ValueId products = net.add1("MatMul", "interaction.products", {joined, across});
  const ValueId flat = net.add1("Flatten", "interaction.flat", {products}, {{"axis", int64_t{1}}});
  return net.add1("Gather", "interaction.pairs", {flat, net.constant_ints("below_diagonal", below)}, {{"axis", int64_t{1}}});
}

}  // namespace

Net dlrm(const RecipeOptions& options) {
  LayerBuilder b("dlrm", options);
  NetBuilder& net = b.net();
  ValueId x = net.input("dense", DType::f32, Shape{options.batch, dense_features});
  std::vector<ValueId> indices;
  for (int64_t i = 0; i < tables; ++i)
    indices.push_back(net.input(fmt::format("indices_{}", i), DType::i64, Shape{options.batch, lookups}));
  x = linear_relu(b, "bot_l", 0, x, dense_features, 512);
  x = linear_relu(b, "bot_l", 2, x, 512, 256);
  x = linear_relu(b, "bot_l", 4, x, 256, vector_width);
  const ValueId axis = options.purpose != Purpose::inference ? ValueId() : net.constant_ints("bag_axis", {1});
  std::vector<ValueId> all = {x};
  for (int64_t i = 0; i < tables; ++i) all.push_back(bag(b, fmt::format("emb_l.{}", i), indices[static_cast<size_t>(i)], axis));
  const ValueId flat = net.add1("Concat", "interaction.concat", std::move(all), {{"axis", int64_t{1}}});
  const ValueId shape = net.constant_ints("vectors_shape", {0, vectors, vector_width});
  const ValueId products = interact(b, net.add1("Reshape", "interaction.vectors", {flat, shape}));
  x = net.add1("Concat", "interaction", {x, products}, {{"axis", int64_t{1}}});
  x = linear_relu(b, "top_l", 0, x, vector_width + pairs, 512);
  x = linear_relu(b, "top_l", 2, x, 512, 256);
  return b.finish(b.linear("top_l.4", x, 256, 1), "logits");
}

}  // namespace heddle::models
