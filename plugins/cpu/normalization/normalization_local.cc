// LRN (local response normalisation across channels) and MeanVarianceNormalization.
#include <algorithm>

#include "families.h"
#include "normalization/normalization_work.h"
#include "shared/axes.h"
#include "shared/dims.h"
#include "shared/reduce_plan.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

constexpr int64_t chunk = 512;

// y = x / (bias + alpha / size * sum of squares over `size` neighbouring channels)^beta
class LocalResponse {
 public:
  Status create(const CreateContext& context) {
    size_ = context.attributes.i("size");
    if (size_ < 1) return invalid("size is " + std::to_string(size_) + ", expected at least 1");
    alpha_ = static_cast<float>(context.attributes.f("alpha") / static_cast<double>(size_));
    beta_ = static_cast<float>(context.attributes.f("beta"));
    bias_ = static_cast<float>(context.attributes.f("bias"));
    return {};
  }
  Status prepare(PrepareContext& context) {
    // Two operations for each neighbour, then the power.
    const heddle_tensor& x = *context.input(0);
    const int64_t neighbours = std::min(size_, x.dims[1]);
    tiling_.plan(context, static_cast<double>(x.byte_size), 16,
                 (2.0 * static_cast<double>(neighbours) + 10) * static_cast<double>(x.element_count));
    context.set_scratch(0, 2 * chunk * sizeof(float));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    if (writes_nothing(context)) return {};
    const heddle_tensor& x = *context.inputs[0];
    heddle_tensor& y = *context.outputs[0];
    const Dims dims = dims_of(x);
    const int64_t channels = dims[1], spatial = dims.count(2, dims.rank);
    float* sums = thread_scratch<float>(context);
    float* row = sums + chunk;
    const auto [first, last] = tiling_.range(dims[0] * channels, begin, end);
    CancellationPoll poll(context);
    for (int64_t r = first; r < last && !poll.stopped(); ++r) {
      const int64_t c = r % channels, from = std::max<int64_t>(0, c - (size_ - 1) / 2), to = std::min(channels - 1, c + size_ / 2);
      for (int64_t i = 0; i < spatial; i += chunk) {
        const int64_t n = std::min(chunk, spatial - i);
        std::fill(sums, sums + n, 0.0f);
        for (int64_t k = from; k <= to && !poll.stops(n); ++k)
          isa_normalizations().add_squares(as_working(x, (r - c + k) * spatial + i, n, row), sums, n);
        const int64_t start = r * spatial + i;
        float* result = target(y, start, row);
        isa_normalizations().local_response(as_working(x, start, n, row), sums, result, n, bias_, alpha_, beta_);
        store_working(y, start, n, result);
      }
    }
    return poll.status();
  }

 private:
  int64_t size_ = 1;
  float alpha_ = 0, beta_ = 0, bias_ = 0;
  Tiling tiling_;
};

Status infer_local_response(InferContext& context) {
  if (context.dims(0).rank >= 2) return {};
  return invalid("X has shape " + dims_text(context.dims(0)) + ", expected N, C and spatial dimensions");
}

void local_response_cost(CostContext& context) {
  const Dims x = context.dims(0);
  const int64_t neighbours = std::clamp<int64_t>(context.attributes.i("size"), 0, x.rank > 1 ? x[1] : 1);
  context.set_flops((2.0 * static_cast<double>(neighbours) + 10) * context.elements(0));
}

// The sums over neighbouring channels are average pools times their window size: the padding counts.
//
//   y = x * s^-beta, dx = dy * s^-beta - 2 alpha beta / size * x * (sum of dy * y / s over the channels that x is a neighbour of)
Status local_response_gradient(GradientContext& g) {
  const Attributes& a = g.attributes();
  const int rank = g.input_type(0).rank;
  const int64_t size = a.i("size"), before = (size - 1) / 2, behind = size / 2;
  if (rank + 1 > HEDDLE_MAX_RANK) return unsupported("the gradient of an input of " + std::to_string(rank) + " dimensions");
  const GradientValue axis = g.ints({1});
  const auto averages = [&](GradientValue x, int64_t begin, int64_t end) {
    std::vector<int64_t> window(static_cast<size_t>(rank) - 1, 1), pads(2 * window.size(), 0);
    window[0] = size;
    pads[0] = begin;
    pads[window.size()] = end;
    const GradientValue pooled =
        g.emit("AveragePool", {g.emit("Unsqueeze", {x, axis})}, {{"kernel_shape", window}, {"pads", pads}, {"count_include_pad", 1}});
    return g.emit("Squeeze", {pooled, axis});
  };
  const std::string alpha = number_text(a.f("alpha")), beta = number_text(a.f("beta"));
  const GradientValue squares = averages(g.emit("Mul", {g.x(0), g.x(0)}), before, behind);
  const GradientValue sums = pointwise(g, number_text(a.f("bias")) + " + " + alpha + " * x0", {squares});
  const GradientValue others = averages(pointwise(g, "x0 * x1 / x2", {g.dy(0), g.y(0), sums}), behind, before);
  g.give(0, pointwise(g, "x0 / pow(x2, " + beta + ") - 2 * " + alpha + " * " + beta + " * x1 * x3", {g.dy(0), g.x(0), sums, others}));
  return {};
}

