// Gradients of pools in both layouts. See pool_gradient_kernel.h.
#include "pooling/pool_gradient_kernel.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "pooling/pooling_kernel.h"
#include "pooling/pooling_loops.h"
#include "shared/dense_layouts.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/extent_rules.h"
#include "shared/scalar.h"

namespace heddle::cpu {

Status PoolGradientDriver::create(const CreateContext& context) {
  attributes_ = WindowAttributes(context.attributes);
  if (is_max_) return {};
  count_include_pad_ = context.attributes.i("count_include_pad", 0) != 0;
  fixed_divisor_ = context.attributes.i("divisor", 0);
  return {};
}

double PoolGradientDriver::divisor(const PoolWindow& window) const {
  return fixed_divisor_ > 0 ? static_cast<double>(fixed_divisor_) : window.divisor(count_include_pad_);
}

Status PoolGradientDriver::prepare(PrepareContext& context) {
  const heddle_tensor& dx = *context.output(0);
  const heddle_tensor& dy = *context.input(is_max_ ? 1 : 0);
  checks_shape_ = !is_max_ && varies(context, {1});
  HEDDLE_PLUGIN_CHECK(resolve_pool(attributes_, attributes_.kernel_shape.empty(), dims_of(dx), &window_));
  images_ = dx.dims[0];
  channels_ = dx.dims[1];
  channels_last_ = dx.layout.rank != 0;
  if (channels_last_ != (dy.layout.rank != 0) || (is_max_ && channels_last_ != (context.input(0)->layout.rank != 0)))
    return unsupported("the gradient of a pool wants inputs and output in one layout");
  if (channels_last_ && window_.input_count() > std::numeric_limits<int32_t>::max())
    return unsupported("images of more than 2^31 pixels, channels-last");
  if (dx.element_count == 0) {
    context.set_tiles(0);
    return {};
  }
  double touched = static_cast<double>(dy.element_count);
  for (const int64_t extent : window_.kernel) touched *= static_cast<double>(extent);
  touched = std::max(touched, static_cast<double>(dx.element_count));
  tiling_.plan(context, touched * static_cast<double>(byte_width(dx.dtype)), channels_last_ ? 2.0 : 4.0, 4.0 * touched);
  if (byte_width(dx.dtype) == 2) context.set_scratch(0, static_cast<uint64_t>(window_.input_count()) * sizeof(float));
  return {};
}

// Units are blocks of channels of all images.
void PoolGradientDriver::run_channels_last(const RunContext& context, int64_t first, int64_t last, CancellationPoll& poll) const {
  const auto* x = static_cast<const float*>(context.inputs[0]->data);
  const auto* dy = static_cast<const float*>(context.inputs[is_max_ ? 1 : 0]->data);
  auto* dx = static_cast<float*>(context.outputs[0]->data);
  const PoolTable& loops = isa_pooling();
  const int64_t blocks = (channels_ + block - 1) / block;
  const int64_t output_pixels = window_.output_count(), input_pixels = window_.input_count();
  PoolWindow window(window_);
  Best best;
  for (int64_t unit = first; unit < last && !poll.stopped(); ++unit) {
    const int64_t image = unit / blocks, channel = unit % blocks * block;
    const int64_t channels = std::min(block, channels_ - channel);
    const float* given = dy + image * output_pixels * channels_ + channel;
    const float* seen = x + image * input_pixels * channels_ + channel;
    float* target = dx + image * input_pixels * channels_ + channel;
    for (int64_t pixel = 0; pixel < input_pixels && !poll.stops(channels); ++pixel) std::fill_n(target + pixel * channels_, channels, 0.0f);
    for (int64_t pixel = 0; pixel < output_pixels && !poll.stopped(); ++pixel, given += channels_) {
      window.move_to(pixel);
      if (is_max_) {
        bool any = false;
        window.for_each_tap(poll, 2 * channels, [&](int64_t at) {
          if (!any) std::fill_n(best.at, channels, static_cast<int32_t>(at)), std::copy_n(seen + at * channels_, channels, best.value);
          if (any) loops.keep_larger(seen + at * channels_, channels, static_cast<int32_t>(at), best.value, best.at);
          any = true;
        });
        for (int64_t c = 0; any && c < channels; ++c) target[best.at[c] * channels_ + c] += given[c];
      } else {
        std::copy_n(given, channels, best.value);
        if (const double parts = divisor(window); parts > 1) loops.lines.divide(best.value, channels, static_cast<float>(parts));
        window.for_each_tap(poll, channels, [&](int64_t at) { loops.add(best.value, channels, target + at * channels_); });
      }
    }
  }
}

// Units are planes.
template <class T>
void PoolGradientDriver::run_row_major(const RunContext& context, int64_t first, int64_t last, CancellationPoll& poll) const {
  using A = Arithmetic<T>;
  const T* x = input<T>(context, 0).data;
  const T* dy = input<T>(context, is_max_ ? 1 : 0).data;
  T* dx = output<T>(context, 0).data;
  const int64_t output_pixels = window_.output_count(), input_pixels = window_.input_count();
  PoolWindow window(window_);
  for (int64_t plane = first; plane < last && !poll.stopped(); ++plane) {
    const T *seen = x + plane * input_pixels, *given = dy + plane * output_pixels;
    A* sums = nullptr;
    if constexpr (std::is_same_v<A, T>)
      sums = dx + plane * input_pixels;
    else
      sums = thread_scratch<A>(context);
    fill_cancellable(sums, input_pixels, A(0), poll);
    for (int64_t pixel = 0; pixel < output_pixels && !poll.stops(4); ++pixel) {
      window.move_to(pixel);
      const A part = to_arithmetic(given[pixel]);
      if (is_max_) {
        int64_t best = -1;
        A highest = 0;
        window.for_each_tap(poll, 2, [&](int64_t at) {
          const A value = to_arithmetic(seen[at]);
          if (best >= 0 && !(value > highest || value != value)) return;
          highest = value;
          best = at;
        });
        if (best >= 0) sums[best] += part;
      } else {
        const double parts = divisor(window);
        const A share = parts > 1 ? part / static_cast<A>(parts) : part;
        window.for_each_tap(poll, 1, [&](int64_t at) { sums[at] += share; });
      }
    }
    if constexpr (!std::is_same_v<A, T>)
      for (int64_t i = 0; i < input_pixels && !poll.stops(2); ++i) dx[plane * input_pixels + i] = from_arithmetic<T>(sums[i]);
  }
}

Status PoolGradientDriver::run(const RunContext& context, int64_t begin, int64_t end) const {
  const heddle_tensor& dx = *context.outputs[0];
  if (checks_shape_)
    HEDDLE_PLUGIN_CHECK(
        check_planned({{"shape", context.inputs[1]}}, dx, [&](Extents* to) { return constant_extents(*context.inputs[1], to); }));
  CancellationPoll poll(context);
  const int64_t blocks = channels_last_ ? (channels_ + block - 1) / block : channels_;
  const Tiling::Range units = tiling_.range(images_ * blocks, begin, end);
  if (channels_last_) {
    run_channels_last(context, units.first, units.last, poll);
    return poll.status();
  }
  switch (dx.dtype) {
    case HEDDLE_F16:
      run_row_major<f16>(context, units.first, units.last, poll);
      break;
    case HEDDLE_BF16:
      run_row_major<bf16>(context, units.first, units.last, poll);
      break;
    case HEDDLE_F32:
      run_row_major<float>(context, units.first, units.last, poll);
      break;
    case HEDDLE_F64:
      run_row_major<double>(context, units.first, units.last, poll);
      break;
    default:
      return unsupported("the gradient of a pool of this dtype");
  }
  return poll.status();
}

std::vector<heddle_format> PoolGradientDriver::list_formats(const CreateContext& context, bool is_max) {
  heddle_format row_major = {};
  row_major.struct_size = sizeof(row_major);
  const heddle_type& dy = *context.input(is_max ? 1 : 0);
  const heddle_type& dx = *context.output(0);
  if (dx.dtype != HEDDLE_F32 || dx.rank < 3 || ((dx.flags | dy.flags) & HEDDLE_TYPE_DYNAMIC)) return {row_major};
  const double pixels = static_cast<double>(Dims{dx.dims, dx.rank}.count(2, dx.rank));
  if (pixels > static_cast<double>(std::numeric_limits<int32_t>::max())) return {row_major};
  const double elements = static_cast<double>(Dims{dx.dims, dx.rank}.count(0, dx.rank));
  heddle_format last = row_major;
  last.inputs[0] = last.outputs[0] = channels_last(dx.rank);
  if (is_max) last.inputs[1] = channels_last(dx.rank);
  last.cost_ns = 100.0 + 1.0 * elements;
  row_major.cost_ns = 100.0 + 4.0 * elements;
  return {last, row_major};
}

}  // namespace heddle::cpu
