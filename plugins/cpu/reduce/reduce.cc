// ReduceSum, ReduceMean, ReduceMax, ... and their gradients.

#include "families.h"
#include "reduce/reduce_kernel.h"
#include "shared/computed_extents.h"
#include "shared/dense_layouts.h"
#include "shared/dims.h"
#include "support/cost.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

template <const Reduction& reduction>
class ReduceKernel : public Reduce {
 public:
  Status create(const CreateContext& context) { return Reduce::create(context, reduction); }
  // Spatial reductions of channels-last images need no reorder.
  static std::vector<heddle_format> formats(const CreateContext& context) {
    std::vector<heddle_format> choices = uniform_formats(context, 1, 0);
    return choices;
  }
};

Status infer_reduce(InferContext& context) {
  const Dims dims = context.dims(0);
  const bool keep = context.attributes.i("keepdims") != 0, noop = context.attributes.i("noop_with_empty_axes") != 0;
  const heddle_tensor* axes = context.has_input(1) ? &context.input(1) : nullptr;
  if (axes && !context.known(1)) {
    context.set_dynamic(0, keep ? dims.rank : std::max<int>(0, dims.rank - static_cast<int>(axes->element_count)));
    return {};
  }
  uint32_t set = 0;
  if (Status s = reduced_set(dims.rank, axes, noop, &set); !s.ok()) return s;
  Extents to;
  reduced_extents(dims, set, keep, &to);
  context.set_dims(0, to.dims());
  return {};
}

// Broadcasts a value per output along the folded elements: their dimensions become 1 again.
GradientValue beside_folded(GradientContext& g, GradientValue value) {
  return g.attributes().i("keepdims") != 0 || !g.x(1) ? value : g.emit("Unsqueeze", {value, g.x(1)});
}

// The fraction that one element is of the elements folded into an output, as dy's dtype; counted in f64, which holds the counts exactly.
GradientValue one_part(GradientContext& g, GradientValue dy) {
  const GradientValue outputs = cast(g, g.emit("Size", {g.y(0)}), HEDDLE_F64), elements = cast(g, g.emit("Size", {g.x(0)}), HEDDLE_F64);
  return g.emit("CastLike", {g.emit("Div", {outputs, elements}), dy});
}

// Equal extremes share the gradient equally, as in PyTorch's amax.
GradientValue of_extreme(GradientContext& g, GradientValue x, GradientValue y, GradientValue dy) {
  const GradientValue is_extreme = pointwise(g, "select(eq(x0, x1), 1, 0)", {x, y});
  const GradientValue count = g.emit("ReduceSum", {is_extreme, g.x(1)}, {{"keepdims", 1}, g.same("noop_with_empty_axes")});
  return pointwise(g, "x0 * (x1 / x2)", {is_extreme, dy, count});
}

// The product of all other elements: where one of them is zero a division does not give it.
GradientValue of_product(GradientContext& g, GradientValue x, GradientValue y, GradientValue dy) {
  const GradientAttribute keeps("keepdims", 1), noop = g.same("noop_with_empty_axes");
  const GradientValue zeros = g.emit("ReduceSum", {pointwise(g, "select(eq(x0, 0), 1, 0)", {x}), g.x(1)}, {keeps, noop});
  const GradientValue others = g.emit("ReduceProd", {pointwise(g, "select(eq(x0, 0), 1, x0)", {x}), g.x(1)}, {keeps, noop});
  return pointwise(g, "x3 * select(eq(x2, 0), x1 / x0, select(eq(x2, 1), select(eq(x0, 0), x4, 0), 0))", {x, y, zeros, dy, others});
}