std::vector<int64_t> mean_axes(const Attributes& attributes) {
  return attributes.has("axes") ? attributes.ints("axes") : std::vector<int64_t>{0, 2, 3};
}
Status infer_mean_variance(InferContext& context) {
  std::vector<int> axes;
  if (Status s = normalize_axes("axes", mean_axes(context.attributes), context.dims(0).rank, &axes); !s.ok()) return s;
  context.set_dims(0, context.dims(0));
  return {};
}

// y = (x - mean) / (standard deviation + 1e-9) over the given axes, as the function body in the ONNX specification.
class MeanVariance {
 public:
  Status create(const CreateContext& context) {
    axes_ = mean_axes(context.attributes);
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(0);
    std::vector<int> axes;
    if (Status s = normalize_axes("axes", axes_, x.rank, &axes); !s.ok()) return s;
    set_ = 0;
    for (int axis : axes) set_ |= 1u << axis;
    const double cost = static_cast<double>(x.element_count);
    context.set_tiles(plan_reduction(x, set_, cost, false).tiles());
    context.set_cost_ns(50 + cost);
    cost_ = cost;
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    if (writes_nothing(context)) return {};
    const ReducePlan plan = plan_reduction(*context.inputs[0], set_, cost_, false);
    CancellationPoll poll(context);
    const heddle_tensor& x = *context.inputs[0];
    heddle_tensor& y = *context.outputs[0];
    for (int64_t o = plan.output_begin(begin), last = plan.output_begin(end), n; o < last && !poll.stopped(); o += n) {
      n = plan.columns ? std::min({plan.row - o % plan.row, last - o, chunk}) : 1;
      if (plan.columns)
        normalize_columns(plan, x, y, o, n, poll);
      else
        with_working(working_dtype(x.dtype), [&](auto zero) { normalize_rows<decltype(zero)>(plan, x, y, o, poll); });
    }
    return poll.status();
  }

 private:
  // Calls f(first element, count) for each contiguous stretch of output `o`, which is folded by rows.
  template <class F>
  static void stretches(const ReducePlan& plan, int64_t o, CancellationPoll& poll, F f) {
    const int64_t base = plan.input_of(o), length = std::min(plan.row, chunk);
    for (int64_t r = 0; r < plan.folded && !poll.stops(length);) {
      const int64_t n = std::min(length, plan.row - r % plan.row);
      f(base + plan.folded_at(r), n);
      r += n;
    }
  }
  // Output `o`, whose elements lie in contiguous stretches.
  template <class T>
  static void normalize_rows(const ReducePlan& plan, const heddle_tensor& x, heddle_tensor& y, int64_t o, CancellationPoll& poll) {
    T buffer[chunk];
    double mean = 0, squares = 0;
    for (int pass = 0; pass < 2; ++pass) {  // the second about the mean that the first one finds
      double sum = 0;
      squares = 0;
      stretches(plan, o, poll,
                [&](int64_t start, int64_t n) { row_sums_in_double(as_working(x, start, n, buffer), n, mean, &sum, &squares); });
      mean += sum / static_cast<double>(plan.folded);
    }
    const double factor = 1 / (std::sqrt(squares / static_cast<double>(plan.folded)) + 1e-9);
    stretches(plan, o, poll, [&](int64_t start, int64_t n) {
      T* const to = target(y, start, buffer);
      row_affine_in_double(as_working(x, start, n, buffer), to, n, mean, factor);
      store_working(y, start, n, to);
    });
  }
  // The `n` outputs from `first` on, which are neighbours in each row.
  static void normalize_columns(const ReducePlan& plan, const heddle_tensor& x, heddle_tensor& y, int64_t first, int64_t n,
                                CancellationPoll& poll) {
    double values[chunk], means[chunk] = {}, deviations[chunk] = {};
    const int64_t base = plan.input_of(first);
    const auto each = [&](bool writes, auto&& f) {
      for (int64_t r = 0; r < plan.folded && !poll.stops(2 * n); ++r) {
        const int64_t start = base + plan.folded_at(r);
        convert(x.dtype, at(x, start), HEDDLE_F64, values, n);
        for (int64_t i = 0; i < n; ++i) f(i);
        if (writes) convert(HEDDLE_F64, values, y.dtype, at(y, start), n);
      }
    };
    const auto count = static_cast<double>(plan.folded);
    each(false, [&](int64_t i) { means[i] += values[i]; });
    double squares[chunk] = {};
    for (int64_t i = 0; i < n; ++i) means[i] /= count;
    each(false, [&](int64_t i) { squares[i] += (values[i] - means[i]) * (values[i] - means[i]); });
    for (int64_t i = 0; i < n; ++i) deviations[i] = std::sqrt(squares[i] / count) + 1e-9;
    each(true, [&](int64_t i) { values[i] = (values[i] - means[i]) / deviations[i]; });
  }

