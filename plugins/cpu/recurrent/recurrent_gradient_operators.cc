// heddle::RnnGradient, GruGradient and LstmGradient (recurrent_gradient.h).
//
// Tiles are ranges of batch entries, as in the forward operators. Sums over batch entries are left to other operators.
#include <algorithm>
#include <string>
#include <utility>

#include "families.h"
#include "recurrent/recurrent_gradient.h"
#include "recurrent/recurrent_gradient_cells.h"
#include "recurrent/recurrent_tile.h"
#include "shared/dims.h"
#include "shared/input_shapes.h"
#include "shared/recurrent/recurrent_shape.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

template <class CellKind>
Status infer_gradient(InferContext& context) {
  RecurrentShape s;
  HEDDLE_PLUGIN_CHECK(read_gates_shape(context.attributes, context.dims(in_sums), context.dims(in_r), CellKind::gates, &s));
  const std::vector<int64_t> state =
      s.batch_first ? std::vector<int64_t>{s.batches, s.directions, s.hidden} : std::vector<int64_t>{s.directions, s.batches, s.hidden};
  const std::vector<int64_t> y = s.batch_first ? std::vector<int64_t>{s.batches, s.times, s.directions, s.hidden}
                                               : std::vector<int64_t>{s.times, s.directions, s.batches, s.hidden};
  HEDDLE_PLUGIN_CHECK(expect_shape(context, in_lengths, {s.batches}));
  HEDDLE_PLUGIN_CHECK(expect_shape(context, in_h, state));
  HEDDLE_PLUGIN_CHECK(expect_shape(context, in_dy, y));
  HEDDLE_PLUGIN_CHECK(expect_shape(context, in_dy_h, state));
  HEDDLE_PLUGIN_CHECK(expect_shape(context, in_arriving, vector_of(context.dims(in_sums))));
  HEDDLE_PLUGIN_CHECK(expect_shape(context, in_c, state));
  HEDDLE_PLUGIN_CHECK(expect_shape(context, in_dy_c, state));
  HEDDLE_PLUGIN_CHECK(expect_shape(context, in_p, {s.directions, 3 * s.hidden}));
  std::vector<int64_t> rows_dims = vector_of(context.dims(in_sums));
  rows_dims.back() = s.directions * CellKind::gates * s.hidden;
  context.set_dims(out_dsums, rows_dims);
  rows_dims.back() = s.directions * s.hidden;
  context.set_dims(out_states, rows_dims);
  context.set_dims(out_dh, state);
  if (CellKind::has_hidden_part) context.set_dims(out_hidden_part, rows_dims);
  if (!CellKind::has_cell) return {};
  context.set_dims(out_dc, state);
  context.set_dims(out_dp, {s.directions, s.batches, 3 * s.hidden});
  return {};
}

// Multiplications and additions with R.
double flops_of(const RecurrentShape& s, int gates) {
  const auto n = static_cast<double>(s.hidden);
  return 2.0 * static_cast<double>(s.times) * static_cast<double>(s.batches) * s.directions * gates * n * n;
}
template <class CellKind>
void gradient_cost(CostContext& context) {
  RecurrentShape s;
  if (read_gates_shape(context.attributes, context.dims(in_sums), context.dims(in_r), CellKind::gates, &s).ok())
    context.set_flops(flops_of(s, CellKind::gates));
}

// Offsets in the scratch of a thread, in elements.
struct GradientPlaces {
  int64_t rows, sums, values, h, dh, dc, part, cells, end;
};

