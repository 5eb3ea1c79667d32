// The gradients of normalisations with one scale and bias per channel: BatchNormalization, InstanceNormalization, GroupNormalization.
//
// Tiles are ranges of channels, or of groups of channels; each channel is summed by one of them, so the result does not depend on the
// number of threads.
#include <algorithm>
#include <limits>

#include "families.h"
#include "normalization/normalization_columns.h"
#include "normalization/normalization_gradient_work.h"
#include "normalization/normalization_shapes.h"
#include "normalization/normalization_work.h"
#include "shared/dense_layouts.h"
#include "shared/input_shapes.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cost.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

constexpr int64_t gradient_chunk = 1024;

void store_number(const RunContext& context, uint32_t output, int64_t i, double value) {
  if (output < context.output_count && context.outputs[output])
    convert(HEDDLE_F64, &value, context.outputs[output]->dtype, at(*context.outputs[output], i), 1);
}
double number_or_zero(const RunContext& context, uint32_t input, int64_t i) {
  return input < context.input_count && context.inputs[input] ? parameter(*context.inputs[input], i) : 0;
}

// ---------------------------------------------------------------- batch normalisation

class BatchNormalizationGradient {
 public:
  Status create(const CreateContext& context) {
    epsilon_ = context.attributes.f("epsilon");
    training_ = context.attributes.i("training_mode") != 0;
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(1);
    shape_ = channel_shape(dims_of(x));
    tiling_.plan(context, static_cast<int64_t>(3 * x.byte_size), 2);
    const auto channels = static_cast<uint64_t>(shape_.channels), width = static_cast<uint64_t>(byte_width(working_dtype(x.dtype)));
    const uint64_t by_pixels = channels * (sizeof(Channel) + 2 * width), by_rows = 2 * gradient_chunk * width;
    context.set_scratch(0, (shape_.spatial == 1 ? by_pixels : by_rows) + 64);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    CancellationPoll poll(context);
    if (context.inputs[1]->layout.rank != 0 && shape_.spatial > 1) {
      by_columns(context, begin, end, poll);
      return poll.status();
    }
    const auto [first, last] = tiling_.range(shape_.channels, begin, end);
    with_working(working_dtype(context.inputs[1]->dtype), [&, first = first, last = last](auto zero) {
      using T = decltype(zero);
      if (shape_.spatial == 1)
        by_pixels<T>(context, first, last, poll);
      else
        for (int64_t c = first; c < last && !poll.stopped(); ++c) by_rows<T>(context, c, poll);
    });
    return poll.status();
  }
  static std::vector<heddle_format> formats(const CreateContext& context) {
    return context.input(1)->dtype == HEDDLE_F32 ? uniform_formats(context, 2, 1) : std::vector<heddle_format>();
  }

 private:
  // The sums and numbers of a channel. x is centred as (x - shift) - rest.
  struct Channel {
    double shift = 0, rest = 0, squares = 0;             // of the statistics
    double sum = 0, products = 0;                        // of dy, and of dy * (x - shift)
    double factor = 0, mean = 0, slope = 0, offset = 0;  // dx = (dy - mean) * factor + (x - shift) * slope + offset
  };
  void give_statistics(const RunContext& context, int64_t c, double shift, Channel* channel) const {
    channel->shift = shift;
    channel->rest = parameter(*context.inputs[3], c) - shift;
  }
  // Computes the gradients from the sums.
  void end_channel(const RunContext& context, int64_t c, Channel* channel) const {
    const auto count = static_cast<double>(shape_.batch * shape_.spatial);
    if (training_) channel->rest = count > 0 ? channel->rest / count : 0;
    const double rest = channel->rest;
    const double here = count > 0 ? std::max(channel->squares / count - rest * rest, 0.0) : 0;
    const double variance = training_ ? here : parameter(*context.inputs[4], c), inverse = 1 / std::sqrt(variance + epsilon_);
    const double products = channel->products - rest * channel->sum;
    store_number(context, 1, c, products * inverse);
    store_number(context, 2, c, channel->sum);
    channel->factor = parameter(*context.inputs[2], c) * inverse;
    if (!training_ || count == 0) return;
    channel->slope = (2 * number_or_zero(context, 6, c) - channel->factor * inverse * inverse * products) / count;
    channel->mean = channel->sum / count;
    channel->offset = number_or_zero(context, 5, c) / count - channel->slope * rest;
  }

