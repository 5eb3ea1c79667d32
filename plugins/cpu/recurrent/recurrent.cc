// RNN, GRU, LSTM: a cell applied along time, forward, backward or both.
//
// Each (direction, batch entry) is independent of all others: tiles are ranges of them. The entries of a tile take each step together, so
// that R is read once for all of them, with their states in the scratch of their thread; the products with X are computed for many steps at
// once.
#include <algorithm>
#include <array>

#include "families.h"
#include "recurrent/recurrent_gradient.h"
#include "recurrent/recurrent_tile.h"
#include "shared/dims.h"
#include "shared/input_shapes.h"
#include "shared/recurrent/recurrent_shape.h"
#include "shared/tile_cap.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

template <int gates>
Status infer_recurrent(InferContext& context) {
  RecurrentShape s;
  HEDDLE_PLUGIN_CHECK(read_recurrent_shape(context.attributes, context.dims(port_x), context.dims(port_w), gates, &s));
  const std::vector<int64_t> state =
      s.batch_first ? std::vector<int64_t>{s.batches, s.directions, s.hidden} : std::vector<int64_t>{s.directions, s.batches, s.hidden};
  HEDDLE_PLUGIN_CHECK(expect_shape(context, port_r, {s.directions, gates * s.hidden, s.hidden}));
  HEDDLE_PLUGIN_CHECK(expect_shape(context, port_b, {s.directions, 2 * gates * s.hidden}));
  HEDDLE_PLUGIN_CHECK(expect_shape(context, port_lengths, {s.batches}));
  HEDDLE_PLUGIN_CHECK(expect_shape(context, port_h, state));
  HEDDLE_PLUGIN_CHECK(expect_shape(context, port_c, state));
  HEDDLE_PLUGIN_CHECK(expect_shape(context, port_p, {s.directions, 3 * s.hidden}));
  context.set_dims(0, s.batch_first ? std::vector<int64_t>{s.batches, s.times, s.directions, s.hidden}
                                    : std::vector<int64_t>{s.times, s.directions, s.batches, s.hidden});
  context.set_dims(1, state);
  if (gates == 4) context.set_dims(2, state);
  const int64_t kept = s.directions * kept_gates(gates) * s.hidden;
  context.set_dims(sums_port(gates),
                   s.batch_first ? std::vector<int64_t>{s.batches, s.times, kept} : std::vector<int64_t>{s.times, s.batches, kept});
  return {};
}

// Operations of the products with W and R; activations are few beside them.
template <int gates>
void recurrent_cost(CostContext& context) {
  RecurrentShape s;
  if (!read_recurrent_shape(context.attributes, context.dims(port_x), context.dims(port_w), gates, &s).ok()) return;
  const auto n = static_cast<double>(s.hidden);
  context.set_flops(2.0 * static_cast<double>(s.times) * static_cast<double>(s.batches) * s.directions * gates * n *
                    (static_cast<double>(s.inputs) + n));
}

// Packs W or R, `gates` matrices of n rows of `depth` elements, with its rows as columns; each gate begins a new panel. `poll`: may be
// null.
template <class T>
void pack_gates(const T* weights, int64_t gates, int64_t n, int64_t depth, T* panels, CancellationPoll* poll) {
  const int64_t each = padded<T>(n) * depth;
  for (int64_t gate = 0; gate < gates; ++gate) pack_panels(weights + gate * n * depth, 1, depth, n, depth, panels + gate * each, poll);
}

// Writes both biases of a direction (or null) to a row of all gates, as they are added to the sums. With linear_before_reset, GRU's bias of
// the hidden gate's product with R follows them.
template <class CellKind, class T>
void spread_bias(const T* bias, Cell<T>* cell, T* row) {
  const int64_t n = cell->hidden, width = cell->width;
  std::fill_n(row, (CellKind::gates + 1) * width, T(0));
  if (!bias) return;
  const T* const of_r = bias + CellKind::gates * n;
  for (int64_t gate = 0; gate < CellKind::gates; ++gate) {
    const bool apart = CellKind::has_hidden_part && cell->variant && gate == CellKind::gates - 1;
    for (int64_t j = 0; j < n; ++j) row[gate * width + j] = bias[gate * n + j] + (apart ? T(0) : of_r[gate * n + j]);
    if (!apart) continue;
    cell->hidden_bias = row + CellKind::gates * width;
    std::copy_n(of_r + gate * n, n, row + CellKind::gates * width);
  }
}

