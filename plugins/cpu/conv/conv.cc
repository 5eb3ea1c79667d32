// Conv and ConvTranspose: schemas and shape rules. The kernels of f32, f16 and bf16 are conv_kernel.h's, those of f64 conv_plain.h's.
#include "conv/conv_gradient.h"
#include "conv/conv_kernel.h"
#include "conv/conv_plain.h"
#include "families.h"
#include "shared/dims.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

// Ranks, kernel_shape and group, which both operators share; `kernel` are the spatial dims of W.
Status check_weights(InferContext& context, std::vector<int64_t>* kernel) {
  const Dims x = context.dims(0), w = context.dims(1);
  if (x.rank < 3 || x.rank > max_spatial + 2)
    return invalid("X is " + dims_text(x) + ", expected rank 3 to 5: batch, channels, 1 to 3 spatial dimensions");
  if (w.rank != x.rank) return invalid("W is " + dims_text(w) + " but X " + dims_text(x) + " has rank " + std::to_string(x.rank));
  kernel->assign(w.begin() + 2, w.end());
  const std::vector<int64_t> declared = context.attributes.ints("kernel_shape");
  if (!declared.empty() && declared != *kernel)
    return invalid("kernel_shape is " + dims_text(dims_of(declared)) + " but W is " + dims_text(w));
  const int64_t groups = context.attributes.i("group");
  if (groups < 1 || x[1] % groups != 0)
    return invalid("group is " + std::to_string(groups) + ", expected a divisor of the " + std::to_string(x[1]) + " channels of X");
  return {};
}

Status check_bias(InferContext& context, int64_t channels) {
  if (!context.has_input(2)) return {};
  const Dims b = context.dims(2);
  if (b.rank == 1 && b[0] == channels) return {};
  return invalid("B is " + dims_text(b) + ", expected [" + std::to_string(channels) + "], one number per output channel");
}

void set_output(InferContext& context, int64_t channels, const Window& window) {
  std::vector<int64_t> dims = {context.dims(0)[0], channels};
  dims.insert(dims.end(), window.output, window.output + window.spatial);
  context.set_dims(0, dims);
}

Status infer_conv(InferContext& context) {
  std::vector<int64_t> kernel;
  HEDDLE_PLUGIN_CHECK(check_weights(context, &kernel));
  const Dims x = context.dims(0), w = context.dims(1);
  const int64_t groups = context.attributes.i("group");
  if (w[1] != x[1] / groups)
    return invalid("W is " + dims_text(w) + ", expected dimension 1 to be " + std::to_string(x[1] / groups) + ": " + std::to_string(x[1]) +
                   " channels of X in " + std::to_string(groups) + " groups");
  if (w[0] % groups != 0)
    return invalid("W is " + dims_text(w) + ", expected dimension 0 to divide into " + std::to_string(groups) + " groups");
  HEDDLE_PLUGIN_CHECK(check_bias(context, w[0]));
  Window window;
  HEDDLE_PLUGIN_CHECK(resolve_window(WindowAttributes(context.attributes), x, kernel, &window));
  set_output(context, w[0], window);
  return {};
}

Status infer_conv_transpose(InferContext& context) {
  std::vector<int64_t> kernel;
  HEDDLE_PLUGIN_CHECK(check_weights(context, &kernel));
  const Dims x = context.dims(0), w = context.dims(1);
  if (w[0] != x[1]) return invalid("W is " + dims_text(w) + ", expected dimension 0 to be " + std::to_string(x[1]) + ", the channels of X");
  int64_t channels = 0;
  if (__builtin_mul_overflow(w[1], context.attributes.i("group"), &channels)) return invalid("group times the channels of W overflows");
  HEDDLE_PLUGIN_CHECK(check_bias(context, channels));
  Window window;
  HEDDLE_PLUGIN_CHECK(resolve_transposed_window(WindowAttributes(context.attributes), x, kernel, &window));
  set_output(context, channels, window);
  return {};
}

// Elements of one filter: the number of terms of each output, or in a transposed convolution the outputs that each input adds to.
double filter_elements(const CostContext& context) {
  const Dims w = context.dims(1);
  double n = 1;
  for (int i = 1; i < w.rank; ++i) n *= static_cast<double>(w[i]);
  return n;
}
double bias_additions(const CostContext& context) {
  return context.has_input(2) ? context.output_elements(0) : 0;
}
void conv_cost(CostContext& context) {
  context.set_flops(2 * context.output_elements(0) * filter_elements(context) + bias_additions(context));
}
void conv_transpose_cost(CostContext& context) {
  context.set_flops(2 * context.elements(0) * filter_elements(context) + bias_additions(context));
}

Op conv_operator(const char* name) {
  Op op(name, "", 11);
  op.in("X", conv_dtypes).in("W", conv_dtypes).optional("B", conv_dtypes).out("Y");
  op.attribute("auto_pad", "NOTSET").attribute("group", 1);
  op.maybe("dilations", HEDDLE_ATTRIBUTE_INTS).maybe("kernel_shape", HEDDLE_ATTRIBUTE_INTS);
  op.maybe("pads", HEDDLE_ATTRIBUTE_INTS).maybe("strides", HEDDLE_ATTRIBUTE_INTS);
  return op;
}

}  // namespace