  // Stretches of one channel. There are three passes over it, of which the last two mostly find it in the cache.
  template <class T>
  void by_rows(const RunContext& context, int64_t c, CancellationPoll& poll) const {
    T *of_x = thread_scratch<T>(context), *of_dy = of_x + gradient_chunk;
    // f(x, dy, start, n)
    const auto each = [&](auto&& f) {
      for (int64_t b = 0; b < shape_.batch; ++b)
        for (int64_t i = 0; i < shape_.spatial; i += gradient_chunk) {
          const int64_t n = std::min(gradient_chunk, shape_.spatial - i), start = (b * shape_.channels + c) * shape_.spatial + i;
          if (poll.stops(2 * n)) return;
          f(as_working(*context.inputs[1], start, n, of_x), as_working(*context.inputs[0], start, n, of_dy), start, n);
        }
    };
    Channel channel;
    if (training_) {
      double sum = 0;
      each([&](const T* x, const T*, int64_t, int64_t n) { sum += row_sum(x, n); });
      channel.shift = static_cast<double>(static_cast<T>(sum / static_cast<double>(shape_.batch * shape_.spatial)));
    } else {
      give_statistics(context, c, static_cast<double>(static_cast<T>(parameter(*context.inputs[3], c))), &channel);
    }
    const T shift = static_cast<T>(channel.shift);
    each([&](const T* x, const T* dy, int64_t, int64_t n) {
      double sum = 0, products = 0, rest = 0, squares = 0;
      gradient_sums(x, dy, nullptr, n, shift, &sum, &products);
      channel.sum += sum, channel.products += products;
      if (!training_) return;
      row_centred(x, n, shift, &rest, &squares);
      channel.rest += rest, channel.squares += squares;
    });
    end_channel(context, c, &channel);
    each([&](const T* x, const T* dy, int64_t start, int64_t n) {
      T* dx = target(*context.outputs[0], start, of_dy);
      if (training_)
        gradient_apply(x, dy, nullptr, dx, n, gradient_numbers(shift, 1, channel.mean, channel.factor, channel.slope, channel.offset));
      else
        row_affine(dy, dx, n, 0, static_cast<T>(channel.factor), 0);
      store_working(*context.outputs[0], start, n, dx);
    });
  }

  // The same for channels-last f32, with the same bits.
  void by_columns(const RunContext& context, int64_t begin, int64_t end, CancellationPoll& poll) const {
    constexpr int64_t most = ChannelColumns::max_channels;
    const NormalizationColumnTable& loops = isa_normalization_columns();
    const auto count = static_cast<double>(shape_.batch * shape_.spatial);
    for_each_columns(shape_, tiling_, begin, end, [&](int64_t first, int64_t n) {
      const float* dy = static_cast<const float*>(context.inputs[0]->data) + first;
      const float* x = static_cast<const float*>(context.inputs[1]->data) + first;
      float* dx = static_cast<float*>(context.outputs[0]->data) + first;
      const auto each = [&](auto&& f) { for_each_stretch(shape_, n, gradient_chunk, poll, f); };
      Channel channels[most];
      double rests[most] = {}, squares[most] = {}, sums[most] = {}, products[most] = {};
      float shift[most], level[most], factor[most], slope[most], offset[most];
      if (training_) each([&](const ChannelColumns& columns, int64_t at) { loops.add_sums(columns, x + at, rests); });
      for (int64_t i = 0; i < n; ++i) {
        if (training_)
          channels[i].shift = static_cast<double>(static_cast<float>(rests[i] / count));
        else
          give_statistics(context, first + i, static_cast<double>(static_cast<float>(parameter(*context.inputs[3], first + i))),
                          channels + i);
        shift[i] = static_cast<float>(channels[i].shift);
        rests[i] = 0;
      }
      each([&](const ChannelColumns& columns, int64_t at) {
        loops.add_gradient_sums(columns, x + at, dy + at, shift, sums, products);
        if (training_) loops.add_centred_sums(columns, x + at, shift, rests, squares);
      });
      if (poll.stopped()) return;
      for (int64_t i = 0; i < n; ++i) {
        Channel& channel = channels[i];
        channel.sum = sums[i], channel.products = products[i];
        if (training_) channel.rest = rests[i], channel.squares = squares[i];
        end_channel(context, first + i, &channel);
        const GradientNumbers<float> numbers =
            training_ ? gradient_numbers(shift[i], 1, channel.mean, channel.factor, channel.slope, channel.offset)
                      : GradientNumbers<float>{0, 1, 0, static_cast<float>(channel.factor), 0, 0};
        shift[i] = numbers.shift, level[i] = numbers.level, factor[i] = numbers.factor, slope[i] = numbers.slope,
        offset[i] = numbers.offset;
      }
      each([&](const ChannelColumns& columns, int64_t at) {
        if (training_)
          loops.apply_gradient(columns, x + at, dy + at, dx + at, {shift, level, factor, slope, offset});
        else
          loops.affine(columns, dy + at, dx + at, {shift, nullptr, factor, nullptr, offset});
      });
    });
  }

