// MaxPool, AveragePool, LpPool and their global forms: schemas and shape rules. The kernel is pooling_kernel.h's.
#include "families.h"
#include "pooling/pool_gradient_kernel.h"
#include "pooling/pooling_kernel.h"
#include "support/cost.h"

namespace heddle::cpu {
namespace {

constexpr heddle_dtype_set max_dtypes = float_dtypes | dtypes<int8_t, uint8_t>();

Status infer_pool(InferContext& context, bool global) {
  const Dims x = context.dims(0);
  const WindowAttributes attributes(context.attributes);
  Window window;
  HEDDLE_PLUGIN_CHECK(resolve_pool(attributes, global, x, &window));
  for (int i = 0; i < window.spatial && !global; ++i) {
    if (window.pad_begin[i] < window.reach(i) && window.pad_end[i] < window.reach(i)) continue;
    return invalid("pads are as large as the window of " + std::to_string(window.reach(i)) + " along dimension " + std::to_string(i + 2) +
                   ": some windows would see nothing but padding");
  }
  std::vector<int64_t> dims = {x[0], x[1]};
  dims.insert(dims.end(), window.output, window.output + window.spatial);
  context.set_dims(0, dims);
  context.set_dims(1, dims);
  context.set_dtype(1, HEDDLE_I64);
  return {};
}
Status infer_window(InferContext& context) {
  return infer_pool(context, false);
}
Status infer_global(InferContext& context) {
  return infer_pool(context, true);
}
Status infer_lp(InferContext& context) {
  if (context.attributes.i("p") < 1) return invalid("p is " + std::to_string(context.attributes.i("p")) + ", expected 1 or more");
  return infer_window(context);
}
Status infer_global_lp(InferContext& context) {
  if (context.attributes.i("p") < 1) return invalid("p is " + std::to_string(context.attributes.i("p")) + ", expected 1 or more");
  return infer_global(context);
}

// One operation for each tap of each window, two for the powers of a norm.
template <int operations>
void window_cost(CostContext& context) {
  double taps = operations;
  for (const int64_t extent : context.attributes.ints("kernel_shape")) taps *= static_cast<double>(extent);
  context.set_flops(taps * context.output_elements(0));
}

Op pooling_operator(const char* name, int32_t version, heddle_dtype_set set) {
  Op op(name, "", version);
  op.in("X", set).out("Y");
  return op;
}
void add_window(Op& op) {
  op.shapes(
      "outputs are [N, C, ...]; for each spatial axis floor((extent + pads - dilation (kernel - 1) - 1) / stride) + 1; with ceil_mode 1 "
      "the "
      "quotient is rounded up, and a last window that would begin in the padding after X is left out; with auto_pad SAME_UPPER or "
      "SAME_LOWER "
      "it is ceil(extent / stride)");
  op.attribute("auto_pad", "NOTSET").attribute("ceil_mode", 0).required("kernel_shape", HEDDLE_ATTRIBUTE_INTS);
  op.maybe("dilations", HEDDLE_ATTRIBUTE_INTS).maybe("pads", HEDDLE_ATTRIBUTE_INTS).maybe("strides", HEDDLE_ATTRIBUTE_INTS);
}

}  // namespace

void add_pooling(Builder& plugin) {
  Op max = pooling_operator("MaxPool", 12, max_dtypes)
               .doc("Finds the largest element of each window of each channel, and where it is in X. Padding is never the largest.");
  max.optional_out("Indices", {}, dtypes<int64_t>(), "I");
  add_window(max);
  max.attribute("storage_order", 0).infer(infer_window).cost<window_cost<1>>();
  max.example("f32[1,1,7] = -4 -3 3 -4 3 -3 -4; kernel_shape=[3] -> f32[1,1,5] = 3", "ONNX Runtime")
      .example(
          "f32[1,2,3,3] = -4 -3 3 -4 3 -3 -4 0 0 -4 -3 3 -4 3 -3 -4 0 0; kernel_shape=[2,2], pads=[1,0,0,1], strides=[2,1] -> f32[1,2,2,3] "
          "= -3 3 3 3 3 0 -3 3 3 3 3 0",
          "ONNX Runtime")
      .example("f32[1,1,7] = -4 -3 3 -4 3 -3 -4; kernel_shape=[2], dilations=[2], ceil_mode=1, strides=[2] -> f32[1,1,3] = 3",
               "ONNX Runtime")
      .example("f32[1,1,5] = -4 -3 3 -4 3; kernel_shape=[3], auto_pad=\"SAME_UPPER\", strides=[2] -> f32[1,1,3] = -3 3 3", "ONNX Runtime")
      .example(
          "f32[1,1,3,4] = -4 -3 3 -4 3 -3 -4 0 0 -4 -3 3; kernel_shape=[2,2], storage_order=1 -> f32[1,1,2,3] = 3 3 3 3 -3 3, i64[1,1,2,3] "
          "= 1 6 6 1 4 11",
          "ONNX Runtime")
      .example("u8[1,1,4] = 1 7 3 5; kernel_shape=[2] -> u8[1,1,3] = 7 7 5", "ONNX Runtime")
      .example("i8[1,1,4] = 1 -7 -3 -5; kernel_shape=[2] -> i8[1,1,3] = 1 -3 -3", "ONNX Runtime");
  plugin.add(max.gradient<max_pool_gradient>().cpu<Pool<PoolKind::max, false>>().kernel_name("cpu:max_pool"));

  Op average = pooling_operator("AveragePool", 19, float_dtypes)
                   .doc("Averages each window of each channel. Padding counts in the divisor with count_include_pad 1.");
  add_window(average);
  average.attribute("count_include_pad", 0).infer(infer_window).cost<window_cost<1>>();
  average
      .example("f32[1,1,7] = -4 -3 3 -4 3 -3 -4; kernel_shape=[3] -> f32[1,1,5] = -1.333333 -1.333333 0.6666667 -1.333333 -1.333333",
               "ONNX Runtime")
      .example(
          "f32[1,2,3,3] = -4 -3 3 -4 3 -3 -4 0 0 -4 -3 3 -4 3 -3 -4 0 0; kernel_shape=[2,2], pads=[1,0,0,1], strides=[2,1] -> f32[1,2,2,3] "
          "= -3.5 0 3 -1.25 0 -1.5 -3.5 0 3 -1.25 0 -1.5",
          "ONNX Runtime")
      .example("f32[1,1,7] = -4 -3 3 -4 3 -3 -4; kernel_shape=[2], dilations=[2], ceil_mode=1, strides=[2] -> f32[1,1,3] = -0.5 3 -0.5",
               "ONNX Runtime")
      .example("f32[1,1,5] = -4 -3 3 -4 3; kernel_shape=[3], auto_pad=\"SAME_UPPER\", strides=[2] -> f32[1,1,3] = -3.5 -1.333333 -0.5",
               "ONNX Runtime")
      .example(
          "f32[1,1,4] = -4 -3 3 -4; kernel_shape=[3], pads=[1,1], count_include_pad=1 -> f32[1,1,4] = -2.333333 -1.333333 -1.333333 "
          "-0.3333333",
          "ONNX Runtime");
  plugin.add(average.gradient<average_pool_gradient>().cpu<Pool<PoolKind::average, false>>().kernel_name("cpu:average_pool"));

  Op lp = pooling_operator("LpPool", 18, float_dtypes)
              .doc("Computes the p-norm of each window of each channel.")
              .formula("Y = (sum(|X|^p))^(1/p)");
  add_window(lp);
  lp.attribute("p", 2).infer(infer_lp).cost<window_cost<2>>();
  lp.example("f32[1,1,7] = -4 -3 3 -4 3 -3 -4; kernel_shape=[3] -> f32[1,1,5] = 5.830952", "ONNX Runtime")
      .example(
          "f32[1,2,3,3] = -4 -3 3 -4 3 -3 -4 0 0 -4 -3 3 -4 3 -3 -4 0 0; kernel_shape=[2,2], pads=[1,0,0,1], strides=[2,1] -> f32[1,2,2,3] "
          "= 5 4.24264 3 6.403124 4.24264 3 5 4.24264 3 6.403124 4.24264 3",
          "ONNX Runtime")
      .example("f32[1,1,7] = -4 -3 3 -4 3 -3 -4; kernel_shape=[2], dilations=[2], ceil_mode=1, strides=[2] -> f32[1,1,3] = 5 4.24264 5",
               "ONNX Runtime")
      .example("f32[1,1,5] = -4 -3 3 -4 3; kernel_shape=[3], auto_pad=\"SAME_UPPER\", strides=[2] -> f32[1,1,3] = 5 5.830952 5",
               "ONNX Runtime")
      .example("f32[1,1,4] = -4 -3 3 -4; kernel_shape=[2], p=1 -> f32[1,1,3] = 7 6 7", "ONNX Runtime");
  plugin.add(lp.gradient<lp_pool_gradient>().cpu<Pool<PoolKind::lp, false>>().kernel_name("cpu:lp_pool"));

  Op global_max = pooling_operator("GlobalMaxPool", 1, float_dtypes)
                      .doc("Finds the largest element of each channel.")
                      .shapes("Y has the dims of X, with extent 1 for each spatial axis");
  global_max.infer(infer_global).cost<per_input_element<1>>();
  global_max.example("f32[1,2,3] = -4 -3 3 -4 3 -3 -> f32[1,2,1] = 3", "ONNX Runtime")
      .example("f32[2,1,2,3] = -4 -3 3 -4 3 -3 -4 0 0 -4 -3 3 -> f32[2,1,1,1] = 3", "ONNX Runtime");
  plugin.add(global_max.gradient<global_max_pool_gradient>().cpu<Pool<PoolKind::max, true>>().kernel_name("cpu:global_max_pool"));

  Op global_average = pooling_operator("GlobalAveragePool", 1, float_dtypes)
                          .doc("Averages each channel.")
                          .shapes("Y has the dims of X, with extent 1 for each spatial axis");
  global_average.infer(infer_global).cost<per_input_element<1>>();
  global_average.example("f32[1,2,3] = -4 -3 3 -4 3 -3 -> f32[1,2,1] = -1.333333", "ONNX Runtime")
      .example("f32[2,1,2,3] = -4 -3 3 -4 3 -3 -4 0 0 -4 -3 3 -> f32[2,1,1,1] = -1.333333", "ONNX Runtime");
  plugin.add(
      global_average.gradient<global_average_pool_gradient>().cpu<Pool<PoolKind::average, true>>().kernel_name("cpu:global_average_pool"));

  Op global_lp = pooling_operator("GlobalLpPool", 2, float_dtypes)
                     .doc("Computes the p-norm of each channel.")
                     .formula("Y = (sum(|X|^p))^(1/p)")
                     .shapes("Y has the dims of X, with extent 1 for each spatial axis");
  global_lp.attribute("p", 2).infer(infer_global_lp).cost<per_input_element<2>>();
  global_lp.example("f32[1,2,3] = -4 -3 3 -4 3 -3 -> f32[1,2,1] = 5.830952", "ONNX Runtime")
      .example("f32[2,1,2,3] = -4 -3 3 -4 3 -3 -4 0 0 -4 -3 3 -> f32[2,1,1,1] = 8.246211 7.071068", "ONNX Runtime")
      .example("f32[1,1,3] = -4 -3 3; p=1 -> f32[1,1,1] = 10", "ONNX Runtime");
  plugin.add(global_lp.gradient<global_lp_pool_gradient>().cpu<Pool<PoolKind::lp, true>>().kernel_name("cpu:global_lp_pool"));
}

}  // namespace heddle::cpu