// Offsets in the scratch of a thread, in elements.
struct Places {
  int64_t r, panel, bias, sums, values, states, end;
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
    variant_ = CellKind::variant && a.i(CellKind::variant) != 0;
    return parse_activations(a, shape_.directions, CellKind::activations(), &activations_);
  }
  Status prepare(PrepareContext& context) {
    set_sequences(dims_of(*context.input(port_x)), &shape_);
    tiling_.plan(context, shape_,
                 static_cast<double>(shape_.times) * static_cast<double>(shape_.batches) * shape_.directions * CellKind::gates *
                     static_cast<double>(shape_.hidden) * static_cast<double>(shape_.inputs + shape_.hidden));
    return context.input(port_x)->dtype == HEDDLE_F64 ? prepare_for<double>(context) : prepare_for<float>(context);
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    if (writes_nothing(context)) return {};
    const bool is_double = context.inputs[port_x]->dtype == HEDDLE_F64;
    return tiling_.for_each(shape_, begin, end, [&](int64_t d, int64_t first, int64_t last) {
      return is_double ? run_direction<double>(context, d, first, last) : run_direction<float>(context, d, first, last);
    });
  }

 private:
  // Rows of X that are multiplied with W together, and how many of their elements at a time: the packed part of W stays in caches.
  static constexpr int64_t max_rows = 256, max_depth = 256;

  template <class T>
  static const T* data_of(const RunContext& context, uint32_t port) {
    return port < context.input_count && context.inputs[port] ? static_cast<const T*>(context.inputs[port]->data) : nullptr;
  }
  template <class T>
  static T* result_of(const RunContext& context, uint32_t port) {
    return port < context.output_count && context.outputs[port] ? static_cast<T*>(context.outputs[port]->data) : nullptr;
  }
  // Steps whose rows of X are multiplied together.
  static int64_t steps_at_once(int64_t entries) { return std::max(int64_t{1}, max_rows / std::max(int64_t{1}, entries)); }

  // Elements of the panels of one direction's R (`depth`: hidden) or W (inputs).
  template <class T>
  int64_t panels_of(int64_t depth) const {
    return CellKind::gates * padded<T>(shape_.hidden) * depth;
  }
  template <class T>
  Places places() const {
    const int64_t width = padded<T>(shape_.hidden), entries = std::min(max_entries, shape_.batches);
    // Rows of X, for any number of entries that go through the steps together.
    const int64_t rows = entries == 0 ? 0 : shape_.times > max_rows / entries ? max_rows : shape_.times * entries;
    Places at = {};
    at.panel = packed_r_ ? 0 : panels_of<T>(shape_.hidden);
    at.bias = at.panel + (width > 0 && !packed_w_ ? recurrent_loops<T>().panel_columns * std::min(max_depth, shape_.inputs) : 0);
    at.sums = at.bias + (CellKind::gates + 1) * width;
    at.values = at.sums + rows * CellKind::gates * width;
    at.states = at.values + (CellKind::has_hidden_part ? entries : 1) * CellKind::gates * width;
    at.end = at.states + 2 * entries * width;
    return at;
  }
  // Packs the weights of an input that is constant; *packed is null where it is none.
  template <class T>
  Status prepack(PrepareContext& context, uint32_t port, int64_t depth, const void** packed) {
    const int64_t each = panels_of<T>(depth);
    *packed = nullptr;
    if (!context.is_constant(port) || each == 0) return {};
    const auto* const weights = static_cast<const T*>(context.input(port)->data);
    *packed = context.prepack(port, "gates in panels of " + std::to_string(recurrent_loops<T>().panel_columns),
                              static_cast<uint64_t>(shape_.directions * each) * sizeof(T), [&](void* target) {
                                for (int64_t d = 0; d < shape_.directions; ++d)
                                  pack_gates(weights + d * CellKind::gates * shape_.hidden * depth, CellKind::gates, shape_.hidden, depth,
                                             static_cast<T*>(target) + d * each, nullptr);
                              });
    if (!*packed) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for packed weights"};
    return {};
  }
  template <class T>
  Status prepare_for(PrepareContext& context) {
    HEDDLE_PLUGIN_CHECK(prepack<T>(context, port_r, shape_.hidden, &packed_r_));
    HEDDLE_PLUGIN_CHECK(prepack<T>(context, port_w, shape_.inputs, &packed_w_));
    context.set_scratch(0, static_cast<uint64_t>(places<T>().end) * sizeof(T));
    return {};
  }
  template <class T>
  Status run_direction(const RunContext& context, int64_t d, int64_t first, int64_t last) const {
    const Places at = places<T>();
    auto* const memory = thread_scratch<T>(context);
    CancellationPoll poll(context);
    const int64_t n = shape_.hidden, rows = CellKind::gates * n, width = padded<T>(n);
    Cell<T> cell = {activations_.data() + static_cast<size_t>(d) * (activations_.size() / static_cast<size_t>(shape_.directions)),
                    packed_r_ ? static_cast<const T*>(packed_r_) + d * panels_of<T>(n) : memory + at.r,
                    nullptr,
                    data_of<T>(context, port_p),
                    n,
                    width,
                    static_cast<T>(clip_),
                    variant_,
                    &poll};
    if (!packed_r_) pack_gates(data_of<T>(context, port_r) + d * rows * n, CellKind::gates, n, n, memory + at.r, &poll);
    if (cell.peepholes) cell.peepholes += d * 3 * n;
    const T* bias = data_of<T>(context, port_b);
    spread_bias<CellKind>(bias ? bias + d * 2 * rows : nullptr, &cell, memory + at.bias);
    for (int64_t groups = (last - first + max_entries - 1) / max_entries; groups > 0; --groups) {
      const int64_t count = (last - first + groups - 1) / groups;
      HEDDLE_PLUGIN_CHECK(run_group(context, cell, memory, d, first, count));
      first += count;
    }
    return {};
  }

  // Runs all steps of batch entries [first, first + count) of a direction.
  template <class T>
  Status run_group(const RunContext& context, const Cell<T>& cell, T* memory, int64_t d, int64_t first, int64_t count) const {
    const Places at = places<T>();
    const int64_t n = shape_.hidden, width = cell.width;
    std::array<int64_t, max_entries> lengths;
    HEDDLE_PLUGIN_CHECK(read_lengths(data_of<int32_t>(context, port_lengths), shape_, first, count, lengths.data()));
    T *const h = memory + at.states, *const c = h + count * width, *const y = result_of<T>(context, 0);
    for (int64_t i = 0; i < count; ++i) {
      copy_state(data_of<T>(context, port_h), shape_.state(d, first + i), n, h + i * width, width);
      if (CellKind::has_cell) copy_state(data_of<T>(context, port_c), shape_.state(d, first + i), n, c + i * width, width);
    }
    const int64_t longest = *std::max_element(lengths.begin(), lengths.begin() + count);
    for (int64_t step = 0; step < longest; ++step) {
      T* const sums = memory + at.sums;
      const int64_t in_block = step % steps_at_once(count);
      if (in_block == 0) project(context, cell, memory, d, first, lengths.data(), count, step);
      Entries<T> entries;
      int64_t taking = 0;
      for (int64_t i = 0; i < count; ++i)
        if (step < lengths[static_cast<size_t>(i)])
          entries[static_cast<size_t>(taking++)] = {sums + (in_block * count + i) * CellKind::gates * width,
                                                    memory + at.values + (CellKind::has_hidden_part ? i * CellKind::gates * width : 0),
                                                    h + i * width,
                                                    c + i * width,
                                                    c + i * width,
                                                    c + i * width};
      CellKind::step(cell, entries, taking);
      if (cell.poll->stops(n * count)) return cancelled();
      for (int64_t i = 0, k = 0; i < count; ++i) {
        if (step >= lengths[static_cast<size_t>(i)]) continue;
        const int64_t t = time_of(d, step, lengths[static_cast<size_t>(i)]);
        if (y) std::copy_n(h + i * width, n, y + shape_.y(t, d, first + i));
        keep(context, entries[static_cast<size_t>(k++)], t, d, first + i);
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t t = lengths[static_cast<size_t>(i)]; t < shape_.times; ++t) {
        if (cell.poll->stops(n)) return cancelled();
        if (y) std::fill_n(y + shape_.y(t, d, first + i), n, T(0));
        if (T* kept = kept_at<T>(context, t, d, first + i)) std::fill_n(kept, kept_gates(CellKind::gates) * n, T(0));
      }
      if (T* last = result_of<T>(context, 1)) std::copy_n(h + i * width, n, last + shape_.state(d, first + i));
      if (!CellKind::has_cell) continue;
      if (T* last = result_of<T>(context, 2)) std::copy_n(c + i * width, n, last + shape_.state(d, first + i));
    }
    return {};
  }
  // Where the sums of a step are kept for the gradient; null: they are not kept.
  template <class T>
  T* kept_at(const RunContext& context, int64_t t, int64_t d, int64_t b) const {
    T* const kept = result_of<T>(context, sums_port(CellKind::gates));
    return kept ? kept + shape_.row(t, d, b) * kept_gates(CellKind::gates) * shape_.hidden : nullptr;
  }
  template <class T>
  void keep(const RunContext& context, const Entry<T>& entry, int64_t t, int64_t d, int64_t b) const {
    const int64_t n = shape_.hidden;
    T* const kept = kept_at<T>(context, t, d, b);
    for (int64_t gate = 0; gate < CellKind::gates && kept; ++gate) std::copy_n(entry.sums + gate * padded<T>(n), n, kept + gate * n);
    if (CellKind::has_hidden_part && kept) std::copy_n(entry.hidden_part, n, kept + CellKind::gates * n);
  }
  int64_t time_of(int64_t d, int64_t step, int64_t length) const { return backward_ || d == 1 ? length - 1 - step : step; }

  // Computes X W' and the biases of the steps from `step` on that are done together: the sums of entry i at the k-th of them are row k *
  // count + i.
  template <class T>
  void project(const RunContext& context, const Cell<T>& cell, T* memory, int64_t d, int64_t first, const int64_t* lengths, int64_t count,
               int64_t step) const {
    const Places at = places<T>();
    const int64_t n = shape_.hidden, inputs = shape_.inputs, row_length = CellKind::gates * cell.width;
    std::array<const T*, max_rows> x;
    std::array<T*, max_rows> sums;
    size_t rows = 0;
    for (int64_t k = 0; k < steps_at_once(count); ++k)
      for (int64_t i = 0; i < count; ++i) {
        if (step + k >= lengths[i]) continue;
        x[rows] = data_of<T>(context, port_x) + shape_.x(time_of(d, step + k, lengths[i]), first + i);
        sums[rows] = memory + at.sums + (k * count + i) * row_length;
        std::copy_n(memory + at.bias, row_length, sums[rows++]);
      }
    const T* const w = data_of<T>(context, port_w) + d * CellKind::gates * n * inputs;
    const RecurrentLoops<T>& loops = recurrent_loops<T>();
    for (int64_t gate = 0; gate < CellKind::gates; ++gate)
      for (int64_t column = 0; column < n; column += loops.panel_columns)
        for (int64_t k = 0; k < inputs; k += max_depth) {
          const int64_t depth = std::min(max_depth, inputs - k), columns = std::min(loops.panel_columns, n - column);
          if (cell.poll->stops((static_cast<int64_t>(rows) / 16 + 1) * depth * loops.panel_columns)) return;
          const T* panel = memory + at.panel;
          if (packed_w_)
            panel = static_cast<const T*>(packed_w_) + d * panels_of<T>(inputs) + (gate * cell.width + column) * inputs +
                    k * loops.panel_columns;
          else
            pack_panel(w + (gate * n + column) * inputs + k, 1, inputs, columns, depth, memory + at.panel);
          loops.multiply(x.data(), k, sums.data(), gate * cell.width + column, static_cast<int64_t>(rows), depth, panel, true);
        }
  }

  RecurrentShape shape_;
  bool backward_ = false, variant_ = false;
  double clip_ = 0;
  std::vector<RecurrentActivation> activations_;
  const void* packed_r_ = nullptr;  // R of all directions, where it is constant; owned by the host
  const void* packed_w_ = nullptr;  // and W
  RecurrentTiling tiling_;
};

