// RNN, GRU, LSTM: a cell applied along time, forward, backward or both.
//
// Each (direction, batch entry) is independent of all others: tiles are ranges of them, and every unit goes through time alone with its
// state in the scratch of its thread.
#include <algorithm>
#include <utility>

#include "families.h"
#include "recurrent/recurrent_gradient.h"
#include "recurrent/recurrent_rows.h"
#include "shared/dims.h"
#include "shared/recurrent/recurrent_activation.h"
#include "shared/recurrent/recurrent_shape.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

using Kind = RecurrentActivation::Kind;

template <int gates>
Status infer_recurrent(InferContext& context) {
  RecurrentShape s;
  HEDDLE_PLUGIN_CHECK(read_recurrent_shape(context.attributes, context.dims(port_x), context.dims(port_w), gates, &s));
  const std::vector<int64_t> state =
      s.batch_first ? std::vector<int64_t>{s.batches, s.directions, s.hidden} : std::vector<int64_t>{s.directions, s.batches, s.hidden};
  const auto expect = [&](uint32_t port, const char* name, const std::vector<int64_t>& dims) -> Status {
    if (!context.has_input(port)) return {};
    const Dims given = context.dims(port);
    if (std::equal(given.begin(), given.end(), dims.begin(), dims.end())) return {};
    return invalid(std::string(name) + " has shape " + dims_text(given) + ", expected " + dims_text(dims_of(dims)));
  };
  HEDDLE_PLUGIN_CHECK(expect(port_r, "R", {s.directions, gates * s.hidden, s.hidden}));
  HEDDLE_PLUGIN_CHECK(expect(port_b, "B", {s.directions, 2 * gates * s.hidden}));
  HEDDLE_PLUGIN_CHECK(expect(port_lengths, "sequence_lens", {s.batches}));
  HEDDLE_PLUGIN_CHECK(expect(port_h, "initial_h", state));
  HEDDLE_PLUGIN_CHECK(expect(port_c, "initial_c", state));
  HEDDLE_PLUGIN_CHECK(expect(port_p, "P", {s.directions, 3 * s.hidden}));
  context.set_dims(0, s.batch_first ? std::vector<int64_t>{s.batches, s.times, s.directions, s.hidden}
                                    : std::vector<int64_t>{s.times, s.directions, s.batches, s.hidden});
  context.set_dims(1, state);
  context.set_dims(2, state);
  return {};
}

// Products with W and R; activations are few beside them.
template <int gates>
void recurrent_cost(CostContext& context) {
  RecurrentShape s;
  if (!read_recurrent_shape(context.attributes, context.dims(port_x), context.dims(port_w), gates, &s).ok()) return;
  const auto n = static_cast<double>(s.hidden);
  context.set_flops(2.0 * static_cast<double>(s.times) * static_cast<double>(s.batches) * s.directions * gates * n *
                    (static_cast<double>(s.inputs) + n));
}

// One direction's weights and one unit's state. Gates are in the order of ONNX's W.
template <class T>
struct Cell {
  const RecurrentActivation* activations;
  const T *w, *r, *bias, *peepholes;  // bias and peepholes may be null
  T *h, *c, *gates;                   // gates: one more block of `hidden` behind them for GRU
  int64_t inputs, hidden;
  CancellationPoll* poll;
  // Whether to leave the rows of a step that are left: before each.
  bool stops() const { return poll->stops(inputs + hidden); }
  T clip;        // 0: none
  bool variant;  // LSTM: input_forget; GRU: linear_before_reset
  T clipped(T v) const { return clip > 0 ? std::min(std::max(v, -clip), clip) : v; }
  // x . W + bias of W, of row g * hidden + j
  T from_input(const T* x, int64_t row) const { return dot(w + row * inputs, x, inputs) + (bias ? bias[row] : T(0)); }
  T from_state(const T* state, int64_t row, int64_t rows) const {
    return dot(r + row * hidden, state, hidden) + (bias ? bias[rows + row] : T(0));
  }
};

