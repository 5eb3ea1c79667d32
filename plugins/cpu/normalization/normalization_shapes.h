// Shapes of normalisations and of their parameters: rows with one scale and bias per column, channels with one each.
#pragma once

#include <algorithm>
#include <string>

#include "normalization/normalization_columns.h"
#include "normalization/normalization_work.h"
#include "shared/axes.h"
#include "shared/dims.h"
#include "shared/input_shapes.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

struct RowShape {
  int64_t rows = 1, columns = 1;
};

inline Status row_shape(Dims dims, int64_t given_axis, RowShape* shape) {
  int axis = 0;
  if (!normalize_axis(given_axis, dims.rank, &axis)) return axis_outside("axis", given_axis, dims.rank);
  *shape = {dims.count(0, axis), dims.count(axis, dims.rank)};
  return {};
}

// Scale and bias broadcast to the normalised dimensions: one value, or the trailing dimensions themselves.
inline Status check_parameter(const char* name, Dims parameter, Dims x, int64_t columns) {
  const int64_t count = parameter.count(0, parameter.rank);
  if (count == 1) return {};
  int first = 0;
  while (first < parameter.rank && parameter[first] == 1) ++first;
  bool trailing = parameter.rank - first <= x.rank && count <= columns;
  for (int i = first; trailing && i < parameter.rank; ++i) trailing = parameter[i] == x[i - parameter.rank];
  if (trailing) return {};
  return invalid(std::string(name) + " has shape " + dims_text(parameter) + ", expected the trailing dimensions of " + dims_text(x) +
                 " from the axis on, or one value");
}

// A parameter as `columns` values of T: where it lies, or repeated into `buffer`.
template <class T>
const T* parameter_row(const heddle_tensor* parameter, int64_t columns, T* buffer) {
  if (!parameter) return nullptr;
  const int64_t count = parameter->element_count;
  if (count == columns) return as_working(*parameter, 0, columns, buffer);
  convert(parameter->dtype, parameter->data, dtype_of<T>::id, buffer, count);
  for (int64_t i = count; i < columns; ++i) buffer[i] = buffer[i - count];
  return buffer;
}

// Dimensions N, C, and the product of the spatial ones. A one-dimensional input is one channel.
struct ChannelShape {
  int64_t batch = 1, channels = 1, spatial = 1;
};
inline ChannelShape channel_shape(Dims dims) {
  if (dims.rank < 2) return {dims.count(0, dims.rank), 1, 1};
  return {dims[0], dims[1], dims.count(2, dims.rank)};
}

// Channels-last images: calls f(first channel, channels), of at most ChannelColumns::max_channels, for those that tiles [begin, end) own;
// and f(columns, offset of their first element) for each stretch of an image's pixels, until `poll` stops.
template <class F>
void for_each_columns(const ChannelShape& shape, const Tiling& tiling, int64_t begin, int64_t end, F&& f) {
  // Two tiles should not share a cache line, which is 16 channels, but with few channels there must be tiles for all threads.
  const int64_t unit = std::clamp<int64_t>(shape.channels / 32 * 4, 4, 16);
  const auto [first, last] = tiling.range((shape.channels + unit - 1) / unit, begin, end);
  const int64_t channels_end = std::min(last * unit, shape.channels);
  for (int64_t channel = first * unit; channel < channels_end; channel += ChannelColumns::max_channels)
    f(channel, std::min(ChannelColumns::max_channels, channels_end - channel));
}
template <class F>
void for_each_stretch(const ChannelShape& shape, int64_t channels, int64_t max_pixels, CancellationPoll& poll, F&& f) {
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t i = 0; i < shape.spatial; i += max_pixels) {
      const int64_t pixels = std::min(max_pixels, shape.spatial - i);
      if (poll.stops(pixels * channels)) return;
      f(ChannelColumns{pixels, channels, shape.channels}, (b * shape.spatial + i) * shape.channels);
    }
}

inline Status check_channels(InferContext& context, uint32_t first_parameter, uint32_t parameters) {
  const int64_t channels = channel_shape(context.dims(0)).channels;
  const std::string whose = "the channels of " + dims_text(context.dims(0));
  for (uint32_t i = first_parameter; i < first_parameter + parameters; ++i)
    HEDDLE_PLUGIN_CHECK(expect_shape(context, i, {&channels, 1}, whose.c_str()));
  return {};
}

// One value of a parameter.
inline double parameter(const heddle_tensor& tensor, int64_t i) {
  double value = 0;
  convert(tensor.dtype, at(tensor, i), HEDDLE_F64, &value, 1);
  return value;
}

}  // namespace heddle::cpu