template <const Reduction& reduction>
Status reduction_gradient(GradientContext& g) {
  const GradientValue x = g.x(0), y = beside_folded(g, g.y(0)), dy = beside_folded(g, g.dy(0));
  if (&reduction == &reduce_sum) {
    g.give(0, g.emit("Expand", {dy, shape_of(g, x)}));
  } else if (&reduction == &reduce_mean) {
    g.give(0, g.emit("Expand", {g.emit("Mul", {dy, one_part(g, dy)}), shape_of(g, x)}));
  } else if (&reduction == &reduce_log_sum) {
    g.give(0, g.emit("Expand", {pointwise(g, "x0 / exp(x1)", {dy, y}), shape_of(g, x)}));
  } else if (&reduction == &reduce_max || &reduction == &reduce_min) {
    g.give(0, of_extreme(g, x, y, dy));
  } else if (&reduction == &reduce_product) {
    g.give(0, of_product(g, x, y, dy));
  } else {
    g.give(0, pointwise(g,
                        &reduction == &reduce_l1            ? "sign(x0) * x2"
                        : &reduction == &reduce_l2          ? "select(eq(x1, 0), 0, x0 / x1 * x2)"
                        : &reduction == &reduce_log_sum_exp ? "exp(x0 - x1) * x2"
                                                            : "2 * x0 * x2",
                        {x, y, dy}));
  }
  return {};
}

template <const Reduction& reduction, int operations = 1>
Op reduction_operator(const char* name, int32_t version, heddle_dtype_set set, std::initializer_list<const char*> examples) {
  Op op(name, "", version);
  op.in("data", set)
      .shape_operand("axes", dtypes<int64_t>(), true)
      .out("reduced", {}, set)
      .attribute("keepdims", 1)
      .attribute("noop_with_empty_axes", 0)
      .precision(HEDDLE_PRECISION_FULL)
      .infer(infer_reduce)
      .shapes(
          "reduced has the dims of data; the axes that are reduced have extent 1, or are left out with keepdims 0. Without axes all are "
          "reduced, or none with noop_with_empty_axes 1");
  op.cost<per_input_element<operations>>();
  op.gradient<reduction_gradient<reduction>>();
  op.cpu<ReduceKernel<reduction>>();
  for (const char* text : examples) op.example(text, "ONNX Runtime");
  return op;
}

void declare_norms(Builder& plugin) {
  plugin.add(
      reduction_operator<reduce_l1, 2>(
          "ReduceL1", 18, numeric_dtypes,
          {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[1,1] = 20", "f32[2,3] = -4 -3 3 -4 3 -3, i64[1] = -1; keepdims=0 -> f32[2] = 10",
           "f32[2,3] = -4 -3 3 -4 3 -3; noop_with_empty_axes=1 -> f32[2,3] = 4 3 3 4 3 3", "i32[2,3] = 1, i64[1] = 0 -> i32[1,3] = 2"})
          .doc("Adds the magnitudes of elements along axes.")
          .formula("reduced = sum(|data|)"));
  plugin.add(
      reduction_operator<reduce_l2, 2>(
          "ReduceL2", 18, numeric_dtypes,
          {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[1,1] = 8.246211", "f32[2,3] = -4 -3 3 -4 3 -3, i64[1] = -1; keepdims=0 -> f32[2] = 5.830952",
           "f32[2,3] = -4 -3 3 -4 3 -3; noop_with_empty_axes=1 -> f32[2,3] = 4 3 3 4 3 3", "i32[2,3] = 1, i64[1] = 0 -> i32[1,3] = 1"})
          .doc("Computes the Euclidean norm along axes.")
          .formula("reduced = sqrt(sum(data^2))"));
  plugin.add(
      reduction_operator<reduce_log_sum>(
          "ReduceLogSum", 18, numeric_dtypes,
          {"f32[2,3] = 1 3 3 1 5 7 -> f32[1,1] = 2.995732", "f32[2,3] = 1 3 3 1 5 7, i64[1] = -1; keepdims=0 -> f32[2] = 1.94591 2.564949",
           "f32[2,3] = 1 3 3 1 5 7; noop_with_empty_axes=1 -> f32[2,3] = 0 1.098612 1.098612 0 1.609438 1.94591",
           "i32[2,3] = 1, i64[1] = 0 -> i32[1,3] = 0"})
          .doc("Computes the logarithm of the sum of elements along axes.")
          .formula("reduced = ln(sum(data))"));
  plugin.add(reduction_operator<reduce_log_sum_exp, 3>("ReduceLogSumExp", 18, float_dtypes,
                                                       {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[1,1] = 3.696532",
                                                        "f32[2,3] = -4 -3 3 -4 3 -3, i64[1] = -1; keepdims=0 -> f32[2] = 3.003385",
                                                        "f32[2,3] = -4 -3 3 -4 3 -3; noop_with_empty_axes=1 -> f32[2,3] = -4 -3 3 -4 3 -3"})
                 .doc("Computes the logarithm of the sum of exponentials along axes, without overflow.")
                 .formula("reduced = ln(sum(exp(data)))"));
  plugin.add(
      reduction_operator<reduce_sum_square, 2>(
          "ReduceSumSquare", 18, numeric_dtypes,
          {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[1,1] = 68", "f32[2,3] = -4 -3 3 -4 3 -3, i64[1] = -1; keepdims=0 -> f32[2] = 34",
           "f32[2,3] = -4 -3 3 -4 3 -3; noop_with_empty_axes=1 -> f32[2,3] = 16 9 9 16 9 9", "i32[2,3] = 1, i64[1] = 0 -> i32[1,3] = 2"})
          .doc("Adds the squares of elements along axes.")
          .formula("reduced = sum(data^2)"));
}

}  // namespace