template <class CellKind>
class RecurrentGradient {
 public:
  Status create(const CreateContext& context) {
    const Attributes& a = context.attributes;
    backward_ = a.s("direction") == "reverse";
    clip_ = a.f("clip");
    variant_ = CellKind::variant && a.i(CellKind::variant) != 0;
    HEDDLE_PLUGIN_CHECK(read_gates_shape(a, dims_of(*context.input(in_sums)), dims_of(*context.input(in_r)), CellKind::gates, &shape_));
    return parse_activations(a, shape_.directions, CellKind::activations(), &activations_);
  }
  Status prepare(PrepareContext& context) {
    set_sequences(dims_of(*context.input(in_sums)), &shape_);
    tiling_.plan(context, shape_, flops_of(shape_, CellKind::gates) / 2);
    const bool is_double = context.input(in_sums)->dtype == HEDDLE_F64;
    const int64_t bytes =
        is_double ? places<double>().end * static_cast<int64_t>(sizeof(double)) : places<float>().end * static_cast<int64_t>(sizeof(float));
    context.set_scratch(0, static_cast<uint64_t>(bytes));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    if (writes_nothing(context)) return {};
    const bool is_double = context.inputs[in_sums]->dtype == HEDDLE_F64;
    return tiling_.for_each(shape_, begin, end, [&](int64_t d, int64_t first, int64_t last) {
      return is_double ? run_direction<double>(context, d, first, last) : run_direction<float>(context, d, first, last);
    });
  }

 private:
  template <class T>
  static const T* data_of(const RunContext& context, uint32_t port) {
    return port < context.input_count && context.inputs[port] ? static_cast<const T*>(context.inputs[port]->data) : nullptr;
  }
  template <class T>
  static T* result_of(const RunContext& context, uint32_t port) {
    return static_cast<T*>(context.outputs[port]->data);
  }

  // Batch entries that go through the steps together: fewer where LSTM's states of all steps would take much memory.
  template <class T>
  int64_t entries_at_once() const {
    constexpr int64_t max_bytes = int64_t{32} << 20;
    const int64_t most = std::min(max_entries, shape_.batches);
    const double each =
        CellKind::has_cell ? static_cast<double>(shape_.times + 1) * static_cast<double>(padded<T>(shape_.hidden)) * sizeof(T) : 0;
    return static_cast<double>(most) * each <= static_cast<double>(max_bytes)
               ? most
               : std::max(int64_t{1}, static_cast<int64_t>(max_bytes / each));
  }
  template <class T>
  GradientPlaces places() const {
    const int64_t n = shape_.hidden, width = padded<T>(n), entries = entries_at_once<T>(), of_gates = CellKind::gates * width;
    GradientPlaces at = {};
    at.sums = at.rows + width * CellKind::gates * n;
    at.values = at.sums + of_gates;
    at.h = at.values + (CellKind::has_hidden_part ? entries : 1) * 2 * of_gates;
    at.dh = at.h + entries * width;
    at.dc = at.dh + entries * width;
    at.part = at.dc + entries * width;
    at.cells = at.part + (CellKind::has_hidden_part ? entries : 2) * width;
    at.end = at.cells + (CellKind::has_cell ? (shape_.times + 1) * entries * width : 0);
    return at;
  }

  template <class T>
  Status run_direction(const RunContext& context, int64_t d, int64_t first, int64_t last) const {
    const GradientPlaces at = places<T>();
    auto* const memory = thread_scratch<T>(context);
    CancellationPoll poll(context);
    const int64_t n = shape_.hidden, rows = CellKind::gates * n;
    GradientCell<T> cell = {};
    cell.activations = activations_.data() + static_cast<size_t>(d) * (activations_.size() / static_cast<size_t>(shape_.directions));
    cell.rows = memory + at.rows;
    cell.peepholes = CellKind::has_cell ? data_of<T>(context, in_p) : nullptr;
    if (cell.peepholes) cell.peepholes += d * 3 * n;
    cell.hidden = n;
    cell.width = padded<T>(n);
    cell.clip = static_cast<T>(clip_);
    cell.variant = variant_;
    cell.poll = &poll;
    pack_panels(data_of<T>(context, in_r) + d * rows * n, n, 1, n, rows, memory + at.rows, &poll);
    for (int64_t most = entries_at_once<T>(), groups = (last - first + most - 1) / most; groups > 0; --groups) {
      const int64_t count = (last - first + groups - 1) / groups;
      HEDDLE_PLUGIN_CHECK(Group<T>(*this, context, cell, memory, d, first, count).run());
      first += count;
    }
    return {};
  }

  // Runs all steps of batch entries [first, first + count) of a direction, forward and back.
  template <class T>
  class Group {
   public:
    Group(const RecurrentGradient& layer, const RunContext& context, const GradientCell<T>& cell, T* memory, int64_t d, int64_t first,
          int64_t count)
        : layer_(layer),
          shape_(layer.shape_),
          at_(layer.template places<T>()),
          context_(context),
          cell_(cell),
          memory_(memory),
          d_(d),
          first_(first),
          count_(count) {}

