// heddle::RnnGradient, GruGradient and LstmGradient, and the gradients of RNN, GRU and LSTM that are built from them. See
// recurrent_gradient.h.
//
// Each (direction, batch entry) is independent of all others, as in the forward operators: tiles are ranges of them. What is summed over
// batch entries is summed by other operators.
#include "recurrent/recurrent_gradient.h"

#include <algorithm>
#include <string>
#include <utility>

#include "families.h"
#include "recurrent/recurrent_gradient_cells.h"
#include "shared/dims.h"
#include "shared/recurrent/recurrent_shape.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

// Inputs and outputs; the first of both are there for all cells.
enum Input : uint32_t { in_xw, in_r, in_b, in_lengths, in_h, in_dy, in_dy_h, in_c, in_dy_c, in_p };
enum Output : uint32_t { out_dxw, out_states, out_dh, out_hidden_part, out_dc = 3, out_dp };

template <class CellKind>
Status infer_gradient(InferContext& context) {
  RecurrentShape s;
  HEDDLE_PLUGIN_CHECK(read_gates_shape(context.attributes, context.dims(in_xw), context.dims(in_r), CellKind::gates, &s));
  const int64_t rows = CellKind::gates * s.hidden;
  const std::vector<int64_t> state =
      s.batch_first ? std::vector<int64_t>{s.batches, s.directions, s.hidden} : std::vector<int64_t>{s.directions, s.batches, s.hidden};
  const std::vector<int64_t> y = s.batch_first ? std::vector<int64_t>{s.batches, s.times, s.directions, s.hidden}
                                               : std::vector<int64_t>{s.times, s.directions, s.batches, s.hidden};
  const auto expect = [&](uint32_t port, const char* name, const std::vector<int64_t>& dims) -> Status {
    if (!context.has_input(port)) return {};
    const Dims given = context.dims(port);
    if (std::equal(given.begin(), given.end(), dims.begin(), dims.end())) return {};
    return invalid(std::string(name) + " has shape " + dims_text(given) + ", expected " + dims_text(dims_of(dims)));
  };
  HEDDLE_PLUGIN_CHECK(expect(in_b, "B", {s.directions, 2 * rows}));
  HEDDLE_PLUGIN_CHECK(expect(in_lengths, "sequence_lens", {s.batches}));
  HEDDLE_PLUGIN_CHECK(expect(in_h, "initial_h", state));
  HEDDLE_PLUGIN_CHECK(expect(in_dy, "dY", y));
  HEDDLE_PLUGIN_CHECK(expect(in_dy_h, "dY_h", state));
  HEDDLE_PLUGIN_CHECK(expect(in_c, "initial_c", state));
  HEDDLE_PLUGIN_CHECK(expect(in_dy_c, "dY_c", state));
  HEDDLE_PLUGIN_CHECK(expect(in_p, "P", {s.directions, 3 * s.hidden}));
  std::vector<int64_t> rows_dims = vector_of(context.dims(in_xw));
  context.set_dims(out_dxw, rows_dims);
  rows_dims.back() = s.directions * s.hidden;
  context.set_dims(out_states, rows_dims);
  context.set_dims(out_dh, state);
  if (CellKind::has_hidden_part) context.set_dims(out_hidden_part, rows_dims);
  if (!CellKind::has_cell) return {};
  context.set_dims(out_dc, state);
  context.set_dims(out_dp, {s.directions, s.batches, 3 * s.hidden});
  return {};
}

// Multiplications and additions with R, forward and back.
double flops_of(const RecurrentShape& s, int gates) {
  const auto n = static_cast<double>(s.hidden);
  return 4.0 * static_cast<double>(s.times) * static_cast<double>(s.batches) * s.directions * gates * n * n;
}
template <class CellKind>
void gradient_cost(CostContext& context) {
  RecurrentShape s;
  if (read_gates_shape(context.attributes, context.dims(in_xw), context.dims(in_r), CellKind::gates, &s).ok())
    context.set_flops(flops_of(s, CellKind::gates));
}