  // Sums channels [first, last), one pixel after the other.
  template <class T>
  void by_pixels(const RunContext& context, int64_t first, int64_t last, CancellationPoll& poll) const {
    Channel* channels = thread_scratch<Channel>(context);
    const int64_t count = last - first;
    T *of_x = reinterpret_cast<T*>(channels + shape_.channels), *of_dy = of_x + shape_.channels;
    const auto each = [&](auto&& f) {
      for (int64_t b = 0; b < shape_.batch && !poll.stops(4 * count); ++b) {
        const int64_t start = b * shape_.channels + first;
        f(as_working(*context.inputs[1], start, count, of_x), as_working(*context.inputs[0], start, count, of_dy), start);
      }
    };
    std::fill_n(channels, count, Channel());
    if (training_) {
      each([&](const T* x, const T*, int64_t) {
        for (int64_t i = 0; i < count; ++i) channels[i].shift += static_cast<double>(x[i]);
      });
      for (int64_t i = 0; i < count; ++i) channels[i].shift /= static_cast<double>(shape_.batch);
    } else {
      for (int64_t i = 0; i < count; ++i) give_statistics(context, first + i, parameter(*context.inputs[3], first + i), channels + i);
    }
    each([&](const T* x, const T* dy, int64_t) {
      for (int64_t i = 0; i < count; ++i) {
        Channel& c = channels[i];
        const double d = static_cast<double>(x[i]) - c.shift, g = static_cast<double>(dy[i]);
        c.sum += g;
        c.products += g * d;
        if (!training_) continue;
        c.rest += d;
        c.squares += d * d;
      }
    });
    for (int64_t i = 0; i < count; ++i) end_channel(context, first + i, channels + i);
    each([&](const T* x, const T* dy, int64_t start) {
      T* dx = target(*context.outputs[0], start, of_dy);
      for (int64_t i = 0; i < count; ++i) {
        const Channel& c = channels[i];
        const double of_batch = training_ ? (static_cast<double>(x[i]) - c.shift) * c.slope + c.offset : 0;
        dx[i] = static_cast<T>((static_cast<double>(dy[i]) - c.mean) * c.factor + of_batch);
      }
      store_working(*context.outputs[0], start, count, dx);
    });
  }

  double epsilon_ = 0;
  bool training_ = false;
  ChannelShape shape_;
  Tiling tiling_;
};

// Errors: inputs from `first` on do not have one element for each channel.
Status check_of_channels(const InferContext& context, uint32_t first) {
  const Dims x = context.dims(1);
  HEDDLE_PLUGIN_CHECK(expect_shape(context, 0, x, "that of X"));
  const int64_t channels = channel_shape(x).channels;
  const std::string whose = "the channels of " + dims_text(x);
  for (uint32_t i = first; i < context.input_count(); ++i) HEDDLE_PLUGIN_CHECK(expect_shape(context, i, {&channels, 1}, whose.c_str()));
  return {};
}

Status infer_batch_normalization_gradient(InferContext& context) {
  HEDDLE_PLUGIN_CHECK(check_of_channels(context, 2));
  const bool training = context.attributes.i("training_mode") != 0;
  if (!training && !(context.has_input(3) && context.has_input(4)))
    return invalid("mean and var are absent, and training_mode is 0: there are no other statistics");
  if (!training && (context.has_input(5) || context.has_input(6)))
    return invalid("dmean and dvar are gradients of the statistics of a batch, which go with training_mode 1");
  context.set_dims(0, context.dims(1));
  context.set_dims(1, context.dims(2));
  context.set_dims(2, context.dims(2));
  return {};
}

