// MaxPoolGradient and AveragePoolGradient, and the gradients of all pools, which are built from them.
#include <cmath>

#include "families.h"
#include "pooling/pool_gradient_kernel.h"
#include "pooling/pooling_kernel.h"
#include "shared/axes.h"
#include "shared/dims.h"
#include "shared/extent_rules.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

// Errors: the windows on x do not give dY its extents.
Status check_windows(InferContext& context, Dims x, Dims dy) {
  const WindowAttributes attributes(context.attributes);
  Window window;
  HEDDLE_PLUGIN_CHECK(resolve_pool(attributes, attributes.kernel_shape.empty(), x, &window));
  std::vector<int64_t> dims = {x[0], x[1]};
  dims.insert(dims.end(), window.output, window.output + window.spatial);
  if (std::equal(dims.begin(), dims.end(), dy.begin(), dy.end())) return {};
  return invalid("dY is " + dims_text(dy) + ", expected " + dims_text(dims_of(dims)) + ", the windows on X " + dims_text(x));
}

Status infer_of_max(InferContext& context) {
  HEDDLE_PLUGIN_CHECK(check_windows(context, context.dims(0), context.dims(1)));
  context.set_dims(0, context.dims(0));
  return {};
}
Status infer_of_average(InferContext& context) {
  const Dims dy = context.dims(0), operand = context.dims(1);
  if (operand.rank != 1) return not_one_dimensional("shape", operand);
  if (operand[0] != dy.rank) return invalid("shape lists " + std::to_string(operand[0]) + " extents, dY is " + dims_text(dy));
  if (context.attributes.i("divisor") < 0) return invalid("divisor is " + std::to_string(context.attributes.i("divisor")));
  if (!context.known(1)) return context.set_dynamic(0, dy.rank), Status();
  Extents to;
  HEDDLE_PLUGIN_CHECK(constant_extents(context.input(1), &to));
  HEDDLE_PLUGIN_CHECK(check_windows(context, to.dims(), dy));
  context.set_dims(0, to.dims());
  return {};
}

// One operation for each tap of each window; without kernel_shape each element of X is one.
template <uint32_t dy>
void taps_cost(CostContext& context) {
  double taps = 1;
  const std::vector<int64_t> kernel = context.attributes.ints("kernel_shape");
  for (const int64_t extent : kernel) taps *= static_cast<double>(extent);
  context.set_flops(kernel.empty() ? context.output_elements(0) : taps * context.elements(dy));
}

void add_windows(Op& op) {
  op.attribute("auto_pad", "NOTSET").attribute("ceil_mode", 0).maybe("kernel_shape", HEDDLE_ATTRIBUTE_INTS);
  op.maybe("dilations", HEDDLE_ATTRIBUTE_INTS).maybe("pads", HEDDLE_ATTRIBUTE_INTS).maybe("strides", HEDDLE_ATTRIBUTE_INTS);
}

// The attribute of the pool whose gradient is taken; global pools and maxima do not declare all attributes of windows and averages.
GradientAttribute of_pool(GradientContext& g, const char* name) {
  return g.attributes().declares(name) ? g.same(name) : GradientAttribute(nullptr);
}

// Distributes dY among the windows of a pool with the attributes of the forward one; `divisor` 0: as the average pool divides.
GradientValue spread(GradientContext& g, GradientValue dy, int64_t divisor) {
  return g.emit("AveragePoolGradient", {dy, shape_of(g, g.x(0))},
                {of_pool(g, "auto_pad"),
                 of_pool(g, "ceil_mode"),
                 of_pool(g, "kernel_shape"),
                 of_pool(g, "dilations"),
                 of_pool(g, "pads"),
                 of_pool(g, "strides"),
                 of_pool(g, "count_include_pad"),
                 {"divisor", divisor}},
                "heddle");
}

// Expressions for the norm of power p: from dY and the norm y of a window to the gradient of its sum of powers, and from that to the
// gradient of an element.
std::string of_norm(int64_t p) {
  if (p == 1) return "x1";
  return "select(eq(x0, 0), 0, " + (p == 2 ? std::string("x1 / x0") : "x1 * pow(x0, " + number_text(static_cast<double>(1 - p)) + ")") +
         ")";
}
std::string of_element(int64_t p) {
  if (p == 1) return "sign(x0) * x1";
  if (p == 2) return "x0 * x1";
  return "sign(x0) * pow(abs(x0), " + number_text(static_cast<double>(p - 1)) + ") * x1";
}