void add_conv(Builder& plugin) {
  const std::vector<heddle_dtype_set> f32 = {dtypes<float>(), dtypes<float>(), dtypes<float>()};
  const std::vector<heddle_dtype_set> narrow(3, dtypes<f16, bf16>()), f64(3, dtypes<double>());
  Op conv = conv_operator("Conv")
                .doc("Slides filters over 1 to 3 spatial axes (a cross-correlation), with groups, strides, dilations and padding.")
                .formula("Y[n, m, p] = B[m] + sum over c, k of X[n, c, p stride + k dilation - pad] W[m, c, k]; m and c of one group")
                .shapes(
                    "X is [N, C, ...], W is [M, C / group, kernel...]; Y is [N, M, ...], for each spatial axis floor((extent + pads - "
                    "dilation (kernel - 1) - 1) / stride) + 1, or with auto_pad SAME_UPPER or SAME_LOWER ceil(extent / stride)");
  conv.infer(infer_conv).cost<conv_cost>().gradient<conv_gradient>();
  conv.cpu<Convolution>(f32).kernel_name("cpu:conv").kernel_flags(HEDDLE_KERNEL_EPILOGUE_IN_PLACE);
  conv.cpu<NarrowConvolution<ConvKind::forward>>(narrow).kernel_name("cpu:conv_float_tiles");
  conv.cpu<PlainConvolution<false>>(f64).kernel_name("cpu:conv_plain");
  conv.example("f32[1,1,5] = -4 -3 3 -4 3, f32[1,1,3] = -4 -3 3 -> f32[1,1,3] = 34 -9 9", "ONNX Runtime")
      .example(
          "f32[1,2,3,3] = -4 -3 3 -4 3 -3 -4 0 0 -4 -3 3 -4 3 -3 -4 0 0, f32[2,2,2,2] = -4 -3 3 -4 3 -3 -4 0 0 -4 -3 3 -4 3 -3 -4, f32[2] "
          "= 1 -2; pads=[1,0,0,1], strides=[1,2] -> f32[1,2,3,2] = 17 -2 15 1 -9 4 25 -20 38 4 35 10",
          "ONNX Runtime")
      .example(
          "f32[1,2,7] = -4 -3 3 -4 3 -3 -4 0 0 -4 -3 3 -4 3, f32[2,1,2] = -4 -3 3 -4, f32[2] = 1 0; group=2, dilations=[2], "
          "kernel_shape=[2] -> f32[1,2,5] = 8 25 -20 26 1 16 12 -24 7 -3",
          "ONNX Runtime")
      .example("f32[1,1,2,2,2] = -4 -3 3 -4 3 -3 -4 0, f32[1,1,1,2,2] = -4 -3 3 -4 -> f32[1,1,2,1,1] = 50 -15", "ONNX Runtime")
      .example("f32[1,1,5] = -4 -3 3 -4 3, f32[1,1,2] = -4 -3; auto_pad=\"SAME_UPPER\", strides=[2] -> f32[1,1,3] = 25 0 -12",
               "ONNX Runtime");
  plugin.add(conv);
  Op transposed = conv_operator("ConvTranspose")
                      .doc("Spreads each element of X over a window by the filters: the transpose of Conv, as decoders use it.")
                      .formula("Y[n, m, p stride + k dilation - pad] += X[n, c, p] W[c, m, k], and B[m] is added; m and c of one group")
                      .shapes(
                          "X is [N, C, ...], W is [C, M / group, kernel...]; Y is [N, M, ...], for each spatial axis stride (extent - 1) + "
                          "output_padding + dilation (kernel - 1) + 1 - pads, with auto_pad SAME_UPPER or SAME_LOWER extent times stride, "
                          "or what output_shape says");
  transposed.maybe("output_padding", HEDDLE_ATTRIBUTE_INTS).maybe("output_shape", HEDDLE_ATTRIBUTE_INTS);
  transposed.infer(infer_conv_transpose).cost<conv_transpose_cost>().gradient<conv_transpose_gradient>();
  transposed.cpu<TransposedConvolution>(f32).kernel_name("cpu:conv_transpose").kernel_flags(HEDDLE_KERNEL_EPILOGUE_IN_PLACE);
  transposed.cpu<NarrowConvolution<ConvKind::transposed>>(narrow).kernel_name("cpu:conv_transpose_float_tiles");
  transposed.cpu<PlainConvolution<true>>(f64).kernel_name("cpu:conv_transpose_plain");
  transposed.example("f32[1,1,3] = -4 -3 3, f32[1,2,2] = -4 -3 3 -4 -> f32[1,2,4] = 16 24 -3 -9 -12 7 21 -12", "ONNX Runtime")
      .example(
          "f32[1,2,2,2] = -4 -3 3 -4 3 -3 -4 0, f32[2,1,2,2] = -4 -3 3 -4 3 -3 -4 0, f32[1] = 1; strides=[2,1], pads=[0,1,1,0] -> "
          "f32[1,1,3,2] = 7 19 20 13 20 13",
          "ONNX Runtime")
      .example(
          "f32[1,2,3] = -4 -3 3 -4 3 -3, f32[2,1,2] = -4 -3 3 -4, f32[2] = 1 0; group=2, dilations=[2], kernel_shape=[2], "
          "output_padding=[1], strides=[2] -> f32[1,2,8] = 17 1 25 1 -2 1 -8 1 -12 0 25 0 -21 0 12 0",
          "ONNX Runtime")
      .example("f32[1,1,3] = -4 -3 3, f32[1,1,3] = -4 -3 3; output_shape=[7], strides=[2] -> f32[1,1,7] = 16 12 0 9 -21 -9 9",
               "ONNX Runtime")
      .example("f32[1,1,3] = -4 -3 3, f32[1,1,3] = -4 -3 3; auto_pad=\"SAME_LOWER\", strides=[2] -> f32[1,1,6] = 12 0 9 -21 -9 9",
               "ONNX Runtime");
  plugin.add(transposed);
}

}  // namespace heddle::cpu
