// Normalisation along rows: LayerNormalization, RMSNormalization and LpNormalization.
//
// Rows are independent; a tile is a range of rows. 16-bit floats are normalised in f32 (stash_type 1).
#include <algorithm>
#include <limits>

#include "families.h"
#include "normalization/normalization_shapes.h"
#include "normalization/normalization_work.h"
#include "reduce/accumulator.h"
#include "shared/axes.h"
#include "shared/dims.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cost.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

// ---------------------------------------------------------------- layer and RMS normalisation

// The dtypes of the statistics: f32 or bf16 where they are outputs.
heddle_dtype_set stash_types(const heddle_operator& op) {
  return op.output_count > 1 ? dtypes<float, bf16>() : float_dtypes;
}

template <bool centred>
class RowNormalization {
 public:
  Status create(const CreateContext& context) {
    axis_ = context.attributes.i("axis");
    epsilon_ = context.attributes.f("epsilon");
    return read_stash_type(context.attributes, stash_types(context.op()), &stash_);
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(0);
    RowShape shape;
    if (Status s = row_shape(dims_of(x), axis_, &shape); !s.ok()) return s;
    tiling_.plan(context, static_cast<int64_t>(x.byte_size), 2);
    context.set_scratch(0, static_cast<uint64_t>(shape.columns) * 3 * byte_width(working_dtype(x.dtype, stash_)) + 64);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    RowShape shape;
    if (Status s = row_shape(dims_of(*context.inputs[0]), axis_, &shape); !s.ok()) return s;
    if (writes_nothing(context)) return {};
    const auto [first, last] = tiling_.range(shape.rows, begin, end);
    if (shape.columns == 0) {  // the moments of an empty row
      for (int64_t r = first; r < last; ++r)
        for (const uint32_t output : {1u, 2u}) store_statistic(context, output, r, std::numeric_limits<double>::quiet_NaN());
      return {};
    }
    CancellationPoll poll(context);
    with_working(working_dtype(context.inputs[0]->dtype, stash_),
                 [&, first = first, last = last](auto zero) { run_rows<decltype(zero)>(context, shape.columns, first, last, poll); });
    return poll.status();
  }

 private:
  template <class T>
  void run_rows(const RunContext& context, int64_t columns, int64_t first, int64_t last, CancellationPoll& poll) const {
    T* buffer = thread_scratch<T>(context);
    const T* scale = parameter_row(context.inputs[1], columns, buffer);
    const T* bias = parameter_row(centred && context.input_count > 2 ? context.inputs[2] : nullptr, columns, buffer + columns);
    T* row = buffer + 2 * columns;
    for (int64_t r = first; r < last && !poll.stops(2 * columns); ++r) {
      const T* x = as_working(*context.inputs[0], r * columns, columns, row);
      T* y = target(*context.outputs[0], r * columns, row);
      const Moments<T> m = centred ? row_moments(x, columns) : Moments<T>{0, 0, row_squares(x, columns) / static_cast<double>(columns)};
      const double inverse = 1 / std::sqrt(m.variance + epsilon_);
      if (poll.stops(columns)) return;
      row_apply(x, y, columns, m.shift, static_cast<T>(inverse), static_cast<T>(-m.rest * inverse), scale, bias);
      store_working(*context.outputs[0], r * columns, columns, y);
      store_statistic(context, 1, r, m.mean());
      store_statistic(context, 2, r, inverse);
    }
  }
  static void store_statistic(const RunContext& context, uint32_t output, int64_t row, double value) {
    if (output >= context.output_count || !context.outputs[output]) return;
    heddle_tensor& statistic = *context.outputs[output];
    convert(HEDDLE_F64, &value, statistic.dtype, at(statistic, row), 1);
  }

  int64_t axis_ = -1;
  double epsilon_ = 0;
  heddle_dtype stash_ = HEDDLE_F32;
  Tiling tiling_;
};