template <class CellKind>
class RecurrentGradient {
 public:
  Status create(const CreateContext& context) {
    const Attributes& a = context.attributes;
    backward_ = a.s("direction") == "reverse";
    clip_ = a.f("clip");
    variant_ = CellKind::variant && a.i(CellKind::variant) != 0;
    HEDDLE_PLUGIN_CHECK(read_gates_shape(a, dims_of(*context.input(in_xw)), dims_of(*context.input(in_r)), CellKind::gates, &shape_));
    return parse_activations(a, shape_.directions, CellKind::activations(), &activations_);
  }
  Status prepare(PrepareContext& context) {
    set_sequences(dims_of(*context.input(in_xw)), &shape_);
    const double products = flops_of(shape_, CellKind::gates) / 2;
    tiling_.plan(context, products, 4.0);
    const int64_t states = CellKind::has_cell && shape_.batches > 0 ? shape_.times + 1 : 0;
    context.set_scratch(0, static_cast<uint64_t>((fixed_rows + states) * shape_.hidden) * sizeof(double));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    if (context.inputs[in_xw]->dtype == HEDDLE_F64) return run_units<double>(context, begin, end);
    return run_units<float>(context, begin, end);
  }

 private:
  static constexpr int64_t fixed_rows = 4;  // of scratch: h, dh, dc, a workspace

  template <class T>
  static const T* data_of(const RunContext& context, uint32_t port) {
    return port < context.input_count && context.inputs[port] ? static_cast<const T*>(context.inputs[port]->data) : nullptr;
  }
  template <class T>
  static T* result_of(const RunContext& context, uint32_t port) {
    return static_cast<T*>(context.outputs[port]->data);
  }

  template <class T>
  Status run_units(const RunContext& context, int64_t begin, int64_t end) const {
    const Tiling::Range range = tiling_.range(shape_.directions * shape_.batches, begin, end);
    if (writes_nothing(context)) return {};
    CancellationPoll poll(context);
    for (int64_t unit = range.first; unit < range.last; ++unit)
      HEDDLE_PLUGIN_CHECK(run_unit<T>(context, unit / shape_.batches, unit % shape_.batches, poll));
    return {};
  }

  template <class T>
  GradientCell<T> cell_of(const RunContext& context, int64_t d, CancellationPoll& poll) const {
    const int64_t n = shape_.hidden, rows = CellKind::gates * n;
    const T* const bias = data_of<T>(context, in_b);
    const T* const peepholes = CellKind::has_cell ? data_of<T>(context, in_p) : nullptr;
    return {activations_.data() + static_cast<size_t>(d) * (activations_.size() / static_cast<size_t>(shape_.directions)),
            data_of<T>(context, in_r) + d * rows * n,
            bias ? bias + d * 2 * rows : nullptr,
            peepholes ? peepholes + d * 3 * n : nullptr,
            n,
            rows,
            static_cast<T>(clip_),
            variant_,
            &poll};
  }

  Status read_length(const RunContext& context, int64_t b, int64_t* length) const {
    const auto* const lengths = data_of<int32_t>(context, in_lengths);
    *length = lengths ? lengths[b] : shape_.times;
    if (*length >= 0 && *length <= shape_.times) return {};
    return invalid("sequence_lens[" + std::to_string(b) + "] is " + std::to_string(*length) + ", expected 0 to " +
                   std::to_string(shape_.times));
  }

  template <class T>
  GradientStep<T> step_at(const RunContext& context, int64_t t, int64_t d, int64_t b, T* c) const {
    const int64_t n = shape_.hidden, row = shape_.row(t, d, b);
    return {result_of<T>(context, out_dxw) + row * CellKind::gates * n, result_of<T>(context, out_states) + row * n,
            CellKind::has_hidden_part ? result_of<T>(context, out_hidden_part) + row * n : nullptr, c, c + n};
  }