  std::vector<int64_t> axes_;
  uint32_t set_ = 0;
  double cost_ = 0;
};

// With d = dy less its mean: (d - y * mean(dy * y) * (s + 1e-9) / s) / (s + 1e-9), where s is the standard deviation. Where s is 0, y is 0.
Status mean_variance_gradient(GradientContext& g) {
  const GradientValue axes = g.ints(mean_axes(g.attributes()));
  const auto mean = [&](GradientValue x) { return g.emit("ReduceMean", {x, axes}); };
  const GradientValue variance = mean(pointwise(g, "(x0 - x1) * (x0 - x1)", {g.x(0), mean(g.x(0))}));
  const GradientValue along = mean(g.emit("Mul", {g.dy(0), g.y(0)}));
  g.give(0, pointwise(g, "(x0 - x1 - select(eq(x4, 0), 0, x2 * x3 * (1 + 1e-9 / sqrt(x4)))) / (sqrt(x4) + 1e-9)",
                      {g.dy(0), mean(g.dy(0)), g.y(0), along, variance}));
  return {};
}

}  // namespace

void add_normalization_local(Builder& plugin) {
  constexpr heddle_dtype_set short_floats = dtypes<f16, bf16, float>();
  plugin.add(Op("LRN", "", 13)
                 .doc("Divides each element by a power of the sum of squares of `size` neighbouring channels (local response "
                      "normalization, Krizhevsky et al. 2012).")
                 .formula("Y = X / (bias + alpha / size sum(X^2))^beta")
                 .shapes("X is [N, C, ...]; Y has its dims")
                 .in("X", short_floats)
                 .out("Y", same_as("X"), short_floats)
                 .attribute("alpha", 0.0001)
                 .attribute("beta", 0.75)
                 .attribute("bias", 1.0)
                 .required("size", HEDDLE_ATTRIBUTE_INT)
                 .precision(HEDDLE_PRECISION_FULL)
                 .infer(infer_local_response)
                 .cost<local_response_cost>()
                 .gradient<local_response_gradient>()
                 .cpu<LocalResponse>()
                 .example("f32[1,5,1,2] = 1 3 3 1 5 7 7 5 1 3; size=3 -> f32[1,5,1,2] = 0.99975 2.99925 2.997377 0.9985275 4.98965 "
                          "6.986903 6.986903 4.98965 0.9987518 2.997452",
                          "ONNX Runtime")
                 .example("f32[1,3,1,2] = 1 3 3 1 5 7; size=2, alpha=0.5, beta=0.5, bias=2.0 -> f32[1,3,1,2]", "by hand"));
  plugin.add(Op("MeanVarianceNormalization", "", 13)
                 .doc("Normalizes by the mean and the standard deviation over axes, which are [0, 2, 3] if none are given.")
                 .formula("Y = (X - mean) / (sqrt(var) + 1e-9)")
                 .shapes("Y has the dims of X")
                 .in("X", float_dtypes)
                 .out("Y", same_as("X"), float_dtypes)
                 .maybe("axes", HEDDLE_ATTRIBUTE_INTS)
                 .precision(HEDDLE_PRECISION_FULL)
                 .infer(infer_mean_variance)
                 .gradient<mean_variance_gradient>()
                 .cpu<MeanVariance>()
                 .example("f32[2,2,1,3] = -4 -3 3 -4 3 -3 -4 0 0 -4 -3 3 -> f32[2,2,1,3] = -1.041511 -0.6509445 1.692456 -0.8626621 "
                          "1.401826 -0.5391638 -1.041511 0.5207556 0.5207556 -0.8626621 -0.5391638 1.401826",
                          "ONNX Runtime")
                 .example("f32[3,4] = -4 -3 3 -4 3 -3 -4 0 0 -4 -3 3; axes=[1] -> f32[3,4] = -0.6859944 -0.3429972 1.714986 -0.6859944 "
                          "1.460593 -0.7302967 -1.095445 0.3651484 0.3651484 -1.095445 -0.7302967 1.460593",
                          "the ONNX reference"));
}

}  // namespace heddle::cpu