struct RnnCell {
  static constexpr int gates = 1;
  static std::vector<Kind> activations() { return {Kind::tanh}; }
  static const char* variant() { return nullptr; }
  template <class T>
  static void step(const Cell<T>& cell, const T* x) {
    for (int64_t j = 0; j < cell.hidden && !cell.stops(); ++j)
      cell.gates[j] = cell.activations[0](cell.clipped(cell.from_input(x, j) + cell.from_state(cell.h, j, cell.hidden)));
    std::copy(cell.gates, cell.gates + cell.hidden, cell.h);
  }
};

struct GruCell {
  static constexpr int gates = 3;  // update z, reset r, hidden
  static std::vector<Kind> activations() { return {Kind::sigmoid, Kind::tanh}; }
  static const char* variant() { return "linear_before_reset"; }
  template <class T>
  static void step(const Cell<T>& cell, const T* x) {
    const int64_t n = cell.hidden;
    T *z = cell.gates, *r = z + n, *next = r + n, *reset = next + n;
    for (int64_t j = 0; j < 2 * n && !cell.stops(); ++j)
      z[j] = cell.activations[0](cell.clipped(cell.from_input(x, j) + cell.from_state(cell.h, j, 3 * n)));
    for (int64_t j = 0; j < n; ++j) reset[j] = r[j] * cell.h[j];
    for (int64_t j = 0; j < n && !cell.stops(); ++j) {
      const T recurrent = cell.variant ? r[j] * cell.from_state(cell.h, 2 * n + j, 3 * n) : cell.from_state(reset, 2 * n + j, 3 * n);
      next[j] = cell.activations[1](cell.clipped(cell.from_input(x, 2 * n + j) + recurrent));
    }
    for (int64_t j = 0; j < n; ++j) cell.h[j] = (1 - z[j]) * next[j] + z[j] * cell.h[j];
  }
};

struct LstmCell {
  static constexpr int gates = 4;  // input, output, forget, cell
  static std::vector<Kind> activations() { return {Kind::sigmoid, Kind::tanh, Kind::tanh}; }
  static const char* variant() { return "input_forget"; }
  template <class T>
  static void step(const Cell<T>& cell, const T* x) {
    const int64_t n = cell.hidden;
    const RecurrentActivation* p = cell.activations;
    T* gate = cell.gates;
    for (int64_t j = 0; j < 4 * n && !cell.stops(); ++j) gate[j] = cell.from_input(x, j) + cell.from_state(cell.h, j, 4 * n);
    for (int64_t j = 0; j < n; ++j) {
      const T* peep = cell.peepholes;
      const T before = cell.c[j];
      const T in = p[0](cell.clipped(gate[j] + (peep ? peep[j] * before : T(0))));
      const T forget = cell.variant ? 1 - in : p[0](cell.clipped(gate[2 * n + j] + (peep ? peep[2 * n + j] * before : T(0))));
      const T after = forget * before + in * p[1](cell.clipped(gate[3 * n + j]));
      const T out = p[0](cell.clipped(gate[n + j] + (peep ? peep[n + j] * after : T(0))));
      cell.c[j] = after;
      cell.h[j] = out * p[2](after);
    }
  }
};