  template <class T>
  Status run_unit(const RunContext& context, int64_t d, int64_t b, CancellationPoll& poll) const {
    const GradientCell<T> cell = cell_of<T>(context, d, poll);
    const int64_t n = shape_.hidden, state = shape_.state(d, b);
    int64_t length;
    HEDDLE_PLUGIN_CHECK(read_length(context, b, &length));
    // Row `row` of this, or zeros.
    const auto start = [n](const T* rows, int64_t row, T* values) {
      if (rows)
        std::copy(rows + row, rows + row + n, values);
      else
        std::fill_n(values, n, T(0));
    };
    T *const h = thread_scratch<T>(context), *const c = h + fixed_rows * n;
    const auto step_of = [&](int64_t step) {
      return step_at(context, backward_ || d == 1 ? length - 1 - step : step, d, b, CellKind::has_cell ? c + step * n : nullptr);
    };
    start(data_of<T>(context, in_h), state, h);
    if (CellKind::has_cell) start(data_of<T>(context, in_c), state, c);
    const T* const xw = data_of<T>(context, in_xw);
    for (int64_t step = 0; step < length; ++step) {
      const GradientStep<T> at = step_of(step);
      std::copy(h, h + n, at.before);
      CellKind::forward(cell, xw + (at.gates - result_of<T>(context, out_dxw)), at, h);
      if (poll.stops(n)) return cancelled();
    }
    Returning<T> to = {h + n, h + 2 * n, nullptr, h + 3 * n};
    start(data_of<T>(context, in_dy_h), state, to.dh);
    if constexpr (CellKind::has_cell) {
      start(data_of<T>(context, in_dy_c), state, to.dc);
      to.dp = result_of<T>(context, out_dp) + (d * shape_.batches + b) * 3 * n;
      std::fill_n(to.dp, 3 * n, T(0));
    }
    const T* const dy = data_of<T>(context, in_dy);
    for (int64_t step = length; step-- > 0;) {
      const int64_t t = backward_ || d == 1 ? length - 1 - step : step;
      if (dy) add_row(T(1), dy + shape_.y(t, d, b), to.dh, n);
      CellKind::back(cell, step_of(step), to);
      if (poll.stops(n)) return cancelled();
    }
    std::copy(to.dh, to.dh + n, result_of<T>(context, out_dh) + state);
    if (CellKind::has_cell) std::copy(to.dc, to.dc + n, result_of<T>(context, out_dc) + state);
    return clear_behind<T>(context, length, d, b, poll);
  }

  // Steps behind the end of a sequence count for nothing.
  template <class T>
  Status clear_behind(const RunContext& context, int64_t length, int64_t d, int64_t b, CancellationPoll& poll) const {
    for (int64_t t = length; t < shape_.times; ++t) {
      const GradientStep<T> at = step_at<T>(context, t, d, b, nullptr);
      if (poll.stops(shape_.hidden)) return cancelled();
      std::fill_n(at.gates, CellKind::gates * shape_.hidden, T(0));
      std::fill_n(at.before, shape_.hidden, T(0));
      if (CellKind::has_hidden_part) std::fill_n(at.hidden_part, shape_.hidden, T(0));
    }
    return {};
  }

  RecurrentShape shape_;
  bool backward_ = false, variant_ = false;
  double clip_ = 0;
  std::vector<RecurrentActivation> activations_;
  Tiling tiling_;
};

// ---------------------------------------------------------------- the gradients

// Products over all steps of all batch entries at once: tensors of [time, batch, width] are matrices of [time * batch, width].
template <class CellKind>
class LayerGradient {
 public:
  LayerGradient(GradientContext& g, const char* op) : g_(g), directions_(g.attributes().s("direction") == "bidirectional" ? 2 : 1) {
    const GradientValue xw =
        g.emit("MatMul", {g.x(port_x), g.emit("Transpose", {matrix(g.x(port_w))}, {{"perm", std::vector<int64_t>{1, 0}}})});
    std::vector<GradientValue> read = {xw, g.x(port_r), g.x(port_b), g.x(port_lengths), g.x(port_h), g.dy(0), g.dy(1)};
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
    const GradientValue dxw = made_[out_dxw];
    if (g_.wants(port_x)) g_.give(port_x, g_.emit("MatMul", {dxw, matrix(g_.x(port_w))}));
    if (g_.wants(port_w)) g_.give(port_w, like(port_w, product(dxw, g_.x(port_x))));
    if (g_.wants(port_r)) g_.give(port_r, like(port_r, of_states()));
    if (g_.wants(port_b)) g_.give(port_b, of_biases());
    if (g_.wants(port_h)) g_.give(port_h, made_[out_dh]);
    if (!CellKind::has_cell) return;
    if (g_.wants(port_c)) g_.give(port_c, made_[out_dc]);
    if (g_.wants(port_p)) g_.give(port_p, g_.emit("ReduceSum", {made_[out_dp], g_.ints({1})}, {{"keepdims", 0}}));
  }

