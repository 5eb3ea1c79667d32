// Softmax, LogSoftmax and Hardmax along one axis (semantics since version 13).
//
// f32 runs on softmax_rows.h: rows where the axis is the last dimension of the layout, vectors of neighbouring columns elsewhere. The
// 16-bit floats and f64 gather one softmax after the other into scratch of the executing thread and compute in f32 and f64.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "families.h"
#include "reduce/softmax_rows.h"
#include "shared/axes.h"
#include "shared/dense_layouts.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cost.h"
#include "support/cpu_api.h"
#include "support/gradients.h"
#include "vector/convert.h"

namespace heddle::cpu {
namespace {

void softmax_f64(SoftmaxKind kind, double* x, int64_t count) {
  double largest = -std::numeric_limits<double>::infinity();
  int64_t at = 0;
  for (int64_t i = 0; i < count; ++i)
    if (x[i] > largest || (x[i] != x[i] && largest == largest)) largest = x[i], at = i;
  double sum = 0;
  if (kind != softmax_hard)
    for (int64_t i = 0; i < count; ++i) sum += std::exp(x[i] - largest);
  for (int64_t i = 0; i < count; ++i) {
    if (kind == softmax_plain) x[i] = std::exp(x[i] - largest) / sum;
    if (kind == softmax_log) x[i] = x[i] - largest - std::log(sum);
    if (kind == softmax_hard) x[i] = i == at ? 1 : 0;
  }
}

class Softmax {
 protected:
  Status create(const CreateContext& context, SoftmaxKind kind) {
    kind_ = kind;
    axis_ = context.attributes.i("axis");
    return {};
  }

 public:
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(0);
    Shape shape;
    if (Status s = shape_of(x, &shape); !s.ok()) return s;
    tiling_.plan(context, static_cast<int64_t>(x.byte_size), x.dtype == HEDDLE_F64 ? 20 : 6);
    const bool gathers = x.dtype != HEDDLE_F32 && shape.count <= longest;
    const uint64_t gathered = gathers ? static_cast<uint64_t>(shape.count * rows_at_once(shape)) * 16 : 2 * softmax_columns * sizeof(float);
    context.set_scratch(0, std::max<uint64_t>(gathered, 64));
    return {};
  }

  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor& x = *context.inputs[0];
    const heddle_tensor& y = *context.outputs[0];
    Shape shape;
    if (Status s = shape_of(x, &shape); !s.ok()) return s;
    if (shape.count == 0) return {};
    char* scratch = thread_scratch<char>(context);
    const auto [first, last] = tiling_.range(shape.outer * shape.inner, begin, end);
    CancellationPoll poll(context);
    for (int64_t o = first; o < last && !poll.stopped();) {
      const int64_t column = o % shape.inner;
      const int64_t at = o / shape.inner * shape.count * shape.inner + column;
      if (shape.count > longest) {
        run_long(x, y, at, shape, poll);
        ++o;
      } else if (x.dtype == HEDDLE_F32) {
        const int64_t n =
            shape.inner == 1 ? std::min(rows_at_once(shape), last - o) : std::min({shape.inner - column, last - o, softmax_columns});
        if (poll.stops(2 * n * shape.count)) break;
        run_f32(static_cast<const float*>(x.data) + at, static_cast<float*>(y.data) + at, shape, n, reinterpret_cast<float*>(scratch));
        o += n;
      } else {
        const int64_t n = shape.inner == 1 ? std::min(rows_at_once(shape), last - o) : 1;
        if (poll.stops(4 * n * shape.count)) break;
        run_gathered(x, y, at, shape, n, scratch);
        o += n;
      }
    }
    return poll.status();
  }

  static std::vector<heddle_format> formats(const CreateContext& context) { return uniform_formats(context, 1, 1); }

 private:
  // The extents in storage order: dimensions before the axis, the axis, dimensions after it.
  struct Shape {
    int64_t outer = 1, count = 1, inner = 1;
  };

  // Short rows are computed several at a time.
  static int64_t rows_at_once(const Shape& shape) {
    constexpr int64_t elements = 2048;
    return std::max<int64_t>(1, elements / std::max<int64_t>(1, shape.count));
  }