template <class CellKind>
class Recurrent {
 public:
  Status create(const CreateContext& context) {
    const Attributes& a = context.attributes;
    HEDDLE_PLUGIN_CHECK(
        read_recurrent_shape(a, dims_of(*context.input(port_x)), dims_of(*context.input(port_w)), CellKind::gates, &shape_));
    backward_ = a.s("direction") == "reverse";
    clip_ = a.f("clip");
    variant_ = CellKind::variant() && a.i(CellKind::variant()) != 0;
    return parse_activations(a, shape_.directions, CellKind::activations(), &activations_);
  }
  Status prepare(PrepareContext& context) {
    set_sequences(dims_of(*context.input(port_x)), &shape_);
    const int64_t n = shape_.hidden;
    const double products = static_cast<double>(shape_.times) * static_cast<double>(shape_.batches) * shape_.directions * CellKind::gates *
                            static_cast<double>(n) * static_cast<double>(shape_.inputs + n);
    tiling_.plan(context, products, 4.0);
    context.set_scratch(0, static_cast<uint64_t>((2 + CellKind::gates + 1) * n) * sizeof(double));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    if (context.inputs[port_x]->dtype == HEDDLE_F64) return run_units<double>(context, begin, end);
    return run_units<float>(context, begin, end);
  }

 private:
  template <class T>
  static const T* data_of(const RunContext& context, uint32_t port) {
    return port < context.input_count && context.inputs[port] ? static_cast<const T*>(context.inputs[port]->data) : nullptr;
  }
  template <class T>
  static T* result_of(const RunContext& context, uint32_t port) {
    return port < context.output_count && context.outputs[port] ? static_cast<T*>(context.outputs[port]->data) : nullptr;
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
  Cell<T> cell_of(const RunContext& context, int64_t d, CancellationPoll& poll) const {
    const int64_t n = shape_.hidden, rows = CellKind::gates * n;
    auto* memory = thread_scratch<T>(context);
    const T *bias = data_of<T>(context, port_b), *peepholes = data_of<T>(context, port_p);
    return {activations_.data() + static_cast<size_t>(d) * (activations_.size() / static_cast<size_t>(shape_.directions)),
            data_of<T>(context, port_w) + d * rows * shape_.inputs,
            data_of<T>(context, port_r) + d * rows * n,
            bias ? bias + d * 2 * rows : nullptr,
            peepholes ? peepholes + d * 3 * n : nullptr,
            memory,
            memory + n,
            memory + 2 * n,
            shape_.inputs,
            n,
            &poll,
            static_cast<T>(clip_),
            variant_};
  }

  template <class T>
  Status run_unit(const RunContext& context, int64_t d, int64_t b, CancellationPoll& poll) const {
    const Cell<T> cell = cell_of<T>(context, d, poll);
    const int64_t n = shape_.hidden;
    for (const auto& [port, state] : {std::pair{port_h, cell.h}, std::pair{port_c, cell.c}}) {
      const T* initial = data_of<T>(context, port);
      for (int64_t j = 0; j < n; ++j) state[j] = initial ? initial[shape_.state(d, b) + j] : T(0);
    }
    const auto* lengths = data_of<int32_t>(context, port_lengths);
    const int64_t length = lengths ? lengths[b] : shape_.times;
    if (length < 0 || length > shape_.times)
      return invalid("sequence_lens[" + std::to_string(b) + "] is " + std::to_string(length) + ", expected 0 to " +
                     std::to_string(shape_.times));
    T* y = result_of<T>(context, 0);
    for (int64_t step = 0; step < length; ++step) {
      const int64_t t = backward_ || d == 1 ? length - 1 - step : step;
      CellKind::step(cell, data_of<T>(context, port_x) + shape_.x(t, b));
      if (poll.stops(n)) return cancelled();
      if (y) std::copy(cell.h, cell.h + n, y + shape_.y(t, d, b));
    }
    for (int64_t t = length; y && t < shape_.times; ++t) std::fill_n(y + shape_.y(t, d, b), n, T(0));
    for (const auto& [output, state] : {std::pair{1u, cell.h}, std::pair{2u, cell.c}})
      if (T* last = result_of<T>(context, output)) std::copy(state, state + n, last + shape_.state(d, b));
    return {};
  }

  RecurrentShape shape_;
  bool backward_ = false, variant_ = false;
  double clip_ = 0;
  std::vector<RecurrentActivation> activations_;
  Tiling tiling_;
};

template <class CellKind>
Op recurrent_operator(const char* name, const char* doc) {
  constexpr heddle_dtype_set floats = dtypes<float, double>();
  Op op(name, "", 14);
  op.doc(doc).in("X", floats).in("W", floats).in("R", floats).optional("B", floats);
  op.optional("sequence_lens", dtypes<int32_t>(), nullptr).optional("initial_h", floats);
  if (CellKind::gates == 4) op.optional("initial_c", floats).optional("P", floats);
  op.optional_out("Y", {}, floats).optional_out("Y_h", {}, floats);
  if (CellKind::gates == 4) op.optional_out("Y_c", {}, floats);
  op.maybe("activations", HEDDLE_ATTRIBUTE_STRINGS);
  op.maybe("activation_alpha", HEDDLE_ATTRIBUTE_FLOATS).maybe("activation_beta", HEDDLE_ATTRIBUTE_FLOATS);
  op.maybe("clip", HEDDLE_ATTRIBUTE_FLOAT).attribute("direction", "forward").maybe("hidden_size", HEDDLE_ATTRIBUTE_INT);
  op.attribute("layout", 0);
  if (CellKind::variant()) op.attribute(CellKind::variant(), 0);
  op.template cost<recurrent_cost<CellKind::gates>>();
  op.infer(infer_recurrent<CellKind::gates>).template cpu<Recurrent<CellKind>>();
  return op;
}

}  // namespace