// The gradient is the pool itself, of the same windows; with a divisor it is their sum: the mean times the number of elements.
Status of_average_gradient(GradientContext& g) {
  const int64_t divisor = g.attributes().i("divisor");
  const auto pool = [&](const char* windowed, const char* global, GradientValue of, GradientAttribute more) {
    if (!g.attributes().has("kernel_shape")) return std::string(windowed) == "LpPool" ? g.emit(global, {of}, {more}) : g.emit(global, {of});
    return g.emit(windowed, {of},
                  {of_pool(g, "auto_pad"), of_pool(g, "ceil_mode"), of_pool(g, "kernel_shape"), of_pool(g, "dilations"), of_pool(g, "pads"),
                   of_pool(g, "strides"), more});
  };
  const int64_t counts_pads = divisor == 0 ? g.attributes().i("count_include_pad") : 0;
  const GradientValue mean = pool("AveragePool", "GlobalAveragePool", g.dy(0), {"count_include_pad", counts_pads});
  if (divisor == 0) return g.give(0, mean), Status();
  const GradientValue ones = pointwise(g, "x0 + 1", {zeros_like(g, g.dy(0))});
  const GradientValue count = pool("LpPool", "GlobalLpPool", ones, {"p", 1});
  g.give(0, pointwise(g, "x0 * x1 / " + number_text(static_cast<double>(divisor)), {mean, count}));
  return {};
}
// Reads, for each window, the element at the position of its largest element.
Status of_max_gradient(GradientContext& g) {
  if (!g.attributes().has("kernel_shape")) {
    const GradientValue rows = g.ints({0, 0, -1});
    const GradientValue at = g.emit("ArgMax", {g.emit("Reshape", {g.x(0), rows})}, {{"axis", 2}});
    const GradientValue there = g.emit("GatherElements", {g.emit("Reshape", {g.dy(0), rows}), at}, {{"axis", 2}});
    g.give(1, reshape(g, there, shape_of(g, g.x(1))));
    return {};
  }
  const GradientValue indices = g.emit_all("MaxPool", {g.x(0)}, 2,
                                           {of_pool(g, "auto_pad"), of_pool(g, "ceil_mode"), of_pool(g, "kernel_shape"),
                                            of_pool(g, "dilations"), of_pool(g, "pads"), of_pool(g, "strides")})[1];
  g.give(1, g.emit("Gather", {reshape(g, g.dy(0), g.ints({-1})), indices}));
  return {};
}

}  // namespace

Status max_pool_gradient(GradientContext& g) {
  g.give(0, g.emit("MaxPoolGradient", {g.x(0), g.dy(0)},
                   {of_pool(g, "auto_pad"), of_pool(g, "ceil_mode"), of_pool(g, "kernel_shape"), of_pool(g, "dilations"),
                    of_pool(g, "pads"), of_pool(g, "strides")},
                   "heddle"));
  return {};
}
Status global_max_pool_gradient(GradientContext& g) {
  g.give(0, g.emit("MaxPoolGradient", {g.x(0), g.dy(0)}, {}, "heddle"));
  return {};
}
Status average_pool_gradient(GradientContext& g) {
  g.give(0, spread(g, g.dy(0), 0));
  return {};
}
Status global_average_pool_gradient(GradientContext& g) {
  return average_pool_gradient(g);
}
Status lp_pool_gradient(GradientContext& g) {
  const int64_t p = g.attributes().i("p");
  const GradientValue sums = spread(g, pointwise(g, of_norm(p), {g.y(0), g.dy(0)}), 1);
  g.give(0, pointwise(g, of_element(p), {g.x(0), sums}));
  return {};
}
Status global_lp_pool_gradient(GradientContext& g) {
  return lp_pool_gradient(g);
}

