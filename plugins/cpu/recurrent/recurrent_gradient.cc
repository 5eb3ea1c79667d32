// The gradients of RNN, GRU and LSTM as operators of a net.
#include "recurrent/recurrent_gradient.h"

#include "recurrent/recurrent_gradient_cells.h"
#include "shared/recurrent/recurrent_shape.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

// Multiplies all steps of all batch entries at once: tensors of [time, batch, width] are matrices of [time * batch, width].
template <class CellKind>
class LayerGradient {
 public:
  LayerGradient(GradientContext& g, const char* op) : g_(g), directions_(g.attributes().s("direction") == "bidirectional" ? 2 : 1) {
    std::vector<GradientValue> read = {
        g.needed_y(sums_port(CellKind::gates)), g.x(port_r), g.x(port_lengths), g.x(port_h), g.dy(0), g.dy(1),
        g.dy(sums_port(CellKind::gates))};
    if (CellKind::has_cell) read.insert(read.end(), {g.x(port_c), g.dy(2), g.x(port_p)});
    made_ = g.emit_all(op, read,
                       CellKind::has_cell          ? 5
                       : CellKind::has_hidden_part ? 4
                                                   : 3,
                       {g.same("activations"), g.same("activation_alpha"), g.same("activation_beta"), g.same("clip"), g.same("direction"),
                        g.same("layout"), CellKind::variant ? g.same(CellKind::variant) : GradientAttribute(nullptr)},
                       "heddle");
  }

  void give() {
    const GradientValue dsums = made_[out_dsums];
    if (g_.wants(port_x)) g_.give(port_x, g_.emit("MatMul", {dsums, matrix(g_.x(port_w))}));
    if (g_.wants(port_w)) g_.give(port_w, like(port_w, product(dsums, g_.x(port_x))));
    if (g_.wants(port_r)) g_.give(port_r, like(port_r, of_states()));
    if (g_.wants(port_b)) g_.give(port_b, of_biases());
    if (g_.wants(port_h)) g_.give(port_h, made_[out_dh]);
    if (!CellKind::has_cell) return;
    if (g_.wants(port_c)) g_.give(port_c, made_[out_dc]);
    if (g_.wants(port_p)) g_.give(port_p, g_.emit("ReduceSum", {made_[out_dp], g_.ints({1})}, {{"keepdims", 0}}));
  }

 private:
  // Reshapes [..., a, b] to [... * a, b].
  GradientValue matrix(GradientValue value) { return g_.emit("Flatten", {value}, {{"axis", 2}}); }
  GradientValue like(uint32_t input, GradientValue value) { return reshape(g_, value, shape_of(g_, g_.x(input))); }
  // The transposed matrix a times b.
  GradientValue product(GradientValue a, GradientValue b) { return g_.emit("Gemm", {matrix(a), matrix(b)}, {{"transA", 1}}); }
  // Splits the last extent into `count` equal parts.
  std::vector<GradientValue> parts(GradientValue value, int count) {
    if (count == 1) return {value};
    return g_.emit_all("Split", {value}, static_cast<uint32_t>(count), {{"axis", 2}, {"num_outputs", count}});
  }
  bool scales_products() const { return CellKind::has_hidden_part && g_.attributes().i(CellKind::variant) != 0; }

  // The gradient of R: one product for all gates of a direction, but the hidden gate's may have another state.
  GradientValue of_states() {
    constexpr int gates = CellKind::has_hidden_part ? CellKind::gates : 1;
    const std::vector<GradientValue> states = parts(made_[out_states], directions_), dsums = parts(made_[out_dsums], directions_ * gates);
    std::vector<GradientValue> hidden_part, products;
    if (CellKind::has_hidden_part) hidden_part = parts(made_[out_hidden_part], directions_);
    for (size_t i = 0; i < dsums.size(); ++i) {
      const size_t d = i / gates;
      if (!CellKind::has_hidden_part || i % gates != gates - 1)
        products.push_back(product(dsums[i], states[d]));
      else
        products.push_back(scales_products() ? product(hidden_part[d], states[d]) : product(dsums[i], hidden_part[d]));
    }
    return products.size() == 1 ? products[0] : g_.emit("Concat", products, {{"axis", 0}});
  }
  // Sums to [direction, rows].
  GradientValue sum(GradientValue rows) {
    return reshape(g_, g_.emit("ReduceSum", {rows, g_.ints({0, 1})}, {{"keepdims", 0}}), g_.ints({directions_, -1}));
  }
  GradientValue of_biases() {
    const GradientValue of_w = sum(made_[out_dsums]);
    if (!scales_products()) return g_.emit("Concat", {of_w, of_w}, {{"axis", 1}});
    const std::vector<GradientValue> gates = g_.emit_all("Split", {of_w}, CellKind::gates, {{"axis", 1}, {"num_outputs", CellKind::gates}});
    return g_.emit("Concat", {of_w, gates[0], gates[1], sum(made_[out_hidden_part])}, {{"axis", 1}});
  }

  GradientContext& g_;
  const int directions_;
  std::vector<GradientValue> made_;
};

}  // namespace

Status rnn_gradient(GradientContext& g) {
  LayerGradient<RnnGradientCell>(g, "RnnGradient").give();
  return {};
}
Status gru_gradient(GradientContext& g) {
  LayerGradient<GruGradientCell>(g, "GruGradient").give();
  return {};
}
Status lstm_gradient(GradientContext& g) {
  LayerGradient<LstmGradientCell>(g, "LstmGradient").give();
  return {};
}

}  // namespace heddle::cpu
