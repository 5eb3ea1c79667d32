// Pooling in both layouts. See pooling_kernel.h.
//
// Sums are taken over groups of 64 taps, and these are added up: long windows lose less, and both layouts do the same.
#include "pooling/pooling_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "pooling/pooling_loops.h"
#include "shared/dense_layouts.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/float_tiles.h"

namespace heddle::cpu {
namespace {

// Reads an attribute that only some operators of the family declare.
int64_t integer_or(const Attributes& attributes, const char* name, int64_t otherwise) {
  return attributes.declares(name) ? attributes.i(name, otherwise) : otherwise;
}

constexpr int64_t group_taps = 64;
constexpr int64_t channels_per_unit = 64;  // when there are few outputs

// The value that every other one exceeds.
template <class T>
T lowest() {
  if constexpr (std::is_same_v<T, f16>)
    return f16::from_bits(0xfc00);
  else if constexpr (std::is_same_v<T, bf16>)
    return bf16::from_bits(0xff80);
  else if constexpr (std::numeric_limits<T>::has_infinity)
    return -std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::lowest();
}

template <class A>
A powered(A x, int64_t power) {
  if constexpr (std::is_floating_point_v<A>) {
    x = std::fabs(x);
    if (power == 1) return x;
    return power == 2 ? x * x : std::pow(x, static_cast<A>(power));
  } else {
    return x;
  }
}

// Adds values in groups, see the top of this file.
template <class A>
struct GroupedSum {
  A total = 0, group = 0;
  int64_t groups = 0, taps = 0;
  void add(A x) {
    group = taps == 0 ? x : group + x;
    if (++taps == group_taps) close();
  }
  void close() {
    if (taps == 0) return;
    total = groups == 0 ? group : total + group;
    ++groups;
    taps = 0;
  }
};

bool has_vector_loops(const PoolRule& rule) {
  return rule.kind != PoolKind::lp || rule.power <= 2;
}
// True for floats of up to 32 bits without indices, and powers that have vector loops.
bool has_channels_last(const heddle_type* x, bool indices, const PoolRule& rule) {
  return x && (x->dtype == HEDDLE_F32 || in_float_tiles(x->dtype)) && x->rank >= 3 && !indices && has_vector_loops(rule);
}
// True if one group of a sum takes all taps.
bool has_few_taps(const Window& window) {
  int64_t taps = 1;
  for (const int64_t extent : window.kernel) taps = extent > group_taps ? group_taps + 1 : std::min(group_taps + 1, taps * extent);
  return taps <= group_taps;
}

// The time of one thread, in nanoseconds, in either layout: fitted to windows of 2 x 2 to 13 x 13 on an AVX-512 machine. Row-major f32 runs
// along lines, where there is no long window; everything else output by output.
struct FormatCosts {
  double row_major, channels_last;
};
FormatCosts costs_of(const CreateContext& context, const heddle_type& x, bool global) {
  const Dims dims{x.dims, x.rank};
  const double elements = static_cast<double>(dims.count(0, dims.rank));
  const FormatCosts by_elements = {3.0 * elements, 0.5 * elements};
  Window window;
  if (x.dtype != HEDDLE_F32 || (x.flags & HEDDLE_TYPE_DYNAMIC) || elements == 0) return by_elements;
  const WindowAttributes attributes(context.attributes);
  const int axis = x.rank - 3;
  if (!resolve_pool(attributes, global, dims, &window).ok() || !has_few_taps(window)) return by_elements;
  if (covers_planes(window)) return {0.5 * elements, 0.5 * elements};  // side by side
  if (window.stride[axis] > 2) return by_elements;
  constexpr double width = pool_lanes;
  const auto taps = static_cast<double>(window.kernel_count()), rows = taps / static_cast<double>(window.kernel[axis]);
  const double pixels = static_cast<double>(dims[0] * window.output_count()), channels = static_cast<double>(dims[1]);
  const auto columns = static_cast<double>(window.output[axis]);
  return {pixels / columns * channels * (70 + 8 * rows + 1.2 * taps * std::ceil(columns / width)),
          0.15 * elements + pixels * std::ceil(channels / width) * (10 + 0.5 * taps)};
}

}  // namespace

Status resolve_pool(const WindowAttributes& attributes, bool global, Dims x, Window* window) {
  if (!global) return resolve_window(attributes, x, attributes.kernel_shape, window);
  WindowAttributes whole;
  if (x.rank < 3 || x.rank > max_spatial + 2)
    return invalid("X is " + dims_text(x) + ", expected rank 3 to 5: batch, channels, 1 to 3 spatial dimensions");
  whole.kernel_shape.assign(x.begin() + 2, x.end());
  return resolve_window(whole, x, whole.kernel_shape, window);
}

bool covers_planes(const Window& window) {
  for (int axis = 0; axis < window.spatial; ++axis)
    if (window.output[axis] != 1 || window.kernel[axis] != window.input[axis] || window.dilation[axis] != 1 || window.pad_begin[axis] != 0)
      return false;
  return true;
}

Status PoolDriver::create(const CreateContext& context) {
  attributes_ = WindowAttributes(context.attributes);
  rule_.count_include_pad = integer_or(context.attributes, "count_include_pad", 0) != 0;
  rule_.power = integer_or(context.attributes, "p", 2);
  rule_.column_major_indices = integer_or(context.attributes, "storage_order", 0) != 0;
  return {};
}

Status PoolDriver::prepare(PrepareContext& context) {
  const heddle_tensor& x = *context.input(0);
  const heddle_tensor& y = *context.output(0);
  HEDDLE_PLUGIN_CHECK(resolve_pool(attributes_, global_, dims_of(x), &window_));
  channels_ = x.dims[1];
  channels_last_ = x.layout.rank != 0;
  dtype_ = static_cast<heddle_dtype>(x.dtype);
  if (channels_last_ != (y.layout.rank != 0)) return unsupported("pooling wants input and output in one layout");
  if (y.element_count == 0) {  // the other extents of an empty output may be anything
    context.set_tiles(0);
    return {};
  }
  in_lines_ = !channels_last_ && (dtype_ == HEDDLE_F32 || dtype_ == HEDDLE_F64) && !context.output(1) && has_vector_loops(rule_) &&
              has_few_taps(window_) && plan_lines();
  const int64_t pixels = x.dims[0] * window_.output_count();
  channel_block_ = pixels < max_tiles ? std::min(channels_, channels_per_unit) : channels_;
  // One row of sums, in f32 until they are rounded.
  context.set_scratch(0, channels_last_ && in_float_tiles(dtype_) ? static_cast<uint64_t>(channel_block_) * sizeof(float)
                         : in_lines_                              ? line_scratch_bytes()
                                                                  : 0);
  double touched = static_cast<double>(y.element_count);
  for (const int64_t extent : window_.kernel) touched *= static_cast<double>(extent);
  touched = std::max(touched, static_cast<double>(x.element_count));
  tiling_.plan(context, touched * static_cast<double>(byte_width(x.dtype)), channels_last_ ? 1.0 : 4.0, 2.0 * touched);
  return {};
}

// Pools the channels of one output; `image` is the first input pixel.
void PoolDriver::pool_channels(const PoolWindow& window, const char* image, int64_t channels, float* y, CancellationPoll& poll) const {
  const PoolTable& loops = isa_pooling();
  const PoolCombine& of_dtype = dtype_ == HEDDLE_F16 ? loops.f16 : dtype_ == HEDDLE_BF16 ? loops.bf16 : loops.f32;
  auto* combine = rule_.kind == PoolKind::max       ? of_dtype.max
                  : rule_.kind == PoolKind::average ? of_dtype.sum
                  : rule_.power == 1                ? of_dtype.sum_absolute
                                                    : of_dtype.sum_squares;
  const int64_t apart = channels_ * static_cast<int64_t>(byte_width(dtype_));
  const void* sources[group_taps];
  PoolRows rows = {sources, 0, channels, y, true};
  window.for_each_tap(poll, channels, [&](int64_t input_pixel) {
    sources[rows.count++] = image + input_pixel * apart;
    if (rows.count < group_taps) return;
    combine(rows);
    rows.count = 0;
    rows.first = false;
  });
  if (rows.count > 0) combine(rows);
  if (rows.first && rows.count == 0) std::fill_n(y, channels, rule_.kind == PoolKind::max ? lowest<float>() : 0.0f);
  const double divisor = window.divisor(rule_.count_include_pad);
  if (rule_.kind == PoolKind::average && divisor > 1) loops.lines.divide(y, channels, static_cast<float>(divisor));
  if (rule_.kind == PoolKind::lp && rule_.power == 2) loops.lines.square_root(y, channels);
}

// Units are output pixels of all images, each in blocks of channels.
void PoolDriver::run_channels_last(const RunContext& context, int64_t first, int64_t last, CancellationPoll& poll) const {
  const auto* x = static_cast<const char*>(context.inputs[0]->data);
  void* const y = context.outputs[0]->data;
  auto* sums = in_float_tiles(dtype_) ? thread_scratch<float>(context) : nullptr;
  const auto width = static_cast<int64_t>(byte_width(dtype_));
  const int64_t blocks = (channels_ + channel_block_ - 1) / channel_block_;
  const int64_t output_pixels = window_.output_count(), image_bytes = window_.input_count() * channels_ * width;
  PoolWindow window(window_);
  int64_t pixel = first / blocks, channel = first % blocks * channel_block_;
  const char* image = x + pixel / output_pixels * image_bytes;
  int64_t left = output_pixels - pixel % output_pixels;  // in the image
  window.move_to(pixel % output_pixels);
  for (int64_t unit = first; unit < last && !poll.stopped(); ++unit) {
    const int64_t channels = std::min(channel_block_, channels_ - channel);
    const int64_t at = pixel * channels_ + channel;
    pool_channels(window, image + channel * width, channels, sums ? sums : static_cast<float*>(y) + at, poll);
    if (sums) store_floats(sums, dtype_, y, {at, 1, channels, channels});
    channel += channels;
    if (channel < channels_) continue;
    channel = 0;
    ++pixel;
    window.move_to_next();
    if (--left > 0) continue;
    left = output_pixels;
    image += image_bytes;
  }
}

template <class T>
T PoolDriver::pool_one(const T* plane, const PoolWindow& window, int64_t* best, CancellationPoll& poll) const {
  using A = Arithmetic<T>;
  if (rule_.kind == PoolKind::max) {
    A highest = to_arithmetic(lowest<T>());
    *best = -1;
    window.for_each_tap(poll, 2, [&](int64_t pixel) {
      const A value = to_arithmetic(plane[pixel]);
      if (*best >= 0 && !(value > highest || value != value)) return;
      highest = value;
      *best = pixel;
    });
    return from_arithmetic<T>(highest);
  }
  GroupedSum<A> sum;
  const bool average = rule_.kind == PoolKind::average;
  window.for_each_tap(poll, 2, [&](int64_t pixel) {
    const A value = to_arithmetic(plane[pixel]);
    sum.add(average ? value : powered(value, rule_.power));
  });
  sum.close();
  A result = sum.total;
  if (average) {
    const double divisor = window.divisor(rule_.count_include_pad);
    if (divisor > 1) result /= static_cast<A>(divisor);
  } else if constexpr (std::is_floating_point_v<A>) {
    if (rule_.power == 2)
      result = std::sqrt(result);
    else if (rule_.power != 1)
      result = std::pow(result, A(1) / static_cast<A>(rule_.power));
  }
  return from_arithmetic<T>(result);
}

// The position within a plane as ONNX's Indices count it.
int64_t PoolDriver::storage_index(int64_t pixel) const {
  if (!rule_.column_major_indices) return pixel;
  int64_t index = 0, stride = window_.input_count();
  for (int axis = window_.spatial - 1; axis >= 0; --axis) {
    stride /= window_.input[axis];
    index += pixel % window_.input[axis] * stride;
    pixel /= window_.input[axis];
  }
  return index;
}

// Units are outputs, row-major.
template <class T>
void PoolDriver::run_row_major(const RunContext& context, int64_t first, int64_t last, CancellationPoll& poll) const {
  const T* x = input<T>(context, 0).data;
  T* y = output<T>(context, 0).data;
  int64_t* indices = output<int64_t>(context, 1).data;
  const int64_t output_pixels = window_.output_count(), input_pixels = window_.input_count();
  PoolWindow window(window_);
  window.move_to(first % output_pixels);
  int64_t plane = first / output_pixels, left = output_pixels - first % output_pixels;
  for (int64_t i = first; i < last && !poll.stopped(); ++i) {
    int64_t best = -1;
    y[i] = pool_one(x + plane * input_pixels, window, &best, poll);
    if (indices) indices[i] = best < 0 ? -1 : plane * input_pixels + storage_index(best);
    window.move_to_next();
    if (--left > 0) continue;
    left = output_pixels;
    ++plane;
  }
}

Status PoolDriver::run(const RunContext& context, int64_t begin, int64_t end) const {
  const heddle_tensor& y = *context.outputs[0];
  CancellationPoll poll(context);
  if (channels_last_) {
    const int64_t blocks = (channels_ + channel_block_ - 1) / channel_block_;
    const Tiling::Range units = tiling_.range(y.element_count / channels_ * blocks, begin, end);
    run_channels_last(context, units.first, units.last, poll);
    return poll.status();
  }
  if (in_lines_) {
    const Tiling::Range lines = tiling_.range(y.element_count / window_.output[window_.spatial - 1], begin, end);
    if (dtype_ == HEDDLE_F32)
      run_lines<float>(context, lines.first, lines.last, poll);
    else
      run_lines<double>(context, lines.first, lines.last, poll);
    return poll.status();
  }
  const Tiling::Range outputs = tiling_.range(y.element_count, begin, end);
  with_dtype(y.dtype, [&](auto tag) { run_row_major<typename decltype(tag)::type>(context, outputs.first, outputs.last, poll); });
  return poll.status();
}

std::vector<heddle_format> PoolDriver::list_formats(const CreateContext& context, bool global) {
  PoolRule rule;
  rule.kind = context.attributes.declares("p") ? PoolKind::lp : PoolKind::max;
  rule.power = integer_or(context.attributes, "p", 2);
  heddle_format row_major = {};
  row_major.struct_size = sizeof(row_major);
  const heddle_type* x = context.input(0);
  if (!has_channels_last(x, context.output(1) != nullptr, rule)) return {row_major};
  const FormatCosts costs = costs_of(context, *x, global);
  heddle_format last = row_major;
  last.inputs[0] = last.outputs[0] = channels_last(x->rank);
  last.cost_ns = 100.0 + costs.channels_last;
  row_major.cost_ns = 100.0 + costs.row_major;
  return {last, row_major};
}

}  // namespace heddle::cpu
