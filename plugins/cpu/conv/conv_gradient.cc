// ConvDataGradient and ConvFilterGradient, and the gradients that are built from them. See conv_gradient.h.
#include "conv/conv_gradient.h"

#include <algorithm>
#include <utility>

#include "conv/conv_filter_gradient.h"
#include "conv/conv_kernel.h"
#include "conv/conv_plain.h"
#include "families.h"
#include "shared/axes.h"
#include "shared/dims.h"
#include "shared/extent_rules.h"
#include "support/gradients.h"

namespace heddle::cpu {

Status resolve_gradient_window(const WindowAttributes& attributes, Dims x, Dims dy, const std::vector<int64_t>& kernel, bool transposed,
                               Window* window) {
  HEDDLE_PLUGIN_CHECK(resolve_window(attributes, x, kernel, window));
  for (int i = 0; i < window->spatial; ++i) {
    if (dy[i + 2] > window->output[i])
      return invalid("dY is " + dims_text(dy) + ", but only " + std::to_string(window->output[i]) + " windows lie along dimension " +
                     std::to_string(i + 2) + " of X " + dims_text(x));
    window->output[i] = dy[i + 2];
    const int64_t reached = (dy[i + 2] - 1) * window->stride[i] + window->reach(i) - window->pad_begin[i];
    window->pad_end[i] = reached - x[i + 2];
    // The end of X that no window reaches is less than a stride: no padding.
    if (window->pad_end[i] < 0 && window->pad_end[i] > -window->stride[i]) window->pad_end[i] = 0;
  }
  if (transposed) std::swap(window->input, window->output);
  return {};
}

namespace {

// Checks X, W and dY of one convolution.
Status check_convolution(InferContext& context, Dims x, Dims w, Dims dy, bool transposed) {
  const auto names = [&] { return "X " + dims_text(x) + ", W " + dims_text(w) + " and dY " + dims_text(dy); };
  if (x.rank < 3 || x.rank > max_spatial + 2 || w.rank != x.rank || dy.rank != x.rank)
    return invalid(names() + " are not of one rank from 3 to 5: batch, channels, 1 to 3 spatial dimensions");
  const int64_t groups = context.attributes.i("group");
  if (groups < 1 || x[1] % groups != 0 || w[0] % groups != 0)
    return invalid("group is " + std::to_string(groups) + ", expected a divisor of the channels of " + names());
  if (x[0] != dy[0] || w[0] != dy[1] || w[1] != x[1] / groups) return invalid(names() + " are not of one convolution");
  const std::vector<int64_t> kernel(w.begin() + 2, w.end()), declared = context.attributes.ints("kernel_shape");
  if (!declared.empty() && declared != kernel)
    return invalid("kernel_shape is " + dims_text(dims_of(declared)) + " but W is " + dims_text(w));
  Window window;
  return resolve_gradient_window(WindowAttributes(context.attributes), x, dy, kernel, transposed, &window);
}

// Sets the output's extents to those that input 2 lists.
template <class Check>
Status infer_listed(InferContext& context, Check&& check) {
  const Dims operand = context.dims(2);
  if (operand.rank != 1) return not_one_dimensional("shape", operand);
  if (operand[0] != context.dims(0).rank)
    return invalid("shape lists " + std::to_string(operand[0]) + " extents, expected " + std::to_string(context.dims(0).rank));
  if (!context.known(2)) return context.set_dynamic(0, context.dims(0).rank), Status();
  Extents to;
  HEDDLE_PLUGIN_CHECK(constant_extents(context.input(2), &to));
  HEDDLE_PLUGIN_CHECK(check(to.dims()));
  context.set_dims(0, to.dims());
  return {};
}
Status infer_data_gradient(InferContext& context) {
  return infer_listed(context, [&](Dims x) { return check_convolution(context, x, context.dims(1), context.dims(0), true); });
}
Status infer_filter_gradient(InferContext& context) {
  return infer_listed(context, [&](Dims w) { return check_convolution(context, context.dims(0), w, context.dims(1), false); });
}

double elements_behind(Dims dims, int first) {
  double n = 1;
  for (int i = first; i < dims.rank; ++i) n *= static_cast<double>(dims[i]);
  return n;
}
void data_gradient_cost(CostContext& context) {
  context.set_flops(2 * context.elements(0) * elements_behind(context.dims(1), 1));
}
void filter_gradient_cost(CostContext& context) {
  context.set_flops(2 * context.elements(1) * elements_behind(context.output_dims(0), 1));
}

// ---------------------------------------------------------------- gradients

// Emits `op` with the attributes of the convolution whose gradient is taken.
GradientValue emit_same(GradientContext& g, const char* op, std::initializer_list<GradientValue> inputs, const char* domain) {
  return g.emit(op, inputs,
                {g.same("auto_pad"), g.same("group"), g.same("dilations"), g.same("kernel_shape"), g.same("pads"), g.same("strides")},
                domain);
}

// The first positions of `value`, as many as `like` has.
GradientValue first_positions(GradientContext& g, GradientValue value, GradientValue like, int rank) {
  std::vector<int64_t> axes;
  for (int i = 2; i < rank; ++i) axes.push_back(i);
  const GradientValue ends = g.emit("Shape", {like}, {{"start", 2}});
  return g.emit("Slice", {value, g.ints(std::vector<int64_t>(axes.size(), 0)), ends, g.ints(axes)});
}

GradientValue bias_gradient(GradientContext& g) {
  std::vector<int64_t> axes = {0};
  for (int i = 2; i < g.output_type(0).rank; ++i) axes.push_back(i);
  return g.emit("ReduceSum", {g.dy(0), g.ints(axes)}, {{"keepdims", 0}});
}

Status data_gradient_gradient(GradientContext& g) {
  if (g.wants(0)) g.give(0, first_positions(g, emit_same(g, "Conv", {g.dy(0), g.x(1)}, ""), g.x(0), g.input_type(0).rank));
  if (g.wants(1)) g.give(1, emit_same(g, "ConvFilterGradient", {g.dy(0), g.x(0), shape_of(g, g.x(1))}, "heddle"));
  return {};
}
Status filter_gradient_gradient(GradientContext& g) {
  if (g.wants(0)) g.give(0, emit_same(g, "ConvDataGradient", {g.x(1), g.dy(0), shape_of(g, g.x(0))}, "heddle"));
  if (g.wants(1)) g.give(1, first_positions(g, emit_same(g, "Conv", {g.x(0), g.dy(0)}, ""), g.x(1), g.input_type(1).rank));
  return {};
}

bool all_known(const heddle_type& type) {
  return type.rank > 0 && std::all_of(type.dims, type.dims + type.rank, [](int64_t dim) { return dim >= 0; });
}

// Padding of the convolution that is the inverse of a transposed one, and whether it gives more positions than X has.
struct WayBack {
  std::vector<int64_t> pads;
  bool gives_more = false;
};
Status way_back(GradientContext& g, WayBack* back) {
  const WindowAttributes attributes(g.attributes());
  const heddle_type &x = g.input_type(0), &w = g.input_type(1);
  const auto spatial = static_cast<size_t>(std::max(0, x.rank - 2));
  if (all_known(x) && all_known(w)) {
    Window window;
    HEDDLE_PLUGIN_CHECK(resolve_transposed_window(attributes, Dims{x.dims, x.rank}, {w.dims + 2, w.dims + w.rank}, &window));
    back->pads.assign(window.pad_begin, window.pad_begin + spatial);
    for (int i = 0; i < window.spatial; ++i) {
      const int64_t free = window.output[i] + window.pad_begin[i] - window.reach(i);
      const int64_t end = std::max<int64_t>(0, (window.input[i] - 1) * window.stride[i] - free);
      back->pads.push_back(end);
      if ((free + end) / window.stride[i] + 1 != window.input[i]) back->gives_more = true;
    }
    return {};
  }
  if (!attributes.output_shape.empty() || (attributes.auto_pad != "NOTSET" && attributes.auto_pad != "VALID"))
    return unsupported("the gradient of ConvTranspose with output_shape or auto_pad, where the extents of X and W are not known");
  back->pads = attributes.auto_pad == "NOTSET" ? attributes.pads : std::vector<int64_t>();
  for (size_t i = 0; i < attributes.output_padding.size(); ++i)
    if (attributes.output_padding[i] >= (i < attributes.strides.size() ? attributes.strides[i] : 1)) back->gives_more = true;
  if (back->pads.empty()) back->pads.assign(2 * spatial, 0);
  return {};
}

}  // namespace

Status conv_gradient(GradientContext& g) {
  if (g.wants(0)) g.give(0, emit_same(g, "ConvDataGradient", {g.dy(0), g.x(1), shape_of(g, g.x(0))}, "heddle"));
  if (g.wants(1)) g.give(1, emit_same(g, "ConvFilterGradient", {g.x(0), g.dy(0), shape_of(g, g.x(1))}, "heddle"));
  if (g.wants(2)) g.give(2, bias_gradient(g));
  return {};
}

Status conv_transpose_gradient(GradientContext& g) {
  WayBack back;
  HEDDLE_PLUGIN_CHECK(way_back(g, &back));
  const auto emit = [&](const char* op, std::initializer_list<GradientValue> inputs, const char* domain) {
    return g.emit(op, inputs, {g.same("group"), g.same("dilations"), g.same("kernel_shape"), {"pads", back.pads}, g.same("strides")},
                  domain);
  };
  if (g.wants(0)) {
    const GradientValue dx = emit("Conv", {g.dy(0), g.x(1)}, "");
    g.give(0, back.gives_more ? first_positions(g, dx, g.x(0), g.input_type(0).rank) : dx);
  }
  // The input of the transposed convolution takes the place of a convolution's dY.
  if (g.wants(1)) g.give(1, emit("ConvFilterGradient", {g.dy(0), g.x(0), shape_of(g, g.x(1))}, "heddle"));
  if (g.wants(2)) g.give(2, bias_gradient(g));
  return {};
}

void add_conv_gradient(Builder& plugin) {
  const std::vector<heddle_dtype_set> f32 = {dtypes<float>(), dtypes<float>(), dtypes<int64_t>()};
  const std::vector<heddle_dtype_set> narrow = {dtypes<f16, bf16>(), dtypes<f16, bf16>(), dtypes<int64_t>()};
  const std::vector<heddle_dtype_set> f64 = {dtypes<double>(), dtypes<double>(), dtypes<int64_t>()};
  const std::vector<heddle_dtype_set> others = {dtypes<f16, bf16, double>(), dtypes<f16, bf16, double>(), dtypes<int64_t>()};
  const auto add_attributes = [](Op& op) {
    op.attribute("auto_pad", "NOTSET").attribute("group", 1);
    op.maybe("dilations", HEDDLE_ATTRIBUTE_INTS).maybe("kernel_shape", HEDDLE_ATTRIBUTE_INTS);
    op.maybe("pads", HEDDLE_ATTRIBUTE_INTS).maybe("strides", HEDDLE_ATTRIBUTE_INTS);
  };
  Op data = Op("ConvDataGradient", "heddle")
                .doc("Computes the gradient of Conv's X: dY is spread over the windows by the filters W.")
                .shapes("dX has the dims that shape holds");
  data.in("dY", conv_dtypes).in("W", conv_dtypes).shape_operand("shape").out("dX");
  add_attributes(data);
  data.infer(infer_data_gradient).cost<data_gradient_cost>().gradient<data_gradient_gradient>();
  data.cpu<ConvDataGradient>(f32).kernel_name("cpu:conv_data_gradient").kernel_flags(HEDDLE_KERNEL_EPILOGUE_IN_PLACE);
  data.cpu<NarrowConvolution<ConvKind::data_gradient>>(narrow).kernel_name("cpu:conv_data_gradient_float_tiles");
  data.cpu<PlainDataGradient>(f64).kernel_name("cpu:conv_data_gradient_plain");
  data.example("f32[1,1,3] = -4 -3 3, f32[1,1,3] = -4 -3 3, i64[3] = 1 1 5 -> f32[1,1,5] = 16 24 -15 -18 9", "by hand")
      .example(
          "f32[1,2,2] = 1 2 3 4, f32[2,1,2] = 1 -1 2 1, i64[3] = 1 2 6; group=2, strides=[3], pads=[1,0] -> f32[1,2,6] = -1 0 2 -2 0 "
          "0 3 0 8 4 0 0",
          "by hand");
  data.example(
      "f32[1,1,3] = 1 2 3, f32[1,1,2] = 4 5, i64[3] = 1 1 5; auto_pad=\"SAME_UPPER\", dilations=[2], kernel_shape=[2], strides=[2] -> "
      "f32[1,1,5] = 0 13 0 22 0",
      "by hand");
  plugin.add(data);
  Op filter = Op("ConvFilterGradient", "heddle")
                  .doc(
                      "Computes the gradient of Conv's W: for each tap of a filter, the sum of the products of dY with the elements of X "
                      "that lie under the tap.")
                  .shapes("dW has the dims that shape holds");
  filter.in("X", conv_dtypes).in("dY", conv_dtypes).shape_operand("shape").out("dW");
  add_attributes(filter);
  filter.infer(infer_filter_gradient).cost<filter_gradient_cost>().gradient<filter_gradient_gradient>();
  filter.cpu<ConvFilterGradient>(f32).kernel_name("cpu:conv_filter_gradient");
  filter.cpu<PlainFilterGradient>(others).kernel_name("cpu:conv_filter_gradient_plain");
  filter.example("f32[1,1,5] = -4 -3 3 -4 3, f32[1,1,3] = -4 -3 3, i64[3] = 1 1 3 -> f32[1,1,3] = 34 -9 9", "by hand")
      .example(
          "f32[1,2,6] = 1 2 3 4 5 6 7 8 9 10 11 12, f32[1,2,2] = 1 2 3 4, i64[3] = 2 1 2; group=2, strides=[3], pads=[1,0] -> "
          "f32[2,1,2] = 6 9 36 61",
          "by hand");
  filter.example(
      "f32[1,1,5] = 1 2 3 4 5, f32[1,1,3] = 1 2 3, i64[3] = 1 1 2; auto_pad=\"SAME_UPPER\", dilations=[2], kernel_shape=[2], strides=[2] "
      "-> f32[1,1,2] = 16 10",
      "by hand");
  plugin.add(filter);
}

}  // namespace heddle::cpu