 private:
  // [..., a, b] as [... * a, b].
  GradientValue matrix(GradientValue value) { return g_.emit("Flatten", {value}, {{"axis", 2}}); }
  GradientValue like(uint32_t input, GradientValue value) { return reshape(g_, value, shape_of(g_, g_.x(input))); }
  // The transposed matrix a times b.
  GradientValue product(GradientValue a, GradientValue b) { return g_.emit("Gemm", {matrix(a), matrix(b)}, {{"transA", 1}}); }
  // So many equal parts of the last extent.
  std::vector<GradientValue> parts(GradientValue value, int count) {
    if (count == 1) return {value};
    return g_.emit_all("Split", {value}, static_cast<uint32_t>(count), {{"axis", 2}, {"num_outputs", count}});
  }
  bool scales_products() const { return CellKind::has_hidden_part && g_.attributes().i(CellKind::variant) != 0; }

  // Of all gates of one direction by one product, unless the hidden gate's has another state.
  GradientValue of_states() {
    constexpr int gates = CellKind::has_hidden_part ? CellKind::gates : 1;
    const std::vector<GradientValue> states = parts(made_[out_states], directions_), dxw = parts(made_[out_dxw], directions_ * gates);
    std::vector<GradientValue> hidden_part, products;
    if (CellKind::has_hidden_part) hidden_part = parts(made_[out_hidden_part], directions_);
    for (size_t i = 0; i < dxw.size(); ++i) {
      const size_t d = i / gates;
      if (!CellKind::has_hidden_part || i % gates != gates - 1)
        products.push_back(product(dxw[i], states[d]));
      else
        products.push_back(scales_products() ? product(hidden_part[d], states[d]) : product(dxw[i], hidden_part[d]));
    }
    return products.size() == 1 ? products[0] : g_.emit("Concat", products, {{"axis", 0}});
  }
  // [direction, rows]
  GradientValue sum(GradientValue rows) {
    return reshape(g_, g_.emit("ReduceSum", {rows, g_.ints({0, 1})}, {{"keepdims", 0}}), g_.ints({directions_, -1}));
  }
  GradientValue of_biases() {
    const GradientValue of_w = sum(made_[out_dxw]);
    if (!scales_products()) return g_.emit("Concat", {of_w, of_w}, {{"axis", 1}});
    const std::vector<GradientValue> gates = g_.emit_all("Split", {of_w}, CellKind::gates, {{"axis", 1}, {"num_outputs", CellKind::gates}});
    return g_.emit("Concat", {of_w, gates[0], gates[1], sum(made_[out_hidden_part])}, {{"axis", 1}});
  }

  GradientContext& g_;
  const int directions_;
  std::vector<GradientValue> made_;
};

template <class CellKind>
Op gradient_operator(const char* name, const char* doc) {
  constexpr heddle_dtype_set floats = dtypes<float, double>();
  Op op(name, "heddle");
  op.doc(doc).in("XW", floats).in("R", floats).optional("B", floats).optional("sequence_lens", dtypes<int32_t>(), nullptr);
  op.optional("initial_h", floats).optional("dY", floats).optional("dY_h", floats);
  if (CellKind::has_cell) op.optional("initial_c", floats).optional("dY_c", floats).optional("P", floats);
  op.out("dXW", {}, floats).out("states", {}, floats).out("dinitial_h", {}, floats);
  if (CellKind::has_hidden_part) op.out("hidden_part", {}, floats);
  if (CellKind::has_cell) op.out("dinitial_c", {}, floats).out("dP", {}, floats);
  op.maybe("activations", HEDDLE_ATTRIBUTE_STRINGS);
  op.maybe("activation_alpha", HEDDLE_ATTRIBUTE_FLOATS).maybe("activation_beta", HEDDLE_ATTRIBUTE_FLOATS);
  op.maybe("clip", HEDDLE_ATTRIBUTE_FLOAT).attribute("direction", "forward").attribute("layout", 0);
  if (CellKind::variant) op.attribute(CellKind::variant, 0);
  op.template cost<gradient_cost<CellKind>>();
  op.infer(infer_gradient<CellKind>).template cpu<RecurrentGradient<CellKind>>();
  return op;
}

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