    Status run() {
      HEDDLE_PLUGIN_CHECK(read_lengths(data_of<int32_t>(context_, in_lengths), shape_, first_, count_, lengths_.data()));
      const int64_t longest = *std::max_element(lengths_.begin(), lengths_.begin() + count_);
      for (int64_t i = 0; i < count_; ++i) start(i);
      for (int64_t step = 0; step < longest; ++step) {
        forward(step);
        if (cell_.poll->stops(n() * count_)) return cancelled();
      }
      for (int64_t step = longest; step-- > 0;) {
        back(step);
        if (cell_.poll->stops(n() * count_)) return cancelled();
      }
      for (int64_t i = 0; i < count_; ++i) HEDDLE_PLUGIN_CHECK(finish(i));
      return {};
    }

   private:
    int64_t n() const { return shape_.hidden; }
    int64_t length_of(int64_t i) const { return lengths_[static_cast<size_t>(i)]; }
    int64_t time_of(int64_t i, int64_t step) const { return layer_.backward_ || d_ == 1 ? length_of(i) - 1 - step : step; }
    // Addresses of rows of scratch and of tensors.
    T* row(int64_t place, int64_t i) const { return memory_ + place + i * cell_.width; }
    T* cell_at(int64_t i, int64_t step) const {
      return CellKind::has_cell ? memory_ + at_.cells + (step * count_ + i) * cell_.width : nullptr;
    }
    int64_t tensor_row(int64_t i, int64_t t) const { return shape_.row(t, d_, first_ + i); }
    const T* sums_at(int64_t i, int64_t t) const {
      return data_of<T>(context_, in_sums) + tensor_row(i, t) * kept_gates(CellKind::gates) * n();
    }
    T* gates_at(int64_t i, int64_t t) const { return result_of<T>(context_, out_dsums) + tensor_row(i, t) * CellKind::gates * n(); }
    T* before_at(int64_t i, int64_t t) const { return result_of<T>(context_, out_states) + tensor_row(i, t) * n(); }
    T* hidden_part_at(int64_t i, int64_t t) const {
      return CellKind::has_hidden_part ? result_of<T>(context_, out_hidden_part) + tensor_row(i, t) * n() : nullptr;
    }

    void start(int64_t i) {
      const int64_t state = shape_.state(d_, first_ + i), width = cell_.width;
      copy_state(data_of<T>(context_, in_h), state, n(), row(at_.h, i), width);
      copy_state(data_of<T>(context_, in_dy_h), state, n(), row(at_.dh, i), width);
      if (!CellKind::has_cell) return;
      copy_state(data_of<T>(context_, in_c), state, n(), cell_at(i, 0), width);
      copy_state(data_of<T>(context_, in_dy_c), state, n(), row(at_.dc, i), width);
      std::fill_n(peepholes_of(i), 3 * n(), T(0));
    }
    T* peepholes_of(int64_t i) const {
      return CellKind::has_cell ? result_of<T>(context_, out_dp) + (d_ * shape_.batches + first_ + i) * 3 * n() : nullptr;
    }

    // Computes the states before and after the step from the sums, which include the terms of the peepholes.
    void forward(int64_t step) {
      const int64_t width = cell_.width;
      Cell<T> cell = cell_;
      cell.peepholes = nullptr;
      for (int64_t i = 0; i < count_; ++i) {
        if (step >= length_of(i)) continue;
        T *const sums = memory_ + at_.sums, *const h = row(at_.h, i);
        const int64_t t = time_of(i, step);
        for (int64_t gate = 0; gate < CellKind::gates; ++gate) copy_state(sums_at(i, t), gate * n(), n(), sums + gate * width, width);
        std::copy_n(h, n(), before_at(i, t));
        CellKind::advance(cell, Entry<T>{sums, memory_ + at_.values, h, cell_at(i, step), cell_at(i, step + 1), nullptr});
      }
    }