// ---------------------------------------------------------------- instance and group normalisation

// Tiles are ranges of groups. The gradients of scale and bias from each channel of each image are added at the end, image by image.
class GroupNormalizationGradient {
 public:
  Status create(const CreateContext& context) {
    epsilon_ = context.attributes.f("epsilon");
    groups_ = context.attributes.i("num_groups");
    return read_stash_type(context.attributes, float_dtypes, &stash_);
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(1);
    shape_ = channel_shape(dims_of(x));
    if (groups_ == 0) groups_ = shape_.channels;
    elements_ = groups_ > 0 ? shape_.channels / groups_ * shape_.spatial : 0;
    tiling_.plan(context, static_cast<int64_t>(2 * x.byte_size), 2);
    const heddle_dtype working = working_dtype(x.dtype, stash_);
    context.set_scratch(static_cast<uint64_t>(shape_.batch * shape_.channels) * sizeof(Parameters),
                        (working == x.dtype ? 0 : static_cast<uint64_t>(2 * elements_) * byte_width(working)) + 64);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    if (context.outputs[0]->element_count == 0) return {};
    CancellationPoll poll(context);
    with_working(working_dtype(context.inputs[1]->dtype, stash_), [&](auto zero) { run_as<decltype(zero)>(context, begin, end, poll); });
    return poll.status();
  }
  Status finish(const RunContext& context) const {
    const Parameters* parts = step_scratch<Parameters>(context);
    const bool nothing = context.outputs[0]->element_count == 0;
    CancellationPoll poll(context);
    for (int64_t c = 0; c < shape_.channels; ++c) {
      Parameters sum;
      for (int64_t b = 0; b < shape_.batch && !nothing && !poll.stops(2); ++b) {
        sum.scale += parts[b * shape_.channels + c].scale;
        sum.bias += parts[b * shape_.channels + c].bias;
      }
      store_number(context, 1, c, sum.scale);
      store_number(context, 2, c, sum.bias);
    }
    return poll.status();
  }

 private:
  struct Parameters {
    double scale = 0, bias = 0;
  };

  template <class T>
  void run_as(const RunContext& context, int64_t begin, int64_t end, CancellationPoll& poll) const {
    const heddle_tensor &of_dy = *context.inputs[0], &of_x = *context.inputs[1], &scale = *context.inputs[2];
    const int64_t channels = shape_.channels / groups_, spatial = shape_.spatial;
    const auto count = static_cast<double>(elements_);
    T* of_x_here = thread_scratch<T>(context);  // used for other dtypes
    T* of_dy_here = of_x_here + (of_x.dtype == dtype_of<T>::id ? 0 : elements_);
    const auto [first, last] = tiling_.range(shape_.batch * groups_, begin, end);
    for (int64_t g = first; g < last && !poll.stops(4 * elements_); ++g) {
      const T* x = as_working(of_x, g * elements_, elements_, of_x_here);
      const T* dy = as_working(of_dy, g * elements_, elements_, of_dy_here);
      T* dx = target(*context.outputs[0], g * elements_, of_dy_here);
      const Moments<T> m = row_moments(x, elements_);
      const double inverse = 1 / std::sqrt(m.variance + epsilon_);
      Parameters* parts = step_scratch<Parameters>(context) + g * channels;
      double sum = 0, products = 0;
      for (int64_t k = 0; k < channels && !poll.stops(2 * spatial); ++k) {
        double s = 0, p = 0;
        gradient_sums(x + k * spatial, dy + k * spatial, nullptr, spatial, m.shift, &s, &p);
        p -= m.rest * s;
        parts[k] = {p * inverse, s};
        const double by = parameter(scale, g % groups_ * channels + k);
        sum += by * s;
        products += by * p;
      }
      const double slope = -inverse * inverse * inverse * products / count, offset = -slope * m.rest;
      for (int64_t k = 0; k < channels && !poll.stops(spatial); ++k)
        gradient_apply(x + k * spatial, dy + k * spatial, nullptr, dx + k * spatial, spatial,
                       gradient_numbers(m.shift, parameter(scale, g % groups_ * channels + k), sum / count, inverse, slope, offset));
      store_working(*context.outputs[0], g * elements_, elements_, dx);
    }
  }