template <class CellKind>
Op recurrent_operator(const char* name) {
  constexpr heddle_dtype_set floats = dtypes<float, double>();
  Op op(name, "", 14);
  op.in("X", floats).in("W", floats).in("R", floats).optional("B", floats);
  op.optional("sequence_lens", dtypes<int32_t>(), nullptr).optional("initial_h", floats);
  if (CellKind::gates == 4) op.optional("initial_c", floats).optional("P", floats);
  op.optional_out("Y", {}, floats).optional_out("Y_h", {}, floats);
  if (CellKind::gates == 4) op.optional_out("Y_c", {}, floats);
  op.optional_out("sums", {}, floats);
  op.maybe("activations", HEDDLE_ATTRIBUTE_STRINGS);
  op.maybe("activation_alpha", HEDDLE_ATTRIBUTE_FLOATS).maybe("activation_beta", HEDDLE_ATTRIBUTE_FLOATS);
  op.maybe("clip", HEDDLE_ATTRIBUTE_FLOAT).attribute("direction", "forward").maybe("hidden_size", HEDDLE_ATTRIBUTE_INT);
  op.attribute("layout", 0);
  if (CellKind::variant) op.attribute(CellKind::variant, 0);
  op.template cost<recurrent_cost<CellKind::gates>>();
  op.infer(infer_recurrent<CellKind::gates>).template cpu<Recurrent<CellKind>>();
  return op;
}

}  // namespace