    void back(int64_t step) {
      const int64_t of_gates = CellKind::gates * cell_.width;
      const T *const dy = data_of<T>(context_, in_dy), *const arriving = data_of<T>(context_, in_arriving);
      GradientEntries<T> entries;
      int64_t count = 0;
      for (int64_t i = 0; i < count_; ++i) {
        if (step >= length_of(i)) continue;
        const int64_t t = time_of(i, step);
        T *const dh = row(at_.dh, i), *const values = memory_ + at_.values + (CellKind::has_hidden_part ? i * 2 * of_gates : 0);
        for (int64_t j = 0; j < n() && dy; ++j) dh[j] += dy[shape_.y(t, d_, first_ + i) + j];
        const int64_t of_sums = CellKind::gates * n(), kept = tensor_row(i, t) * kept_gates(CellKind::gates) * n();
        copy_state(arriving, kept, of_sums, gates_at(i, t), of_sums);
        if (CellKind::has_hidden_part) copy_state(arriving, kept + of_sums, n(), row(at_.part, i), cell_.width);
        entries[static_cast<size_t>(count++)] = {sums_at(i, t),
                                                 gates_at(i, t),
                                                 before_at(i, t),
                                                 hidden_part_at(i, t),
                                                 cell_at(i, step),
                                                 cell_at(i, step + 1),
                                                 dh,
                                                 row(at_.dc, i),
                                                 peepholes_of(i),
                                                 values,
                                                 values + of_gates,
                                                 row(at_.part, CellKind::has_hidden_part ? i : 0)};
      }
      CellKind::back(cell_, entries, count);
    }

    // Writes the gradients of the initial states, and zeros for steps after the end of a sequence.
    Status finish(int64_t i) {
      const int64_t state = shape_.state(d_, first_ + i);
      std::copy_n(row(at_.dh, i), n(), result_of<T>(context_, out_dh) + state);
      if (CellKind::has_cell) std::copy_n(row(at_.dc, i), n(), result_of<T>(context_, out_dc) + state);
      for (int64_t t = length_of(i); t < shape_.times; ++t) {
        if (cell_.poll->stops(n())) return cancelled();
        std::fill_n(gates_at(i, t), CellKind::gates * n(), T(0));
        std::fill_n(before_at(i, t), n(), T(0));
        if (CellKind::has_hidden_part) std::fill_n(hidden_part_at(i, t), n(), T(0));
      }
      return {};
    }

    const RecurrentGradient& layer_;
    const RecurrentShape& shape_;
    const GradientPlaces at_;
    const RunContext& context_;
    const GradientCell<T>& cell_;
    T* const memory_;
    const int64_t d_, first_, count_;
    std::array<int64_t, max_entries> lengths_;
  };

  RecurrentShape shape_;
  bool backward_ = false, variant_ = false;
  double clip_ = 0;
  std::vector<RecurrentActivation> activations_;
  RecurrentTiling tiling_;
};