  Status shape_of(const heddle_tensor& x, Shape* shape) const {
    int axis = 0;
    if (x.rank == 0 && (axis_ == 0 || axis_ == -1)) return {};
    if (!normalize_axis(axis_, x.rank, &axis)) return axis_outside("axis", axis_, x.rank);
    bool behind = false;
    for (int i = 0; i < x.rank; ++i) {
      const int dim = x.layout.rank == x.rank ? x.layout.order[i] : i;
      if (dim == axis)
        behind = true, shape->count = x.dims[dim];
      else
        (behind ? shape->inner : shape->outer) *= x.dims[dim];
    }
    return {};
  }

  // `columns`: neighbouring softmaxes, which are rows where nothing follows the axis.
  void run_f32(const float* x, float* y, const Shape& shape, int64_t columns, float* scratch) const {
    if (shape.inner == 1)
      isa_softmaxes().rows[kind_](x, y, columns, shape.count);
    else
      isa_softmaxes().columns[kind_](x, y, shape.count, shape.inner, columns, scratch);
  }

  // One softmax, or several rows.
  void run_gathered(const heddle_tensor& x, const heddle_tensor& y, int64_t at, const Shape& shape, int64_t rows, char* scratch) const {
    const size_t width = byte_width(x.dtype);
    const heddle_dtype dtype = x.dtype == HEDDLE_F64 ? HEDDLE_F64 : HEDDLE_F32;
    const int64_t count = rows * shape.count;
    char *raw = scratch, *values = scratch + count * 8;
    const char* from = static_cast<const char*>(x.data);
    char* to = static_cast<char*>(y.data);
    const bool in_rows = shape.inner == 1;  // which are contiguous
    for (int64_t i = 0; i < shape.count && !in_rows; ++i)
      std::memcpy(raw + static_cast<size_t>(i) * width, from + static_cast<size_t>(at + i * shape.inner) * width, width);
    convert(x.dtype, in_rows ? from + static_cast<size_t>(at) * width : raw, dtype, values, count);
    if (dtype == HEDDLE_F64)
      for (int64_t r = 0; r < rows; ++r) softmax_f64(kind_, reinterpret_cast<double*>(values) + r * shape.count, shape.count);
    else
      isa_softmaxes().rows[kind_](reinterpret_cast<float*>(values), reinterpret_cast<float*>(values), rows, shape.count);
    convert(dtype, values, y.dtype, in_rows ? to + static_cast<size_t>(at) * width : raw, count);
    for (int64_t i = 0; i < shape.count && !in_rows; ++i)
      std::memcpy(to + static_cast<size_t>(at + i * shape.inner) * width, raw + static_cast<size_t>(i) * width, width);
  }

  // Computes element by element in f64, so that it may be cancelled halfway.
  void run_long(const heddle_tensor& x, const heddle_tensor& y, int64_t at, const Shape& shape, CancellationPoll& poll) const {
    const auto width = static_cast<int64_t>(byte_width(x.dtype));
    const auto element = [&](int64_t i) {
      double value = 0;
      convert(x.dtype, static_cast<const char*>(x.data) + (at + i * shape.inner) * width, HEDDLE_F64, &value, 1);
      return value;
    };
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    int64_t where = 0;
    for (int64_t i = 0; i < shape.count && !poll.stops(8); ++i)
      if (const double v = element(i); v > largest || (v != v && largest == largest)) largest = v, where = i;
    for (int64_t i = 0; i < shape.count && kind_ != softmax_hard && !poll.stops(20); ++i) sum += std::exp(element(i) - largest);
    const double logarithm = std::log(sum);
    for (int64_t i = 0; i < shape.count && !poll.stops(20); ++i) {
      const double v = kind_ == softmax_hard    ? (i == where ? 1 : 0)
                       : kind_ == softmax_plain ? std::exp(element(i) - largest) / sum
                                                : element(i) - largest - logarithm;
      convert(HEDDLE_F64, &v, y.dtype, static_cast<char*>(y.data) + (at + i * shape.inner) * width, 1);
    }
  }