void add_recurrent(Builder& plugin) {
  plugin.add(recurrent_operator<RnnCell>("RNN", "a simple recurrent layer")
                 .gradient<rnn_gradient>()
                 .example("f32[2,1,2] = 1 -1 0.5 2, f32[1,2,2] = 0.5 1 -1 0.25, f32[1,2,2] = 0.5 -0.5 0.25 1"
                          " -> f32[2,1,1,2] = -0.4621172 -0.8482836 0.9850125 -0.7459728, f32[1,1,2] = 0.9850125 -0.7459728",
                          "NumPy by the formulas of ONNX, ONNX Runtime")
                 .example("f32[3,2,1] = 1 0.5 -2 1 0.5 -1, f32[2,1,1] = 0.5 -1, f32[2,1,1] = 0.25 0.5, "
                          "f32[2,2] = 0.25 -0.5 0.5 0.25, i32[2] = 3 2, f32[2,2,1] = 0.5 -1 1 0; direction=\"bidirectional\", "
                          "activations=[\"Tanh\",\"LeakyRelu\"], activation_alpha=[0.5], clip=1.5, hidden_size=1"
                          " -> f32[3,2,2,1] = 0.3583574 -0.2449187 0.5 0.1875 -0.8211737 0.1865596 1.5 -0.125 -0.2024572 0 0.75 0, "
                          "f32[2,2,1] = -0.2024572 0.1865596 0.5 0.1875",
                          "NumPy by the formulas of ONNX, ONNX Runtime")
                 .example("f32[2,2,1] = 1 2 -1 0.5, f32[1,1,1] = 0.5, f32[1,1,1] = 1, -, -, f32[2,1,1] = 0.5 -1; "
                          "activations=[\"ScaledTanh\"], activation_alpha=[2], activation_beta=[0.5], direction=\"reverse\", layout=1"
                          " -> f32[2,2,1,1] = 1.417979 1.270298 -1.08594 -0.7167148, f32[2,1,1] = 1.417979 -1.08594",
                          "NumPy by the formulas of ONNX, ONNX Runtime"));
  plugin.add(recurrent_operator<GruCell>("GRU", "a layer of gated recurrent units")
                 .gradient<gru_gradient>()
                 .example("f32[2,1,2] = 1 -1 0.5 2, f32[1,3,2] = 0.5 1 -1 0.25 1 0.5, f32[1,3,1] = 0.5 -0.5 2"
                          " -> f32[2,1,1,1] = 0.2876491 0.3424892, f32[1,1,1] = 0.3424892",
                          "NumPy by the formulas of ONNX, ONNX Runtime")
                 .example("f32[2,2,1] = 1 0.5 -2 1, f32[1,3,1] = 0.5 -1 1, f32[1,3,1] = 0.5 -0.5 2, "
                          "f32[1,6] = 0.25 -0.5 0.5 0.125 1 -0.25, i32[2] = 2 1, f32[1,2,1] = 0.5 -1; linear_before_reset=1, "
                          "clip=0.75, direction=\"reverse\", hidden_size=1"
                          " -> f32[2,1,2,1] = 0.08643109 -0.7095398 -0.1727649 0, f32[1,2,1] = 0.08643109 -0.7095398",
                          "NumPy by the formulas of ONNX, ONNX Runtime")
                 .example("f32[1,2,1] = 1 2, f32[2,3,1] = 0.5 -1 1 1 0.5 -0.5, f32[2,3,1] = 0.5 -0.5 2 1 0.25 -1; layout=1, "
                          "direction=\"bidirectional\", activations=[\"HardSigmoid\",\"Tanh\",\"Sigmoid\",\"Affine\"], "
                          "activation_alpha=[0.25,0.5], activation_beta=[0.5,0.125]"
                          " -> f32[1,2,2,1] = 0.2855978 -0.06316098 0.4309855 -0.0447011, f32[1,2,1] = 0.4309855 -0.06316098",
                          "NumPy by the formulas of ONNX, ONNX Runtime"));
  plugin.add(
      recurrent_operator<LstmCell>("LSTM", "a layer of long short-term memory cells")
          .gradient<lstm_gradient>()
          .example("f32[2,1,2] = 1 -1 0.5 2, f32[1,4,2] = 0.5 1 -1 0.25 1 0.5 0.25 -0.5, f32[1,4,1] = 0.5 -0.5 2 1"
                   " -> f32[2,1,1,1] = 0.05240172 -0.1932892, f32[1,1,1] = -0.1932892, f32[1,1,1] = -0.413818",
                   "NumPy by the formulas of ONNX, ONNX Runtime")
          .example("f32[2,2,1] = 1 0.5 -2 1, f32[1,4,1] = 0.5 -1 1 2, f32[1,4,1] = 0.5 -0.5 2 1, "
                   "f32[1,8] = 0.25 -0.5 0.5 0.125 1 -0.25 0.5 0, i32[2] = 2 1, f32[1,2,1] = 0.5 -1, f32[1,2,1] = 1 0.5, "
                   "f32[1,3] = 0.5 -1 0.25; direction=\"reverse\", clip=2, hidden_size=1"
                   " -> f32[2,1,2,1] = 0.07081731 0.07557467 -0.107374 0, f32[1,2,1] = 0.07081731 0.07557467, "
                   "f32[1,2,1] = 0.6839641 0.3003263",
                   "NumPy by the formulas of ONNX, ONNX Runtime")
          .example("f32[1,2,1] = 1 2, f32[2,4,1] = 0.5 -1 1 2 1 0.5 -0.5 -1, f32[2,4,1] = 0.5 -0.5 2 1 1 0.25 -1 0.5; "
                   "layout=1, direction=\"bidirectional\", input_forget=1, "
                   "activations=[\"HardSigmoid\",\"Tanh\",\"Tanh\",\"Sigmoid\",\"Affine\",\"Softsign\"], activation_alpha=[0.25,0.5], "
                   "activation_beta=[0.5,0.125]"
                   " -> f32[1,2,2,1] = 0.1347096 -0.2168547 0 -0.3181938, f32[1,2,1] = 0 -0.2168547, "
                   "f32[1,2,1] = 0.9069295 -0.5607297",
                   "NumPy by the formulas of ONNX, ONNX Runtime"));
}

}  // namespace heddle::cpu
