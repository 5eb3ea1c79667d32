// A tagger of words: two bidirectional LSTM layers over embeddings (Huang et al., 2015, without its CRF), the 45 tags of the Penn Treebank.
#include "models/builders.h"
#include "models/layers.h"

namespace heddle::models {
namespace {

constexpr int64_t tagger_length = 64;
constexpr int64_t tagger_vocabulary = 10'000;
constexpr int64_t tagger_embedding = 128;
constexpr int64_t tagger_hidden = 256;
constexpr int64_t tags = 45;
// The gain of the weights that read states, which are about a third as large as embeddings.
constexpr float state_gain = 3;

}  // namespace

Net lstm_tagger(const RecipeOptions& options) {
  LayerBuilder b("lstm_tagger", options);
  NetBuilder& net = b.net();
  const std::vector<int64_t> swap = {1, 0, 2}, directions_last = {0, 2, 1, 3}, batch_first = {2, 0, 1, 3};
  const ValueId both = net.constant_ints("both_directions", {0, 0, 2 * tagger_hidden});
  const ValueId tokens = net.input("tokens", DType::i64, Shape{options.batch, tagger_length});
  ValueId x = b.embedding("embedding", tokens, tagger_vocabulary, tagger_embedding);
  x = net.add1("Transpose", "time_first", {x}, {{"perm", swap}});
  x = b.lstm("lstm.l0", x, {.in = tagger_embedding, .hidden = tagger_hidden, .bidirectional = true}).all;
  x = net.add1("Transpose", "lstm.l0.directions", {x}, {{"perm", directions_last}});
  x = net.add1("Reshape", "lstm.l0.merge", {x, both});
  x = b.lstm("lstm.l1", x, {.in = 2 * tagger_hidden, .hidden = tagger_hidden, .bidirectional = true, .gain = state_gain}).all;
  x = net.add1("Transpose", "lstm.l1.directions", {x}, {{"perm", batch_first}});
  x = net.add1("Reshape", "lstm.l1.merge", {x, both});
  return b.finish(b.dense("tag", x, 2 * tagger_hidden, tags, state_gain), "logits");
}

}  // namespace heddle::models
