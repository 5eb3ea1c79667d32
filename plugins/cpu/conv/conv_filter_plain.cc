// ConvFilterGradient as plain loops. See conv_filter_gradient.h.
#include <algorithm>

#include "conv/conv_filter_gradient.h"
#include "conv/conv_gradient.h"
#include "shared/dims.h"
#include "shared/extent_rules.h"
#include "shared/scalar.h"

namespace heddle::cpu {

double FilterProblem::flops() const {
  return 2.0 * static_cast<double>(batch) * static_cast<double>(window.output_count()) * static_cast<double>(window.kernel_count()) *
         static_cast<double>(group_inputs()) * static_cast<double>(output_channels);
}

namespace {

// The output positions whose tap number `tap` lies inside the input.
struct Positions {
  int64_t first, last;
};
Positions positions_inside(const Window& window, int axis, int64_t tap) {
  const int64_t stride = window.stride[axis], at = tap * window.dilation[axis] - window.pad_begin[axis];
  const int64_t first = at >= 0 ? 0 : (-at + stride - 1) / stride;
  const int64_t last = window.input[axis] > at ? (window.input[axis] - at - 1) / stride + 1 : 0;
  return {first, std::max(first, std::min(last, window.output[axis]))};
}

}  // namespace

template <class T>
void plain_filter_gradient(const FilterProblem& problem, const T* x, const T* dy, T* dw, int64_t first, int64_t last,
                           CancellationPoll& poll) {
  const Window& window = problem.window;
  const int64_t taps = window.kernel_count(), inputs = problem.group_inputs();
  const auto strides = [](const PixelLayout& layout, int64_t* channel, int64_t* pixel) {
    *channel = layout.channels_last ? 1 : layout.pixels;
    *pixel = layout.channels_last ? layout.channels : 1;
  };
  int64_t x_channel = 0, x_pixel = 0, dy_channel = 0, dy_pixel = 0;
  strides(problem.x, &x_channel, &x_pixel);
  strides(problem.dy, &dy_channel, &dy_pixel);
  for (int64_t index = first; index < last && !poll.stops(10); ++index) {
    const int64_t tap = index % taps, input = index / taps % inputs, filter = index / taps / inputs;
    const int64_t tap_at[max_spatial] = {tap / (window.kernel[1] * window.kernel[2]), tap / window.kernel[2] % window.kernel[1],
                                         tap % window.kernel[2]};
    Positions inside[max_spatial];
    int64_t origin[max_spatial];
    for (int i = 0; i < max_spatial; ++i) {
      inside[i] = positions_inside(window, i, tap_at[i]);
      origin[i] = tap_at[i] * window.dilation[i] - window.pad_begin[i];
    }
    const T* const plane = x + (filter / problem.group_outputs() * inputs + input) * x_channel;
    const T* const given = dy + filter * dy_channel;
    double sum = 0;
    for (int64_t image = 0; image < problem.batch; ++image)
      for (int64_t a = inside[0].first; a < inside[0].last; ++a)
        for (int64_t b = inside[1].first; b < inside[1].last; ++b) {
          if (poll.stops(inside[2].last - inside[2].first)) return;
          const int64_t row = ((a * window.stride[0] + origin[0]) * window.input[1] + b * window.stride[1] + origin[1]) * window.input[2];
          const T* const x_row = plane + image * problem.x.channels * problem.x.pixels + (row + origin[2]) * x_pixel;
          const T* const dy_row =
              given + image * problem.dy.channels * problem.dy.pixels + (a * window.output[1] + b) * window.output[2] * dy_pixel;
          for (int64_t c = inside[2].first; c < inside[2].last; ++c)
            sum += static_cast<double>(to_arithmetic(x_row[c * window.stride[2] * x_pixel])) *
                   static_cast<double>(to_arithmetic(dy_row[c * dy_pixel]));
        }
    dw[index] = from_arithmetic<T>(static_cast<Arithmetic<T>>(sum));
  }
}

Status FilterGradientBase::create(const CreateContext& context) {
  attributes_ = WindowAttributes(context.attributes);
  groups_ = context.attributes.i("group", 1);
  threads_ = context.max_threads();
  return {};
}

Status FilterGradientBase::read_problem(PrepareContext& context) {
  const Dims x = dims_of(*context.input(0)), dy = dims_of(*context.input(1)), w = dims_of(*context.output(0));
  checks_shape_ = varies(context, {2});
  problem_ = {};
  problem_.batch = x[0];
  problem_.groups = groups_;
  problem_.input_channels = x[1];
  problem_.output_channels = dy[1];
  HEDDLE_PLUGIN_CHECK(resolve_gradient_window(attributes_, x, dy, {w.begin() + 2, w.end()}, false, &problem_.window));
  problem_.x = {true, x[1], problem_.window.input_count()};
  problem_.dy = {true, dy[1], problem_.window.output_count()};
  HEDDLE_PLUGIN_CHECK(read_layout("X", *context.input(0), &problem_.x.channels_last));
  return read_layout("dY", *context.input(1), &problem_.dy.channels_last);
}

void FilterGradientBase::plan_plain(PrepareContext& context) {
  const double flops = problem_.flops();
  plain_tiling_.plan(context, std::max(flops, static_cast<double>(context.output(0)->byte_size)), 1.0, flops);
  context.set_cost_ns(500.0 + flops);
  context.set_scratch(0, 0);
}

Status FilterGradientBase::check_shape(const RunContext& context) const {
  if (!checks_shape_) return {};
  return check_planned({{"shape", context.inputs[2]}}, *context.outputs[0],
                       [&](Extents* to) { return constant_extents(*context.inputs[2], to); });
}

template <class T>
Status FilterGradientBase::run_plain(const RunContext& context, int64_t begin, int64_t end) const {
  const auto dw = output<T>(context, 0);
  const Tiling::Range range = plain_tiling_.range(context.outputs[0]->element_count, begin, end);
  CancellationPoll poll(context);
  plain_filter_gradient(problem_, input<T>(context, 0).data, input<T>(context, 1).data, dw.data, range.first, range.last, poll);
  return poll.status();
}
template Status FilterGradientBase::run_plain<float>(const RunContext& context, int64_t begin, int64_t end) const;

Status PlainFilterGradient::prepare(PrepareContext& context) {
  HEDDLE_PLUGIN_CHECK(read_problem(context));
  plan_plain(context);
  return {};
}

Status PlainFilterGradient::run(const RunContext& context, int64_t begin, int64_t end) const {
  HEDDLE_PLUGIN_CHECK(check_shape(context));
  switch (context.outputs[0]->dtype) {
    case HEDDLE_F16:
      return run_plain<f16>(context, begin, end);
    case HEDDLE_BF16:
      return run_plain<bf16>(context, begin, end);
    case HEDDLE_F64:
      return run_plain<double>(context, begin, end);
    default:
      return unsupported("the gradient of filters of this dtype");
  }
}

}  // namespace heddle::cpu
