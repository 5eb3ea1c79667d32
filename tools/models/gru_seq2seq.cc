// A translator (Luong et al., 2015, with GRU cells): a bidirectional encoder; a decoder that begins with the encoder's last states, takes
// the target's tokens (teacher forcing) and attends to the encoder's outputs by dot products.
#include "models/builders.h"
#include "models/layers.h"

namespace heddle::models {
namespace {

constexpr int64_t source_length = 32;
constexpr int64_t target_length = 24;
constexpr int64_t translator_vocabulary = 8000;
constexpr int64_t translator_embedding = 256;
constexpr int64_t encoder_hidden = 256;  // of each direction
constexpr int64_t decoder_hidden = 2 * encoder_hidden;

using Ints = std::vector<int64_t>;

// tokens [batch, time] → [time, batch, translator_embedding]
ValueId embed_by_time(LayerBuilder& b, const std::string& name, ValueId tokens) {
  const ValueId rows = b.embedding(name, tokens, translator_vocabulary, translator_embedding);
  return b.net().add1("Transpose", name + ".time_first", {rows}, {{"perm", Ints{1, 0, 2}}});
}

struct Encoded {
  ValueId states;  // [batch, source_length, decoder_hidden]
  ValueId last;    // [1, batch, decoder_hidden]
};

Encoded encode(LayerBuilder& b, ValueId source, ValueId merge) {
  NetBuilder& net = b.net();
  const ValueId x = embed_by_time(b, "source_embedding", source);
  const RecurrentOutputs y =
      b.gru("encoder", x, {.in = translator_embedding, .hidden = encoder_hidden, .bidirectional = true, .last = true});
  const ValueId by_batch = net.add1("Transpose", "encoder.states", {y.all}, {{"perm", Ints{2, 0, 1, 3}}});
  const ValueId last = net.add1("Transpose", "encoder.last", {y.last}, {{"perm", Ints{1, 0, 2}}});
  return {net.add1("Reshape", "encoder.states.merge", {by_batch, merge}),
          net.add1("Reshape", "encoder.last.merge", {last, net.constant_ints("state_shape", {1, -1, decoder_hidden})})};
}

// Queries [batch, target_length, decoder_hidden] → the same, tanh of the mixture of states and the query
ValueId attend(LayerBuilder& b, ValueId queries, ValueId states) {
  NetBuilder& net = b.net();
  const ValueId keys = net.add1("Transpose", "attention.keys", {states}, {{"perm", Ints{0, 2, 1}}});
  const ValueId scores = net.add1("MatMul", "attention.scores", {queries, keys});
  const ValueId weights = net.add1("Softmax", "attention.weights", {scores}, {{"axis", int64_t{-1}}});
  const ValueId mixed = net.add1("MatMul", "attention.mixed", {weights, states});
  const ValueId joined = net.add1("Concat", "attention.joined", {mixed, queries}, {{"axis", int64_t{-1}}});
  return net.add1("Tanh", "attention.tanh", {b.dense("attention.combine", joined, 2 * decoder_hidden, decoder_hidden, 2)});
}

}  // namespace

Net gru_seq2seq(const RecipeOptions& options) {
  LayerBuilder b("gru_seq2seq", options);
  NetBuilder& net = b.net();
  const ValueId source = net.input("source", DType::i64, Shape{options.batch, source_length});
  const ValueId target = net.input("target", DType::i64, Shape{options.batch, target_length});
  const ValueId merge = net.constant_ints("merge_shape", {0, 0, decoder_hidden});
  const Encoded encoded = encode(b, source, merge);
  const ValueId x = embed_by_time(b, "target_embedding", target);
  const ValueId y = b.gru("decoder", x, {.in = translator_embedding, .hidden = decoder_hidden}, encoded.last).all;
  const ValueId by_batch = net.add1("Transpose", "decoder.states", {y}, {{"perm", Ints{2, 0, 1, 3}}});
  const ValueId queries = net.add1("Reshape", "decoder.states.merge", {by_batch, merge});
  return b.finish(b.dense("output", attend(b, queries, encoded.states), decoder_hidden, translator_vocabulary, 2), "logits");
}

}  // namespace heddle::models