  static constexpr int64_t longest = int64_t{1} << 24;  // the longest axis that is computed as a whole
  SoftmaxKind kind_ = softmax_plain;
  int64_t axis_ = -1;
  Tiling tiling_;
};

Status infer_softmax(InferContext& context) {
  const int64_t axis = context.attributes.i("axis");
  const int rank = context.dims(0).rank;
  int normalized = 0;
  if (normalize_axis(axis, rank, &normalized) || (rank == 0 && (axis == 0 || axis == -1))) return {};
  return axis_outside("axis", axis, rank);
}

template <SoftmaxKind kind>
class SoftmaxKernel : public Softmax {
 public:
  Status create(const CreateContext& context) { return Softmax::create(context, kind); }
};

// Handles a scalar: its softmax is a constant, so the gradient is 0.
bool give_of_scalar(GradientContext& g) {
  if (g.input_type(0).rank > 0) return false;
  g.give(0, zeros_like(g, g.x(0)));
  return true;
}

Status softmax_gradient(GradientContext& g) {
  if (give_of_scalar(g)) return {};
  const GradientValue axis = g.ints({g.attributes().i("axis")});
  const GradientValue sum = g.emit("ReduceSum", {g.emit("Mul", {g.dy(0), g.y(0)}), axis});
  g.give(0, pointwise(g, "x1 * (x0 - x2)", {g.dy(0), g.y(0), sum}));
  return {};
}

Status log_softmax_gradient(GradientContext& g) {
  if (give_of_scalar(g)) return {};
  const GradientValue sum = g.emit("ReduceSum", {g.dy(0), g.ints({g.attributes().i("axis")})});
  g.give(0, pointwise(g, "x0 - exp(x1) * x2", {g.dy(0), g.y(0), sum}));
  return {};
}

template <SoftmaxKind kind>
Op softmax_operator(const char* name, std::initializer_list<const char*> examples) {
  Op op(name, "", 13);
  op.in("input", float_dtypes)
      .out("output", same_as("input"), float_dtypes)
      .attribute("axis", -1)
      .infer(infer_softmax)
      .in_place("output", "input")
      .precision(HEDDLE_PRECISION_FULL)
      .cost<per_input_element<5>>()  // maximum, difference, exponential, sum, quotient
      .cpu<SoftmaxKernel<kind>>();
  if (kind == softmax_plain) op.gradient<softmax_gradient>();
  if (kind == softmax_log) op.gradient<log_softmax_gradient>();
  for (const char* text : examples) op.example(text, "ONNX Runtime");
  return op;
}

}  // namespace

void add_softmax(Builder& plugin) {
  plugin.add(
      softmax_operator<softmax_plain>(
          "Softmax", {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[2,3] = 0.0009088005 0.002470376 0.9966208 0.0009088006 0.9966209 0.002470376",
                      "f32[3,2] = -4 -3 3 -4 3 -3; axis=0 -> f32[3,2] = 0.0004557332 0.4223188 0.4997722 0.1553624 0.4997722 0.4223188"})
          .doc("Computes exponentials that are divided by their sum along an axis, so that they add up to 1.")
          .formula("output = exp(input) / sum(exp(input))")
          .shapes("output has the dims of input"));
  plugin.add(softmax_operator<softmax_log>(
                 "LogSoftmax",
                 {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[2,3] = -7.003385 -6.003385 -0.003384935 -7.003385 -0.003384816 -6.003385",
                  "f32[3,2] = -4 -3 3 -4 3 -3; axis=0 -> f32[3,2] = -7.693603 -0.8619948 -0.6936029 -1.861995 -0.6936029 -0.8619948"})
                 .doc("Computes the logarithms of Softmax along an axis, without loss where they are very negative.")
                 .formula("output = input - ln(sum(exp(input)))")
                 .shapes("output has the dims of input"));
  plugin.add(softmax_operator<softmax_hard>("Hardmax", {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[2,3] = 0 0 1 0 1 0",
                                                        "f32[3,2] = -4 -3 3 -4 3 -3; axis=0 -> f32[3,2] = 0 1 1 0 0 0"})
                 .doc("Is 1 at the first of the largest elements along an axis, and 0 elsewhere.")
                 .shapes("output has the dims of input"));
}

}  // namespace heddle::cpu