void add_reduce(Builder& plugin) {
  plugin.add(
      reduction_operator<reduce_sum>(
          "ReduceSum", 13, numeric_dtypes,
          {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[1,1] = -8", "f32[2,3] = -4 -3 3 -4 3 -3, i64[1] = -1; keepdims=0 -> f32[2] = -4",
           "f32[2,3] = -4 -3 3 -4 3 -3; noop_with_empty_axes=1 -> f32[2,3] = -4 -3 3 -4 3 -3", "i32[2,3] = 1, i64[1] = 0 -> i32[1,3] = 2"})
          .doc("Adds elements along axes.")
          .formula("reduced = sum(data)"));
  plugin.add(reduction_operator<reduce_mean>("ReduceMean", 18, numeric_dtypes,
                                             {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[1,1] = -1.333333",
                                              "f32[2,3] = -4 -3 3 -4 3 -3, i64[1] = -1; keepdims=0 -> f32[2] = -1.333333",
                                              "f32[2,3] = -4 -3 3 -4 3 -3; noop_with_empty_axes=1 -> f32[2,3] = -4 -3 3 -4 3 -3",
                                              "i32[2,3] = 1, i64[1] = 0 -> i32[1,3] = 1"})
                 .doc("Averages elements along axes.")
                 .formula("reduced = sum(data) / count"));
  plugin.add(
      reduction_operator<reduce_max>(
          "ReduceMax", 18, any_dtype,
          {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[1,1] = 3", "f32[2,3] = -4 -3 3 -4 3 -3, i64[1] = -1; keepdims=0 -> f32[2] = 3",
           "f32[2,3] = -4 -3 3 -4 3 -3; noop_with_empty_axes=1 -> f32[2,3] = -4 -3 3 -4 3 -3", "i32[2,3] = 1, i64[1] = 0 -> i32[1,3] = 1"})
          .doc("Finds the largest element along axes.")
          .formula("reduced = max(data)"));
  plugin.add(
      reduction_operator<reduce_min>(
          "ReduceMin", 18, any_dtype,
          {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[1,1] = -4", "f32[2,3] = -4 -3 3 -4 3 -3, i64[1] = -1; keepdims=0 -> f32[2] = -4",
           "f32[2,3] = -4 -3 3 -4 3 -3; noop_with_empty_axes=1 -> f32[2,3] = -4 -3 3 -4 3 -3", "i32[2,3] = 1, i64[1] = 0 -> i32[1,3] = 1"})
          .doc("Finds the smallest element along axes.")
          .formula("reduced = min(data)"));
  plugin.add(
      reduction_operator<reduce_product>(
          "ReduceProd", 18, numeric_dtypes,
          {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[1,1] = 1296", "f32[2,3] = -4 -3 3 -4 3 -3, i64[1] = -1; keepdims=0 -> f32[2] = 36",
           "f32[2,3] = -4 -3 3 -4 3 -3; noop_with_empty_axes=1 -> f32[2,3] = -4 -3 3 -4 3 -3", "i32[2,3] = 1, i64[1] = 0 -> i32[1,3] = 1"})
          .doc("Multiplies elements along axes.")
          .formula("reduced = product(data)"));
  declare_norms(plugin);
}

}  // namespace heddle::cpu