  double epsilon_ = 0;
  int64_t groups_ = 0, elements_ = 0;
  heddle_dtype stash_ = HEDDLE_F32;
  ChannelShape shape_;
  Tiling tiling_;
};

Status infer_group_normalization_gradient(InferContext& context) {
  const Dims x = context.dims(1);
  if (x.rank < 2) return invalid("X has shape " + dims_text(x) + ", expected at least 2 dimensions");
  HEDDLE_PLUGIN_CHECK(check_of_channels(context, 2));
  const int64_t groups = context.attributes.i("num_groups");
  if (groups < 0 || (groups > 0 && x[1] % groups != 0))
    return invalid("num_groups is " + std::to_string(groups) + ", which does not divide " + std::to_string(x[1]) + " channels");
  context.set_dims(0, x);
  context.set_dims(1, context.dims(2));
  context.set_dims(2, context.dims(2));
  return {};
}

}  // namespace

void add_normalization_channel_gradient(Builder& plugin) {
  plugin.add(
      Op("BatchNormalizationGradient", "heddle")
          .doc("Computes the gradients of BatchNormalization's X, scale and B, with the statistics given or, with training_mode 1, the "
               "batch's own. dmean and dvar are what reaches these besides.")
          .shapes("dX has the dims of X, dscale and dB have those of scale")
          .in("dY", float_dtypes)
          .in("X", float_dtypes)
          .in("scale", float_dtypes, "T1")
          .optional("mean", float_dtypes, "T2")
          .optional("var", float_dtypes, "T2")
          .optional("dmean", float_dtypes, "T3")
          .optional("dvar", float_dtypes, "T3")
          .out("dX", {}, float_dtypes)
          .optional_out("dscale", {}, float_dtypes, "T1")
          .optional_out("dB", {}, float_dtypes, "T1")
          .attribute("epsilon", 1e-5)
          .attribute("training_mode", 0)
          .in_place("dX", "dY")
          .precision(HEDDLE_PRECISION_FULL)
          .infer(infer_batch_normalization_gradient)
          .cost<per_input_element<12>>()
          .cpu<BatchNormalizationGradient>()
          .example("f32[2,1,2] = 1 0 2 1, f32[2,1,2] = 1 3 2 5, f32[1] = 2, f32[1] = 1, f32[1] = 3; epsilon=1 -> f32[2,1,2] = 1 0 2 1, "
                   "f32[1] = 3, f32[1] = 4",
                   "by hand")
          .example("f32[4,1] = 1 0 0 0, f32[4,1] = -1 1 3 1, f32[1] = 4, -, -, f32[1] = 4, f32[1] = 2; epsilon=2, training_mode=1 -> "
                   "f32[4,1] = 0 0.5 3 0.5, f32[1] = -1, f32[1] = 1",
                   "by hand"));
  plugin.add(
      Op("GroupNormalizationGradient", "heddle")
          .doc("Computes the gradients of X, scale and bias of GroupNormalization and, with num_groups 0, of InstanceNormalization.")
          .shapes("dX has the dims of X, dscale and dbias have those of scale")
          .in("dY", float_dtypes)
          .in("X", float_dtypes)
          .in("scale", float_dtypes)
          .out("dX", {}, float_dtypes)
          .optional_out("dscale", {}, float_dtypes)
          .optional_out("dbias", {}, float_dtypes)
          .attribute("epsilon", 1e-5)
          .attribute("num_groups", 0)
          .attribute("stash_type", 1)
          .in_place("dX", "dY")
          .precision(HEDDLE_PRECISION_FULL)
          .infer(infer_group_normalization_gradient)
          .cost<per_input_element<16>>()
          .cpu<GroupNormalizationGradient>()
          .example("f32[1,2,2] = 1 0 0 2, f32[1,2,2] = -1 1 3 1, f32[2] = 1 2; num_groups=1, epsilon=2 -> f32[1,2,2] = -0.25 -0.625 -0.5 "
                   "1.375, f32[2] = -1 0, f32[2] = 1 2",
                   "by hand")
          .example("f32[1,2,2] = 1 0 0 2, f32[1,2,2] = -1 1 3 1, f32[2] = 1 2; epsilon=3, stash_type=11 -> f32[1,2,2] = 0.1875 -0.1875 "
                   "-0.75 0.75, f32[2] = -0.5 -1, f32[2] = 1 2",
                   "by hand"));
}

}  // namespace heddle::cpu