void add_pooling_gradient(Builder& plugin) {
  Op max = Op("MaxPoolGradient", "heddle")
               .doc(
                   "Computes the gradient of MaxPool: each element of dY goes to the first of the largest elements of its window of X. "
                   "Without kernel_shape the window is the whole channel.")
               .shapes("dX has the dims of X");
  max.in("X", float_dtypes).not_differentiable().in("dY", float_dtypes).out("dX");
  add_windows(max);
  max.infer(infer_of_max).cost<taps_cost<1>>().gradient<of_max_gradient>();
  max.example("f32[1,1,7] = -4 -3 3 -4 3 -3 -4, f32[1,1,5] = 1 2 3 4 5; kernel_shape=[3] -> f32[1,1,7] = 0 0 6 0 9 0 0", "by hand")
      .example(
          "f32[1,1,3,3] = 1 1 0 2 1 1 2 2 1, f32[1,1,2,2] = 1 2 3 4; kernel_shape=[2,2], pads=[1,0,0,1], strides=[2,2] -> "
          "f32[1,1,3,3] = 1 0 2 3 0 4 0 0 0",
          "by hand")
      .example("f32[1,2,3] = -4 3 3 2 1 0, f32[1,2,1] = 5 7 -> f32[1,2,3] = 0 5 0 7 0 0", "by hand");
  max.example(
         "f32[1,1,6] = 1 5 2 4 6 3, f32[1,1,3] = 1 2 3; kernel_shape=[2], dilations=[2], strides=[2], ceil_mode=1 -> f32[1,1,6] = 0 0 1 0 "
         "5 0",
         "by hand")
      .example(
          "f32[1,1,5] = 1 5 2 4 6, f32[1,1,3] = 1 2 3; kernel_shape=[3], auto_pad=\"SAME_LOWER\", strides=[2] -> f32[1,1,5] = 0 3 0 0 3",
          "by hand");
  plugin.add(max.cpu<PoolGradient<true>>().kernel_name("cpu:max_pool_gradient"));

  Op average = Op("AveragePoolGradient", "heddle")
                   .doc(
                       "Computes the gradient of AveragePool: each element of dY is divided among its window, by divisor where that is not "
                       "0. Without kernel_shape the window is the whole channel.")
                   .shapes("dX has the dims that shape holds");
  average.in("dY", float_dtypes).shape_operand("shape").out("dX");
  add_windows(average);
  average.attribute("count_include_pad", 0).attribute("divisor", 0);
  average.infer(infer_of_average).cost<taps_cost<0>>().gradient<of_average_gradient>();
  average.example("f32[1,1,3] = 3 6 9, i64[3] = 1 1 5; kernel_shape=[3] -> f32[1,1,5] = 1 3 6 5 3", "by hand")
      .example("f32[1,1,3] = 2 4 6, i64[3] = 1 1 5; kernel_shape=[2], pads=[1,0], strides=[2] -> f32[1,1,5] = 2 2 2 3 3", "by hand")
      .example(
          "f32[1,1,3] = 2 4 6, i64[3] = 1 1 5; kernel_shape=[2], pads=[1,0], strides=[2], count_include_pad=1 -> f32[1,1,5] = 1 2 2 "
          "3 3",
          "by hand")
      .example("f32[1,1,3] = 2 4 6, i64[3] = 1 1 4; kernel_shape=[2], divisor=1 -> f32[1,1,4] = 2 6 10 6", "by hand")
      .example("f32[1,2,1] = 3 6, i64[3] = 1 2 3 -> f32[1,2,3] = 1 1 1 2 2 2", "by hand");
  average
      .example("f32[1,1,3] = 2 4 6, i64[3] = 1 1 6; kernel_shape=[2], dilations=[2], strides=[2], ceil_mode=1 -> f32[1,1,6] = 1 0 3 0 8 0",
               "by hand")
      .example("f32[1,1,3] = 2 6 4, i64[3] = 1 1 5; kernel_shape=[3], auto_pad=\"SAME_LOWER\", strides=[2] -> f32[1,1,5] = 1 3 2 4 2",
               "by hand");
  plugin.add(average.cpu<PoolGradient<false>>().kernel_name("cpu:average_pool_gradient"));
}

}  // namespace heddle::cpu