Status infer_row_normalization(InferContext& context) {
  const Dims x = context.dims(0);
  RowShape shape;
  if (Status s = row_shape(x, context.attributes.i("axis"), &shape); !s.ok()) return s;
  for (uint32_t i = 1; i < context.input_count(); ++i) {
    if (!context.has_input(i)) continue;
    if (Status s = check_parameter(i == 1 ? "scale" : "B", context.dims(i), x, shape.columns); !s.ok()) return s;
  }
  heddle_dtype stash = HEDDLE_F32;
  if (Status s = read_stash_type(context.attributes, stash_types(context.op()), &stash); !s.ok()) return s;
  std::vector<int64_t> statistics = vector_of(x);
  int axis = 0;
  normalize_axis(context.attributes.i("axis"), x.rank, &axis);
  std::fill(statistics.begin() + axis, statistics.end(), 1);
  for (uint32_t output = 1; output < context.output_count(); ++output) {
    context.set_dims(output, statistics);
    context.set_dtype(output, stash);
  }
  return {};
}

// The gradients' kernels compute the moments of a row again: outputs of the forward operator hold them in f32 or bf16, which is not exact
// enough for rows far from zero, and a row is in the cache anyway.
template <bool centred>
Status row_normalization_gradient(GradientContext& g) {
  const Attributes& a = g.attributes();
  const GradientValue dy = g.dy(0) ? g.dy(0) : zeros_like(g, g.x(0));
  std::vector<GradientValue> inputs = {dy, g.x(0), g.x(1)};
  if (centred) inputs.insert(inputs.end(), {g.dy(1), g.dy(2)});
  const uint32_t outputs = centred && g.wants(2) ? 3 : g.wants(1) ? 2 : 1;
  const std::vector<GradientValue> made = g.emit_all(centred ? "LayerNormalizationGradient" : "RMSNormalizationGradient", inputs, outputs,
                                                     {GradientAttribute(a.find("axis")), GradientAttribute(a.find("epsilon")),
                                                      GradientAttribute(centred ? nullptr : a.find("stash_type"))},
                                                     "heddle");
  for (uint32_t i = 0; i < outputs; ++i) g.give(i, made[i]);
  return {};
}

// ---------------------------------------------------------------- Lp normalisation

// x / (sum |x|^p)^(1/p) along an axis; where the norm is 0 the result is 0.
class LpNormalization {
 public:
  Status create(const CreateContext& context) {
    axis_ = context.attributes.i("axis");
    p_ = context.attributes.i("p");
    if (p_ == 1 || p_ == 2) return {};
    return invalid("p is " + std::to_string(p_) + ", expected 1 or 2");
  }
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, static_cast<int64_t>(context.input(0)->byte_size), 2);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    if (writes_nothing(context)) return {};
    const heddle_tensor& x = *context.inputs[0];
    int axis = 0;
    if (!normalize_axis(axis_, x.rank, &axis)) return axis_outside("axis", axis_, x.rank);
    const Dims dims = dims_of(x);
    const int64_t count = dims[axis], inner = dims.count(axis + 1, dims.rank);
    const auto [first, last] = tiling_.range(dims.count(0, axis) * inner, begin, end);
    CancellationPoll poll(context);
    for (int64_t o = first, n; o < last && !poll.stopped(); o += n) {
      n = std::min({inner - o % inner, last - o, chunk});
      normalize(x, *context.outputs[0], {o / inner * count * inner + o % inner, count, inner, n}, poll);
    }
    return poll.status();
  }

 private:
  // `columns` neighbouring vectors of `count` elements, which lie `inner` apart; the first begins at `start`.
  struct Block {
    int64_t start, count, inner, columns;
  };
  static constexpr int64_t chunk = 512;

  void normalize(const heddle_tensor& x, heddle_tensor& y, const Block& block, CancellationPoll& poll) const {
    double norms[chunk] = {};
    const FoldFunctions& functions = isa_folds().functions[fold_type(x.dtype)][p_ == 1 ? fold_abs : fold_square];
    const int64_t together = std::max<int64_t>(1, CancellationPoll::between / block.columns);
    for (int64_t i = 0; i < block.count; i += together) {
      const int64_t n = std::min(together, block.count - i);
      if (poll.stops(2 * n * block.columns)) return;
      if (block.inner == 1)
        functions.row(at(x, block.start + i), n, nullptr, norms);
      else
        functions.columns(at(x, block.start + i * block.inner), n, block.inner, block.columns, nullptr, norms);
    }
    // f32 divides where it holds the norms.
    bool in_float = x.dtype != HEDDLE_F64;
    for (int64_t j = 0; j < block.columns; ++j) {
      if (p_ == 2) norms[j] = std::sqrt(norms[j]);
      in_float = in_float && (norms[j] == 0 || (norms[j] > 1e-37 && norms[j] < 1e38));
    }
    if (in_float)
      divide<float>(x, y, block, norms, poll);
    else
      divide<double>(x, y, block, norms, poll);
  }
  template <class T>
  static void divide(const heddle_tensor& x, heddle_tensor& y, const Block& block, const double* norms, CancellationPoll& poll) {
    const bool rows = block.inner == 1;
    const int64_t stretch = rows ? std::min(chunk, block.count) : block.columns;
    T divisors[chunk], buffer[chunk];
    for (int64_t j = 0; j < stretch; ++j) divisors[j] = static_cast<T>(norms[rows ? 0 : j]);
    for (int64_t i = 0; i < block.count && !poll.stops(4 * stretch); i += rows ? stretch : 1) {
      const int64_t start = block.start + i * block.inner, n = rows ? std::min(stretch, block.count - i) : stretch;
      T* const to = target(y, start, buffer);
      row_divide_each(as_working(x, start, n, buffer), to, n, divisors);
      store_working(y, start, n, to);
    }
  }

  int64_t axis_ = -1, p_ = 2;
  Tiling tiling_;
};

