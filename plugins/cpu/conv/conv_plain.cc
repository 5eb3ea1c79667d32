// Plain convolutions. See conv_plain.h.
#include "conv/conv_plain.h"

#include <algorithm>

#include "conv/conv_gradient.h"
#include "conv/conv_taps.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/extent_rules.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

template <bool transposed>
Status PlainConvolution<transposed>::create(const CreateContext& context) {
  attributes_ = WindowAttributes(context.attributes);
  groups_ = context.attributes.i("group", 1);
  return {};
}

template <bool transposed>
Status PlainConvolution<transposed>::prepare(PrepareContext& context) {
  const Dims x = dims_of(*context.input(0)), w = dims_of(*context.input(1));
  const std::vector<int64_t> kernel(w.begin() + 2, w.end());
  checks_shape_ = is_gradient_ && varies(context, {2});
  if (is_gradient_)
    HEDDLE_PLUGIN_CHECK(resolve_gradient_window(attributes_, dims_of(*context.output(0)), x, kernel, true, &window_));
  else
    HEDDLE_PLUGIN_CHECK(transposed ? resolve_transposed_window(attributes_, x, kernel, &window_)
                                   : resolve_window(attributes_, x, kernel, &window_));
  const auto products = static_cast<double>(std::max<int64_t>(1, w.count(1, w.rank)));
  const double taps = static_cast<double>(context.output(0)->element_count) * products;  // with huge pads more than 64 bits count
  tiling_.plan(context, taps, 8.0);
  return {};
}

template <bool transposed>
template <class T>
Status PlainConvolution<transposed>::run_outputs(const RunContext& context, int64_t first, int64_t last) const {
  using A = Arithmetic<T>;
  const auto x = input<T>(context, 0), w = input<T>(context, 1), bias = is_gradient_ ? In<T>() : input<T>(context, 2);
  const auto y = output<T>(context, 0);
  const int64_t channels = y.dims[1], pixels = window_.output_count(), input_pixels = window_.input_count();
  const int64_t taps = window_.kernel_count();
  const int64_t group_outputs = channels / groups_, group_inputs = x.dims[1] / groups_;
  CancellationPoll poll(context);
  for (int64_t index = first; index < last; ++index) {
    const int64_t pixel = index % pixels, channel = index / pixels % channels, image = index / pixels / channels;
    const int64_t position[max_spatial] = {pixel / (window_.output[1] * window_.output[2]), pixel / window_.output[2] % window_.output[1],
                                           pixel % window_.output[2]};
    const int64_t group = channel / group_outputs;
    A sum = bias.data ? to_arithmetic(bias[channel]) : A(0);
    for (int64_t c = 0; c < group_inputs; ++c) {
      const int64_t input_channel = group * group_inputs + c;
      const T* plane = x.data + (image * x.dims[1] + input_channel) * input_pixels;
      const T* filter = w.data + (transposed ? input_channel * group_outputs + channel % group_outputs : channel * group_inputs + c) * taps;
      for_each_tap<transposed>(window_, position, poll,
                               [&](int64_t at, int64_t tap) { sum += to_arithmetic(plane[at]) * to_arithmetic(filter[tap]); });
      if (poll.stopped()) return cancelled();
    }
    y[index] = from_arithmetic<T>(sum);
  }
  return {};
}

template <bool transposed>
Status PlainConvolution<transposed>::run(const RunContext& context, int64_t begin, int64_t end) const {
  const heddle_tensor& y = *context.outputs[0];
  if (checks_shape_)
    HEDDLE_PLUGIN_CHECK(
        check_planned({{"shape", context.inputs[2]}}, y, [&](Extents* to) { return constant_extents(*context.inputs[2], to); }));
  const Tiling::Range range = tiling_.range(y.element_count, begin, end);
  if (y.dtype != HEDDLE_F64) return unsupported("a convolution of this dtype");
  return run_outputs<double>(context, range.first, range.last);
}

template class PlainConvolution<false>;
template class PlainConvolution<true>;

}  // namespace heddle::cpu
