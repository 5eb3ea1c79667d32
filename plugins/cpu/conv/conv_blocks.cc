// Plain loops of f32 convolutions, and when they are used. See conv_blocks.h.
#include "conv/conv_blocks.h"

#include <algorithm>

#include "conv/conv_taps.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "support/cpu_api.h"
#include "support/float_sums.h"

namespace heddle::cpu {
namespace {

// oneDNN 2.7 takes 11 us for each output column that sees padding, 1 to 7 us for each other one (more beyond 10^5), and about 5 us for each
// tap, to create a primitive.
constexpr int64_t max_columns = int64_t{1} << 17;
constexpr int64_t max_pad = 4096;
constexpr int64_t max_taps = int64_t{1} << 22;
constexpr int64_t max_channels = int64_t{1} << 20;
constexpr int64_t max_step = int64_t{1} << 17;  // stride, reach of a filter
constexpr int64_t max_tiles_of_library = int64_t{1} << 18;
constexpr int64_t max_weighted_columns = int64_t{1} << 19;  // of all tile shapes together; a column of padding counts four times

template <bool transposed, class T>
void convolve(const ConvProblem& problem, const ConvSource& source, const ConvBlock& block, float* y, CancellationPoll& poll) {
  const Window& window = problem.window;
  const int64_t output_pixels = window.output_count(), taps = window.kernel_count();
  const int64_t group_outputs = problem.output_channels / problem.groups, group_inputs = problem.input_channels / problem.groups;
  for (int64_t p = 0; p < block.pixels; ++p) {
    const int64_t image = (block.first_pixel + p) / output_pixels, pixel = (block.first_pixel + p) % output_pixels;
    const int64_t position[max_spatial] = {pixel / (window.output[1] * window.output[2]), pixel / window.output[2] % window.output[1],
                                           pixel % window.output[2]};
    for (int64_t k = 0; k < block.channels; ++k) {
      const int64_t channel = block.first_channel + k;
      double sum = source.bias ? static_cast<double>(source.bias[channel]) : 0.0;
      for (int64_t c = 0; c < group_inputs && window.input_count() > 0; ++c) {
        const int64_t input_channel = channel / group_outputs * group_inputs + c;
        const T* plane = static_cast<const T*>(source.x) + image * source.image + input_channel * source.channel;
        const T* filter = static_cast<const T*>(source.weights) +
                          (transposed ? input_channel * group_outputs + channel % group_outputs : channel * group_inputs + c) * taps;
        for_each_tap<transposed>(window, position, poll, [&](int64_t at, int64_t tap) {
          sum += static_cast<double>(to_arithmetic(plane[at * source.pixel])) * static_cast<double>(to_arithmetic(filter[tap]));
        });
        if (poll.stopped()) return;
      }
      y[p * block.channels + k] = static_cast<float>(sum);
    }
  }
}

}  // namespace

void convolve_block(const ConvProblem& problem, const ConvSource& source, const ConvBlock& block, float* y, CancellationPoll& poll) {
  with_float(source.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    problem.transposed ? convolve<true, T>(problem, source, block, y, poll) : convolve<false, T>(problem, source, block, y, poll);
  });
}

bool library_takes(const ConvProblem& problem, int64_t tiles) {
  const Window& window = problem.window;
  int64_t taps = 1;
  for (int i = 0; i < window.spatial; ++i) {
    if (window.stride[i] > max_step || window.reach(i) > max_step) return false;
    taps *= window.kernel[i];
  }
  return taps <= max_taps && std::max(problem.input_channels, problem.output_channels) <= max_channels && tiles <= max_tiles_of_library;
}

bool library_takes(const ConvProblem& problem, const ConvTiling& tiling) {
  const int last = problem.window.spatial - 1;
  int64_t weighted = 0;
  for (const ConvTileShape& shape : tiling.shapes) {
    for (int i = 0; i <= last; ++i) {
      // Negative end padding is a stride or more of the input that no window reaches.
      if (shape.pad_begin[i] > max_pad || shape.pad_end[i] > max_pad || shape.pad_end[i] < 0) return false;
      // A dilation allows output_padding to add a stride or more of rows after the last row that the input adds to: oneDNN computes another
      // input extent.
      const int64_t added_to = shape.output[i] + shape.pad_begin[i] + shape.pad_end[i] - problem.window.reach(i);
      if (problem.transposed && added_to / problem.window.stride[i] + 1 != shape.input[i]) return false;
    }
    if (shape.input[last] > max_columns || shape.output[last] > max_columns) return false;
    weighted += shape.output[last] + 4 * (shape.pad_begin[last] + std::max<int64_t>(0, shape.pad_end[last]));
  }
  return weighted <= max_weighted_columns && library_takes(problem, static_cast<int64_t>(tiling.tiles.size()));
}

}  // namespace heddle::cpu