void add_recurrent(Builder& plugin) {
  plugin.add(recurrent_operator<RnnCell>("RNN")
                 .doc("Runs a simple recurrent layer over sequences, forward, reverse or in both directions. Y is 0 after the end of a "
                      "sequence, and Y_h is the state at its end. \"sums\", an output that ONNX has not, keeps for the gradient what the "
                      "functions are applied to.")
                 .formula("H_t = f(X_t W^T + H_(t-1) R^T + biases)")
                 .shapes("X is [times, batches, inputs]; Y is [times, directions, batches, hidden], Y_h is [directions, batches, hidden], "
                         "sums is [times, batches, directions times hidden]. With layout 1 batches come first")
                 .gradient<rnn_gradient>()
                 .example("f32[2,1,2] = 1 -1 0.5 2, f32[1,2,2] = 0.5 1 -1 0.25, f32[1,2,2] = 0.5 -0.5 0.25 1"
                          " -> f32[2,1,1,2] = -0.4621172 -0.8482836 0.9850125 -0.7459728, f32[1,1,2] = 0.9850125 -0.7459728, f32[2,1,2] = "
                          "-0.5 -1.25 2.443083 -0.9638129",
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
  plugin.add(recurrent_operator<GruCell>("GRU")
                 .doc("Runs a layer of gated recurrent units (Cho et al. 2014) over sequences, forward, reverse or in both directions. Y "
                      "is 0 after the end of a sequence, and Y_h is the state at its end. \"sums\", an output that ONNX has not, keeps for "
                      "the gradient what the functions are applied to.")
                 .formula("z, r = f(X_t W_zr^T + H_(t-1) R_zr^T + biases); h = g(X_t W_h^T + (r H_(t-1)) R_h^T + biases), or with "
                          "linear_before_reset 1 g(X_t W_h^T + Wb_h + r (H_(t-1) R_h^T + Rb_h)); H_t = (1 - z) h + z H_(t-1)")
                 .shapes("X is [times, batches, inputs]; Y is [times, directions, batches, hidden], Y_h is [directions, batches, hidden], "
                         "sums is [times, batches, directions times 4 hidden]. With layout 1 batches come first")
                 .gradient<gru_gradient>()
                 .example("f32[2,1,2] = 1 -1 0.5 2, f32[1,3,2] = 0.5 1 -1 0.25 1 0.5, f32[1,3,1] = 0.5 -0.5 2"
                          " -> f32[2,1,1,1] = 0.2876491 0.3424892, f32[1,1,1] = 0.3424892, f32[2,1,4] = -0.5 -1.25 0.5 0 2.393825 "
                          "-0.1438246 1.766999 0.1334996",
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
      recurrent_operator<LstmCell>("LSTM")
          .doc("Runs a layer of long short-term memory cells (Hochreiter and Schmidhuber 1997) over sequences, forward, reverse or in both "
               "directions. Through the peepholes P the gates i and f see C_(t-1), and o sees C_t. With input_forget 1, f is 1 - i. Y is 0 "
               "after the end of a sequence, and Y_h is the state at its end. \"sums\", an output that ONNX has not, keeps for the "
               "gradient what the functions are applied to.")
          .formula("i, o, f = s(X_t W_iof^T + H_(t-1) R_iof^T + P C + biases); c = g(X_t W_c^T + H_(t-1) R_c^T + biases); C_t = f C_(t-1) "
                   "+ i c; H_t = o h(C_t)")
          .shapes("X is [times, batches, inputs]; Y is [times, directions, batches, hidden], Y_h and Y_c are [directions, batches, "
                  "hidden], sums is [times, batches, directions times 4 hidden]. With layout 1 batches come first")
          .gradient<lstm_gradient>()
          .example("f32[2,1,2] = 1 -1 0.5 2, f32[1,4,2] = 0.5 1 -1 0.25 1 0.5 0.25 -0.5, f32[1,4,1] = 0.5 -0.5 2 1"
                   " -> f32[2,1,1,1] = 0.05240172 -0.1932892, f32[1,1,1] = -0.1932892, f32[1,1,1] = -0.413818, f32[2,1,4] = -0.5 -1.25 0.5 "
                   "0.75 2.276201 -0.02620086 1.604803 -0.8225983",
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