// Where the norm is 0 the gradient is 0, as the result is.
Status lp_normalization_gradient(GradientContext& g) {
  const bool manhattan = g.attributes().i("p") == 1;
  const GradientValue axis = g.ints({g.attributes().i("axis")});
  const GradientValue norm = g.emit(manhattan ? "ReduceL1" : "ReduceL2", {g.x(0), axis});
  const GradientValue along = g.emit("ReduceSum", {g.emit("Mul", {g.dy(0), g.y(0)}), axis});
  if (manhattan)
    g.give(0, pointwise(g, "select(eq(x3, 0), 0, (x0 - sign(x1) * x2) / x3)", {g.dy(0), g.x(0), along, norm}));
  else
    g.give(0, pointwise(g, "select(eq(x3, 0), 0, (x0 - x1 * x2) / x3)", {g.dy(0), g.y(0), along, norm}));
  return {};
}

}  // namespace

void add_normalization(Builder& plugin) {
  plugin.add(Op("LayerNormalization", "", 17)
                 .doc("Normalizes over the axes from `axis` on (Ba et al. 2016). Mean and InvStdDev are the statistics that were used.")
                 .formula("Y = (X - mean) / sqrt(var + epsilon) Scale + B")
                 .shapes("Y has the dims of X; Mean and InvStdDev have them with extent 1 from `axis` on")
                 .in("X", float_dtypes)
                 .in("Scale", float_dtypes)
                 .optional("B", float_dtypes)
                 .out("Y", same_as("X"), float_dtypes)
                 .optional_out("Mean", {}, dtypes<float, bf16>(), nullptr)
                 .optional_out("InvStdDev", {}, dtypes<float, bf16>(), nullptr)
                 .attribute("axis", -1)
                 .attribute("epsilon", 1e-5)
                 .attribute("stash_type", 1)
                 .in_place("Y", "X")
                 .precision(HEDDLE_PRECISION_FULL)
                 .infer(infer_row_normalization)
                 .cost<per_input_element<8>>()  // mean and variance, then difference, quotient, scale and B
                 .gradient<row_normalization_gradient<true>>()
                 .cpu<RowNormalization<true>>()
                 .example("f32[2,3] = -4 -3 3 -4 3 -3, f32[3] = 1 2 0.5, f32[3] = 0 1 -1 -> f32[2,3] = -0.8626618 -0.0783273 -0.2990873 "
                          "-0.8626618 3.80365 -1.269582, f32[2,1] = -1.333333, f32[2,1] = 0.3234982",
                          "ONNX Runtime")
                 .example("f32[2,2,2] = -4 -3 3 -4 3 -3 -4 0, f32[2,2] = 1 2 0.5 1; axis=1, epsilon=0.5, stash_type=1 -> f32[2,2,2] = "
                          "-0.6666667 -0.6666667 0.8333334 -0.6666667 1.414214 -1.414214 -0.5303301 0.3535534",
                          "ONNX Runtime")
                 .example("f32[2,2] = 1 3 -2 2, f32[2] = 1 2; epsilon=0, stash_type=16 -> f32[2,2] = -1 2 -1 2, bf16[2,1] = 2 0, "
                          "bf16[2,1] = 1 0.5",
                          "by hand"));
  plugin.add(
      Op("RMSNormalization", "", 23)
          .doc("Divides by the root of the mean square over the axes from `axis` on (Zhang and Sennrich 2019). The result has the dtype of "
               "X: ONNX's text says both X's and scale's, which may be another.")
          .formula("Y = X / sqrt(mean(X^2) + epsilon) scale")
          .shapes("Y has the dims of X")
          .in("X", float_dtypes)
          .in("scale", float_dtypes, "V")
          .out("Y", same_as("X"), float_dtypes)
          .attribute("axis", -1)
          .attribute("epsilon", 1e-5)
          .attribute("stash_type", 1)
          .in_place("Y", "X")
          .precision(HEDDLE_PRECISION_FULL)
          .infer(infer_row_normalization)
          .cost<per_input_element<4>>()
          .gradient<row_normalization_gradient<false>>()
          .cpu<RowNormalization<false>>()
          .example("f32[2,3] = -4 -3 3 -4 3 -3, f32[3] = 1 2 0.5 -> f32[2,3] = -1.188177 -1.782265 0.4455662 -1.188177 1.782265 -0.4455662",
                   "the ONNX reference")
          .example("f32[2,2,2] = -4 -3 3 -4 3 -3 -4 0, f32[2,2] = 1 2 0.5 1; axis=1, epsilon=0.5 -> f32[2,2,2] = -1.1094 -1.664101 "
                   "0.4160252 -1.1094 1 -2 -0.6666667 0",
                   "the ONNX reference")
          .example("f32[1,3] = 0, bf16[3] = 1 2 3 -> f32[1,3] = 0", "by hand")
          .example("f32[1,4] = 4096 4096 -4096 0, f32[4] = 3; epsilon=0, stash_type=11 -> f32[1,4] = 3.464102 3.464102 -3.464102 0",
                   "by hand"));
  plugin.add(Op("LpNormalization", "", 1)
                 .doc("Divides by the p-norm along an axis. Where the norm is 0, so is the result.")
                 .formula("output = input / (sum(|input|^p))^(1/p)")
                 .in("input", float_dtypes)
                 .out("output", same_as("input"), float_dtypes)
                 .attribute("axis", -1)
                 .attribute("p", 2)
                 .in_place("output", "input")
                 .precision(HEDDLE_PRECISION_FULL)
                 .cost<per_input_element<3>>()
                 .gradient<lp_normalization_gradient>()
                 .cpu<LpNormalization>()
                 .example("f32[2,3] = 1 3 3 1 5 7 -> f32[2,3] = 0.2294157 0.6882472 0.6882472 0.11547 0.5773503 0.8082904", "ONNX Runtime")
                 .example("f32[3,2] = 1 3 3 1 5 7; axis=0, p=1 -> f32[3,2] = 0.1111111 0.2727273 0.3333333 0.09090909 0.5555556 0.6363636",
                          "ONNX Runtime"));
}

}  // namespace heddle::cpu