template <class CellKind>
Op gradient_operator(const char* name) {
  constexpr heddle_dtype_set floats = dtypes<float, double>();
  Op op(name, "heddle");
  op.in("sums", floats).in("R", floats).optional("sequence_lens", dtypes<int32_t>(), nullptr);
  op.optional("initial_h", floats).optional("dY", floats).optional("dY_h", floats).optional("dsums", floats);
  if (CellKind::has_cell) op.optional("initial_c", floats).optional("dY_c", floats).optional("P", floats);
  op.out("dgates", {}, floats).out("states", {}, floats).out("dinitial_h", {}, floats);
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

void add_recurrent_gradient(Builder& plugin) {
  constexpr const char* source = "PyTorch's autograd of the formulas of ONNX";
  plugin.add(
      gradient_operator<RnnGradientCell>("RnnGradient")
          .doc("Computes the gradients of RNN's sums and of its initial state, and gives the states before each step.")
          .shapes("dgates is [times, batches, directions gates hidden], states [times, batches, directions hidden], dinitial_h "
                  "[directions, batches, hidden]. With layout 1 batches come first")
          .example("f32[2,1,2] = -0.5 1 0.25 -0.75, f32[1,2,2] = -0.75 0.5 0.5 1, -, -, f32[2,1,1,2] = 0.5 0.75 1 1.5, -, f32[2,1,2] = "
                   "0.25 -0.5 1 0.75 -> f32[2,1,2] = 0.1457392 0.9131659 1.940015 1.644879, f32[2,1,2] = 0 0 -0.4621172 0.7615942, "
                   "f32[1,1,2] = 0.3472785 0.9860355",
                   source)
          .example("f32[2,2,1] = 1.25 0.75 0.5 0.25, f32[1,1,1] = -0.5, i32[2] = 2 1, f32[1,2,1] = -2 2, f32[2,1,2,1] = 0.5 1.5 0.25 "
                   "-0.75, f32[1,2,1] = -0.25 0.75; direction=\"reverse\", clip=1 -> f32[2,2,1] = 0 1.342318 0.1966119 0, f32[2,2,1] = "
                   "0.4621172 2 -2 0, f32[1,2,1] = -0.09830596 -0.671159",
                   source)
          .example(
              "f32[1,2,2] = 0.75 -0.25 0.5 -2, f32[2,1,1] = 2 -2, -, -, -, f32[1,2,1] = -1 0.75; layout=1, direction=\"bidirectional\", "
              "activations=[\"ScaledTanh\",\"LeakyRelu\"], activation_alpha=[2,0.5], activation_beta=[0.5] -> f32[1,2,2] = -1.638596 0.375 "
              "-0.9400148 -0.375, f32[1,2,2] = 0 -1 0.7167148 0, f32[1,2,1] = -3.277193 0.75",
              source));
  plugin.add(
      gradient_operator<GruGradientCell>("GruGradient")
          .doc("Computes the gradients of GRU's gates and of its initial state, and gives the states before each step, and what of the "
               "hidden gate's product with R differs: the scaled states or, with linear_before_reset, its gradient.")
          .shapes("dgates is [times, batches, directions gates hidden], states and hidden_part are [times, batches, directions hidden], "
                  "dinitial_h is [directions, batches, hidden]. With layout 1 batches come first")
          .example("f32[2,1,4] = 1 0.25 -0.5 0.5 1 0.5 -0.75 -0.25, f32[1,3,1] = -0.75 0.75 -0.75, -, -, f32[2,1,1,1] = -2 -1.5, -, "
                   "f32[2,1,4] = 0.25 0.5 -0.25 1 -0.5 0.75 0.5 -1 -> f32[2,1,3] = -0.0010809 0.5 -0.8344929 -0.6506637 0.7848875 0.25933, "
                   "f32[2,1,1] = 0 -0.1242824, f32[1,1,1] = -0.7304079, f32[2,1,1] = 0.5 -0.25",
                   source)
          .example("f32[2,2,4] = -2 -2 0.25 0.5 0.5 0.25 1 1 -0.75 -2 0.5 -1 0.5 0.5 0.25 0.75, f32[1,3,1] = -2 -0.25 -0.5, i32[2] = 2 1, "
                   "f32[1,2,1] = -0.75 2, f32[2,1,2,1] = -0.5 -0.75 -1.5 2, f32[1,2,1] = 1 -0.25, f32[2,2,4] = 0.25 0.5 -0.25 1 -0.5 0.75 "
                   "0.5 -1 1 0.25 -0.5 0.5 0 0 0 0; direction=\"reverse\", clip=1.5, linear_before_reset=1 -> f32[2,2,3] = 0.25 0.5 "
                   "0.1342661 -0.79103 0.8340406 0.3414426 1.672444 0.25 -1.859935 0 0 0, f32[2,2,1] = 0.07324415 2 -0.75 0, f32[1,2,1] = "
                   "-4.30456 1.155115, f32[2,2,1] = 1.024494 -0.808049 0.1607004 0",
                   source)
          .example(
              "f32[1,2,8] = 1 -1.5 -1 -0.25 0.5 -0.75 -0.75 -1 -1 2 1.5 -2 0.25 0.5 -0.5 1, f32[2,3,1] = 2 1 1 -0.75 -0.5 -0.25, -, -, -, "
              "f32[1,2,1] = 2 -0.75; layout=1, direction=\"bidirectional\", activations=[\"HardSigmoid\",\"Tanh\",\"Sigmoid\",\"Affine\"], "
              "activation_alpha=[0.25,0.5], activation_beta=[0.5,0.125] -> f32[1,2,6] = -0.06178182 0 -0.03406904 -0.03441725 "
              "-0.0004220767 -0.1415778 -0.5477734 0 0.27106 -0.01321325 0 -0.09401499, f32[1,2,2] = 0 -0.05472794 -0.1903985 0, "
              "f32[1,2,1] = -0.3711874 -0.2168952, f32[1,2,2] = -0.25 -1 -2 1",
              source));
  plugin.add(
      gradient_operator<LstmGradientCell>("LstmGradient")
          .doc("Computes the gradients of LSTM's gates, of its initial states and, for each batch entry, of its peepholes, and gives the "
               "states before each step.")
          .shapes("dgates is [times, batches, directions gates hidden], states [times, batches, directions hidden], dinitial_h and "
                  "dinitial_c are [directions, batches, hidden], dP is [directions, batches, 3 hidden]. With layout 1 batches come first")
          .example("f32[2,1,4] = -2 -0.5 2 0.75 1.5 1.5 0.25 2, f32[1,4,1] = 0.5 -1 0.5 -0.75, -, -, f32[2,1,1,1] = 0.75 0.25, -, "
                   "f32[2,1,4] = 0.25 0.5 -0.25 1 -0.5 0.75 0.5 -1 -> f32[2,1,4] = 0.2723537 0.5129419 -0.25 1.023838 -0.4842357 0.7753872 "
                   "0.5020432 -0.9936669, f32[2,1,1] = 0 0.02852972, f32[1,1,1] = -1.269644, f32[1,1,1] = 0.295248, f32[1,1,3] = "
                   "-0.03666226 0.6829712 0.0380105",
                   source)
          .example("f32[2,2,4] = 0.125 -0.125 0.125 -0.125 1 0.25 -0.75 0.75 -0.125 -0.25 -0.25 0.5 0.5 0.75 -1 0.125, f32[1,4,1] = -0.5 "
                   "0.125 0.375 -0.5, i32[2] = 2 1, f32[1,2,1] = -1.5 0.25, f32[2,1,2,1] = 1 0.75 0.25 -0.25, f32[1,2,1] = 1 0.5, -, "
                   "f32[1,2,1] = -0.25 -0.5, f32[1,2,1] = 2 1, f32[1,3] = 1 0.125 0.375; direction=\"reverse\", clip=0.9375 -> f32[2,2,4] "
                   "= -0.09094845 -0.004543249 0.07838881 1.536002 0 0.08850099 -0.1803776 0.7097773 0.1501864 -0.01166049 -0.08030556 "
                   "0.4811524 0 0 0 0, f32[2,2,1] = 0.04674719 0.25 -1.5 0, f32[1,2,1] = -0.3472415 -0.4114676, f32[1,2,1] = 0.6914622 "
                   "0.4635223, f32[1,2,3] = -0.04729448 -0.00120833 0.02847813 0 0.02619663 0.0901888",
                   source)
          .example(
              "f32[1,2,8] = -1.5 -0.25 -0.25 2 1 -0.5 0.5 -0.25 0.75 -0.75 0.5 0.5 1.5 1 0.25 2, f32[2,4,1] = 2 -1 -2 -0.25 -0.75 -2 -0.25 "
              "0.5, -, -, -, f32[1,2,1] = -1.5 0.75, -, -, f32[1,2,1] = -0.5 2; layout=1, direction=\"bidirectional\", input_forget=1, "
              "activations=[\"HardSigmoid\",\"Tanh\",\"Tanh\",\"Sigmoid\",\"Affine\",\"Softsign\"], activation_alpha=[0.25,0.5], "
              "activation_beta=[0.5,0.125] -> f32[1,2,8] = -0.05894458 0.00285845 0 -0.00215994 -0.394586 0.03495265 0 0.7975798 "
              "-0.07807615 -0.1279211 0 -0.4942944 0.1192593 0.05885699 0 0.2905522, f32[1,2,2] = 0 0.3502536 0.05246655 0, f32[1,2,1] = "
              "-0.1202076 -0.06188235, f32[1,2,1] = -0.2140043 0.1296619, f32[2,1,3] = -0.009408445 -0.04511397 0 -0.3629289 0.06278101 0",
              source));
}

}  // namespace heddle::cpu