void add_recurrent_gradient(Builder& plugin) {
  constexpr const char* source = "PyTorch's autograd of the formulas of ONNX";
  plugin.add(gradient_operator<RnnGradientCell>(
                 "RnnGradient",
                 "of RNN: the gradient of XW, which X came to in the gates, that of the initial state, and the states before "
                 "each step")
                 .example("f32[2,1,2] = -0.5 1 0.25 -0.75, f32[1,2,2] = -0.75 0.5 0.5 1, -, -, -, f32[2,1,1,2] = 0.5 0.75 1 1.5 -> "
                          "f32[2,1,2] = 0.6991964 1.006809 0.4345988 1.430011, f32[2,1,2] = 0 0 -0.4621172 0.7615942, f32[1,1,2] = "
                          "-0.02099287 1.356407",
                          source)
                 .example("f32[2,2,1] = 1.5 0.75 0.5 0.25, f32[1,1,1] = -0.5, f32[1,2] = -2 0.5, i32[2] = 2 1, f32[1,2,1] = -2 2, "
                          "f32[2,1,2,1] = 0.5 1.5 0.25 -0.75, f32[1,2,1] = -0.25 0.75; direction=\"reverse\", clip=1.5 -> f32[2,2,1] = "
                          "0.25 0 0.125 0, f32[2,2,1] = 0 2 -2 0, f32[1,2,1] = -0.0625 0",
                          source)
                 .example("f32[1,2,2] = 0.75 -0.25 0.5 -2, f32[2,1,1] = 2 -2, -, -, -, -, f32[1,2,1] = -1 0.75; layout=1, "
                          "direction=\"bidirectional\", activations=[\"ScaledTanh\",\"LeakyRelu\"], activation_alpha=[2,0.5], "
                          "activation_beta=[0.5] -> f32[1,2,2] = -0.7697914 0.75 -0.4416069 -0.75, f32[1,2,2] = 0 -1 0.7167148 0, "
                          "f32[1,2,1] = -1.539583 1.5",
                          source));
  plugin.add(gradient_operator<GruGradientCell>(
                 "GruGradient",
                 "of GRU: the gradient of XW, which X came to in the gates, that of the initial state, the states before each "
                 "step, and what of the hidden gate's product with R differs: the scaled states or, with linear_before_reset, "
                 "its gradient")
                 .example("f32[2,1,3] = 1 0.25 -0.5 1 0.5 -0.75, f32[1,3,1] = -0.75 0.75 -0.75, -, -, -, f32[2,1,1,1] = -2 -1.5 -> "
                          "f32[2,1,3] = -0.2651592 0 -0.6172659 -0.1343182 -0.005383554 -0.2407143, f32[2,1,1] = 0 -0.1242824, "
                          "f32[1,1,1] = -1.674392, f32[2,1,1] = 0 -0.07460893",
                          source)
                 .example("f32[2,2,3] = -2 -2 0.25 0.5 0.5 1.5 1 -0.75 -2 0.5 0.5 0.5, f32[1,3,1] = -2 -0.25 -0.5, f32[1,6] = -0.75 -1.5 "
                          "-0.75 2 2 -1.5, i32[2] = 2 1, f32[1,2,1] = -0.75 2, f32[2,1,2,1] = -0.5 -0.75 -1.5 2, f32[1,2,1] = 1 -0.25; "
                          "direction=\"reverse\", clip=1.5, linear_before_reset=1 -> f32[2,2,3] = -0.01611371 -0.0174434 0.09359342 0 "
                          "0.266343 -0.4533427 0 0 0 0 0 0, f32[2,2,1] = -0.778303 2 -0.75 0, f32[1,2,1] = -0.9219774 -0.1079176, "
                          "f32[2,2,1] = 0.01995913 -0.2821874 0 0",
                          source)
                 .example("f32[1,2,6] = 1 -1.5 -1 -0.25 0.5 -0.75 -0.75 -1 -1 2 1.5 -2, f32[2,3,1] = 2 1 1 -0.75 -0.5 -0.25, -, -, -, -, "
                          "f32[1,2,1] = 2 -0.75; layout=1, direction=\"bidirectional\", "
                          "activations=[\"HardSigmoid\",\"Tanh\",\"Sigmoid\",\"Affine\"], activation_alpha=[0.25,0.5], "
                          "activation_beta=[0.5,0.125] -> f32[1,2,6] = 0.2127556 0 0.1173222 -0.02557771 -0.0012308 -0.2035642 0.2934555 "
                          "-0.02949125 0.6195688 -0.02671338 0 -0.01733065, f32[1,2,2] = 0 -0.1043026 -0.1903985 0, f32[1,2,1] = "
                          "1.278243 -0.232537, f32[1,2,2] = 0 -0.06619401 -0.03853673 0",
                          source));
  plugin.add(gradient_operator<LstmGradientCell>(
                 "LstmGradient",
                 "of LSTM: the gradient of XW, which X came to in the gates, those of the initial states and, for each batch "
                 "entry, of the peepholes, and the states before each step")
                 .example("f32[2,1,4] = -2 -0.5 2 0.75 1.5 1.5 0.25 2, f32[1,4,1] = 0.5 -1 0.5 -0.75, -, -, -, f32[2,1,1,1] = 0.75 0.25 "
                          "-> f32[2,1,4] = 0.02233161 0.01292755 0 0.0238145 0.01549273 0.02586948 0.00202587 0.006572646, f32[2,1,1] = "
                          "0 0.02852972, f32[1,1,1] = -0.01962262, f32[1,1,1] = 0.2949562, f32[1,1,3] = 0.00117298 0.02249622 "
                          "0.0001533819",
                          source)
                 .example("f32[2,2,4] = 0.125 -0.125 0.125 -0.125 1 0.25 -0.75 0.75 -0.125 -0.25 -0.25 0.5 0.5 0.75 -1 0.125, f32[1,4,1] "
                          "= -0.5 0.125 0.375 -0.5, f32[1,8] = 1 0.75 -0.25 -0.75 0.125 0.75 -0.75 -0.125, i32[2] = 2 1, f32[1,2,1] = "
                          "-1.5 0.25, f32[2,1,2,1] = 1 0.75 0.25 -0.25, f32[1,2,1] = 1 0.5, f32[1,2,1] = -0.25 -0.5, f32[1,2,1] = 2 1, "
                          "f32[1,3] = 1 0.125 0.375; direction=\"reverse\", clip=1.5 -> f32[2,2,4] = -0.3972915 -0.168017 0.1721151 "
                          "0.9232291 0 0 0 1.490835 0 0.001393409 0 0.5169017 0 0 0 0, f32[2,2,1] = 0.1816027 0.25 -1.5 0, f32[1,2,1] = "
                          "-0.2582767 -0.7454175, f32[1,2,1] = 0.1323302 0.3538776, f32[1,2,3] = -0.09828098 0.09426584 0.04257739 0 0 0",
                          source)
                 .example("f32[1,2,8] = -1.5 -0.25 -0.25 2 1 -0.5 0.5 -0.25 0.75 -0.75 0.5 0.5 1.5 1 0.25 2, f32[2,4,1] = 2 -1 -2 -0.25 "
                          "-0.75 -2 -0.25 0.5, -, -, -, -, f32[1,2,1] = -1.5 0.75, -, f32[1,2,1] = -0.5 2; layout=1, "
                          "direction=\"bidirectional\", input_forget=1, "
                          "activations=[\"HardSigmoid\",\"Tanh\",\"Tanh\",\"Sigmoid\",\"Affine\",\"Softsign\"], "
                          "activation_alpha=[0.25,0.5], activation_beta=[0.5,0.125] -> f32[1,2,8] = -0.0506951 0.003216455 0 -0.00185765 "
                          "-0.3814779 0.03508068 0 0.7082863 -0.0742297 -0.128436 0 -0.5092278 0.1326831 0.05370118 0 0.3232567, "
                          "f32[1,2,2] = 0 0.3502535 0.05246655 0, f32[1,2,1] = -0.1041422 -0.04528635, f32[1,2,1] = -0.1840537 "
                          "0.1442566, f32[2,1,3] = -0.008944935 -0.04545346 0 -0.3508724 0.06191169 0",
                          source));
}

}  // namespace heddle::cpu
