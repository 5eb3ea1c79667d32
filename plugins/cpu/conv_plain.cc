// Plain convolutions. See conv_plain.h.
#include "conv_plain.h"

#include "scalar.h"

namespace heddle::cpu {
namespace {

// Position of the input that output position `o` sees through tap `k` along one axis; -1: none.
template <bool transposed>
int64_t source_position(const Window& window, int axis, int64_t o, int64_t k) {
  const int64_t tap = k * window.dilation[axis];
  if (!transposed) {
    const int64_t i = o * window.stride[axis] - window.pad_begin[axis] + tap;
    return i < window.input[axis] ? i : -1;
  }
  const int64_t scaled = o + window.pad_begin[axis] - tap;
  if (scaled < 0 || scaled % window.stride[axis] != 0) return -1;
  const int64_t i = scaled / window.stride[axis];
  return i < window.input[axis] ? i : -1;
}

// Calls body(input offset, tap offset) for every tap of output position o[] that meets the input.
template <bool transposed, class Body>
void for_each_tap(const Window& window, const int64_t (&o)[most_spatial], Body&& body) {
  for (int64_t a = 0; a < window.kernel[0]; ++a) {
    const int64_t i = source_position<transposed>(window, 0, o[0], a);
    if (i < 0) continue;
    for (int64_t b = 0; b < window.kernel[1]; ++b) {
      const int64_t j = source_position<transposed>(window, 1, o[1], b);
      if (j < 0) continue;
      for (int64_t c = 0; c < window.kernel[2]; ++c) {
        const int64_t k = source_position<transposed>(window, 2, o[2], c);
        if (k >= 0) body((i * window.input[1] + j) * window.input[2] + k, (a * window.kernel[1] + b) * window.kernel[2] + c);
      }
    }
  }
}

}  // namespace

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
  HEDDLE_PLUGIN_CHECK(transposed ? resolve_transposed_window(attributes_, x, kernel, &window_)
                                 : resolve_window(attributes_, x, kernel, &window_));
  const auto products = static_cast<double>(std::max<int64_t>(1, w.count(1, w.rank)));
  const double taps = static_cast<double>(context.output(0)->element_count) * products;  // with huge pads more than 64 bits count
  tiling_.plan(context, static_cast<int64_t>(std::min(taps, 1e15)), 8.0);
  return {};
}

template <bool transposed>
template <class T>
void PlainConvolution<transposed>::run_outputs(const RunContext& context, int64_t first, int64_t last) const {
  using A = Arithmetic<T>;
  const auto x = input<T>(context, 0), w = input<T>(context, 1), bias = input<T>(context, 2);
  const auto y = output<T>(context, 0);
  const int64_t channels = y.dims[1], pixels = window_.output_count(), input_pixels = window_.input_count();
  const int64_t taps = window_.kernel_count();
  const int64_t group_outputs = channels / groups_, group_inputs = x.dims[1] / groups_;
  for (int64_t index = first; index < last; ++index) {
    const int64_t pixel = index % pixels, channel = index / pixels % channels, image = index / pixels / channels;
    const int64_t position[most_spatial] = {pixel / (window_.output[1] * window_.output[2]), pixel / window_.output[2] % window_.output[1],
                                            pixel % window_.output[2]};
    const int64_t group = channel / group_outputs;
    A sum = bias.data ? to_arithmetic(bias[channel]) : A(0);
    for (int64_t c = 0; c < group_inputs; ++c) {
      const int64_t input_channel = group * group_inputs + c;
      const T* plane = x.data + (image * x.dims[1] + input_channel) * input_pixels;
      const T* filter = w.data + (transposed ? input_channel * group_outputs + channel % group_outputs : channel * group_inputs + c) * taps;
      for_each_tap<transposed>(window_, position,
                               [&](int64_t at, int64_t tap) { sum += to_arithmetic(plane[at]) * to_arithmetic(filter[tap]); });
    }
    y[index] = from_arithmetic<T>(sum);
  }
}

template <bool transposed>
Status PlainConvolution<transposed>::run(const RunContext& context, int64_t begin, int64_t end) const {
  const heddle_tensor& y = *context.outputs[0];
  const Tiling::Range range = tiling_.range(y.element_count, begin, end);
  switch (y.dtype) {
    case HEDDLE_F16:
      run_outputs<f16>(context, range.first, range.last);
      return {};
    case HEDDLE_BF16:
      run_outputs<bf16>(context, range.first, range.last);
      return {};
    case HEDDLE_F64:
      run_outputs<double>(context, range.first, range.last);
      return {};
    default:
      return unsupported("a convolution of this dtype");
  }
}

template class PlainConvolution<false>;
template class PlainConvolution<true>;

}  // namespace heddle::cpu
