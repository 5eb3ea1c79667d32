// Normalisation with one scale and bias per channel: BatchNormalization, InstanceNormalization, GroupNormalization.
#include <algorithm>

#include "families.h"
#include "normalization/normalization_columns.h"
#include "normalization/normalization_shapes.h"
#include "normalization/normalization_work.h"
#include "shared/dense_layouts.h"
#include "shared/dims.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cost.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

// ---------------------------------------------------------------- batch normalisation

// y = (x - shift[c]) * factor[c] + offset[c]: row-major images by rows of one channel, channels-last ones by pixels. The shift is the mean,
// as exactly as the type holds it: x - mean has no error where x is near the mean, which may be many deviations away from 0.
class BatchNormalization {
 public:
  Status create(const CreateContext& context) {
    epsilon_ = context.attributes.f("epsilon");
    training_ = context.attributes.i("training_mode") != 0;
    momentum_ = context.attributes.f("momentum");
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(0);
    tiling_.plan(context, static_cast<int64_t>(2 * x.byte_size));
    const uint64_t channels = static_cast<uint64_t>(channel_shape(dims_of(x)).channels);
    context.set_scratch(0, (3 * channels + std::max<uint64_t>(channels, chunk)) * byte_width(working_dtype(x.dtype)) + 64);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    if (writes_nothing(context) && !training_) return {};
    CancellationPoll poll(context);
    with_working(working_dtype(context.inputs[0]->dtype), [&](auto zero) {
      using T = decltype(zero);
      if (training_ && context.inputs[0]->layout.rank != 0)
        train_columns(context, begin, end, poll);
      else
        training_ ? train_as<T>(context, begin, end, poll) : run_as<T>(context, begin, end, poll);
    });
    return poll.status();
  }
  static std::vector<heddle_format> formats(const CreateContext& context) {
    const bool row_major = context.attributes.i("training_mode") != 0 && context.input(0)->dtype != HEDDLE_F32;
    return row_major ? std::vector<heddle_format>() : uniform_formats(context, 1, 1);
  }

 private:
  static constexpr int64_t chunk = 1024;

  template <class T>
  void run_as(const RunContext& context, int64_t begin, int64_t end, CancellationPoll& poll) const {
    const heddle_tensor& x = *context.inputs[0];
    const ChannelShape shape = channel_shape(dims_of(x));
    T* shifts = thread_scratch<T>(context);
    T *factors = shifts + shape.channels, *offsets = factors + shape.channels, *row = offsets + shape.channels;
    for (int64_t c = 0; c < shape.channels; ++c) {
      const double factor = parameter(*context.inputs[1], c) / std::sqrt(parameter(*context.inputs[4], c) + epsilon_);
      const double mean = parameter(*context.inputs[3], c);
      shifts[c] = static_cast<T>(mean);
      factors[c] = static_cast<T>(factor);
      const double rest = mean - static_cast<double>(shifts[c]);  // NaN where the mean is infinite
      offsets[c] = static_cast<T>(parameter(*context.inputs[2], c) - (std::fabs(rest) > 0 ? rest * factor : 0));
    }
    heddle_tensor& y = *context.outputs[0];
    const auto store_each = [&](int64_t start, int64_t n, auto&& compute) {
      const T* from = as_working(x, start, n, row);
      T* to = target(y, start, row);
      compute(from, to);
      store_working(y, start, n, to);
    };
    if (x.layout.rank != 0 || shape.spatial == 1) {  // channels are the innermost dimension
      const auto [first, last] = tiling_.range(shape.batch * shape.spatial, begin, end);
      for (int64_t pixel = first; pixel < last; ++pixel)
        store_each(pixel * shape.channels, shape.channels,
                   [&](const T* from, T* to) { row_affine_each(from, to, shape.channels, shifts, factors, offsets); });
      return;
    }
    const auto [first, last] = tiling_.range(shape.batch * shape.channels, begin, end);
    for (int64_t r = first; r < last; ++r) {
      const int64_t c = r % shape.channels;
      for (int64_t i = 0; i < shape.spatial && !poll.stops(chunk); i += chunk) {
        const int64_t n = std::min(chunk, shape.spatial - i);
        store_each(r * shape.spatial + i, n, [&](const T* from, T* to) { row_affine(from, to, n, shifts[c], factors[c], offsets[c]); });
      }
    }
  }

  // Channel by channel, with the mean and variance of the channel in this batch; running statistics are updated from these by momentum.
  template <class T>
  void train_as(const RunContext& context, int64_t begin, int64_t end, CancellationPoll& poll) const {
    const heddle_tensor& x = *context.inputs[0];
    heddle_tensor& y = *context.outputs[0];
    const ChannelShape shape = channel_shape(dims_of(x));
    T* row = thread_scratch<T>(context);
    const auto [first, last] = tiling_.range(shape.channels, begin, end);
    for (int64_t c = first; c < last && !poll.stopped(); ++c) {
      // f(start, n) for each stretch of the channel.
      const auto each = [&](auto&& f) {
        for (int64_t b = 0; b < shape.batch; ++b)
          for (int64_t i = 0; i < shape.spatial; i += chunk) {
            const int64_t n = std::min(chunk, shape.spatial - i);
            if (poll.stops(n)) return;
            f((b * shape.channels + c) * shape.spatial + i, n);
          }
      };
      double sum = 0, squares = 0;
      each([&](int64_t start, int64_t n) { sum += row_sum(as_working(x, start, n, row), n); });
      const auto count = static_cast<double>(shape.batch * shape.spatial);
      const T shift = static_cast<T>(sum / count);
      sum = 0;
      each([&](int64_t start, int64_t n) {
        double s = 0, q = 0;
        row_centred(as_working(x, start, n, row), n, shift, &s, &q);
        sum += s, squares += q;
      });
      const Scaled<T> numbers = end_channel(context, c, count, shift, sum, squares);
      each([&](int64_t start, int64_t n) {
        const T* from = as_working(x, start, n, row);
        T* to = target(y, start, row);
        row_affine(from, to, n, shift, numbers.factor, numbers.offset);
        store_working(y, start, n, to);
      });
    }
  }
  // The same for channels-last f32, with the same bits.
  void train_columns(const RunContext& context, int64_t begin, int64_t end, CancellationPoll& poll) const {
    constexpr int64_t most = ChannelColumns::max_channels;
    const NormalizationColumnTable& loops = isa_normalization_columns();
    const ChannelShape shape = channel_shape(dims_of(*context.inputs[0]));
    const auto count = static_cast<double>(shape.batch * shape.spatial);
    for_each_columns(shape, tiling_, begin, end, [&](int64_t channel, int64_t channels) {
      const float* x = static_cast<const float*>(context.inputs[0]->data) + channel;
      float* y = static_cast<float*>(context.outputs[0]->data) + channel;
      const auto each = [&](auto&& f) { for_each_stretch(shape, channels, chunk, poll, f); };
      double sums[most] = {}, squares[most] = {};
      float shift[most], factor[most], offset[most];
      each([&](const ChannelColumns& columns, int64_t at) { loops.add_sums(columns, x + at, sums); });
      for (int64_t i = 0; i < channels; ++i) shift[i] = static_cast<float>(sums[i] / count), sums[i] = 0;
      each([&](const ChannelColumns& columns, int64_t at) { loops.add_centred_sums(columns, x + at, shift, sums, squares); });
      if (poll.stopped()) return;
      for (int64_t i = 0; i < channels; ++i) {
        const Scaled<float> numbers = end_channel(context, channel + i, count, shift[i], sums[i], squares[i]);
        factor[i] = numbers.factor, offset[i] = numbers.offset;
      }
      each([&](const ChannelColumns& columns, int64_t at) {
        loops.affine(columns, x + at, y + at, {shift, nullptr, factor, nullptr, offset});
      });
    });
  }
  template <class T>
  struct Scaled {
    T factor, offset;  // y = (x - shift) * factor + offset
  };
  // Computes the scaling from a channel's sums of x - shift and its square.
  template <class T>
  Scaled<T> end_channel(const RunContext& context, int64_t c, double count, T shift, double sum, double squares) const {
    const double rest = sum / count, variance = std::max(squares / count - rest * rest, 0.0);
    const double factor = parameter(*context.inputs[1], c) / std::sqrt((count > 0 ? variance : 0) + epsilon_);
    keep_running(context, 1, c, Moments<T>{shift, rest, variance}.mean());
    keep_running(context, 2, c, count > 0 ? variance : std::nan(""));
    return {static_cast<T>(factor), static_cast<T>(parameter(*context.inputs[2], c) - rest * factor)};
  }
  void keep_running(const RunContext& context, uint32_t output, int64_t channel, double here) const {
    if (output >= context.output_count || !context.outputs[output]) return;
    const double kept = parameter(*context.inputs[output + 2], channel) * momentum_ + here * (1 - momentum_);
    convert(HEDDLE_F64, &kept, context.outputs[output]->dtype, at(*context.outputs[output], channel), 1);
  }

  double epsilon_ = 0, momentum_ = 0;
  bool training_ = false;
  Tiling tiling_;
};

Status infer_batch_normalization(InferContext& context) {
  if (context.attributes.i("training_mode") == 0 && context.output_count() > 1 && (context.wants_output(1) || context.wants_output(2)))
    return invalid("running statistics are outputs only with training_mode 1");
  for (uint32_t output = 1; output < context.output_count(); ++output) {
    context.set_dims(output, context.dims(3));
    context.set_dtype(output, context.input(3).dtype);
  }
  return check_channels(context, 1, 4);
}

// Running statistics that are inputs have no gradient, as in PyTorch; gradients of those that are outputs are passed on to the input.
Status batch_normalization_gradient(GradientContext& g) {
  const Attributes& a = g.attributes();
  const bool training = a.i("training_mode") != 0;
  const GradientValue dy = g.dy(0) ? g.dy(0) : zeros_like(g, g.x(0)), none;
  const auto of_batch = [&](GradientValue running) {
    return running ? pointwise(g, "x0 * " + number_text(1 - a.f("momentum")), {running}) : none;
  };
  const uint32_t outputs = g.wants(2) ? 3 : g.wants(1) ? 2 : 1;
  const std::vector<GradientValue> made =
      g.emit_all("BatchNormalizationGradient",
                 {dy, g.x(0), g.x(1), training ? none : g.x(3), training ? none : g.x(4), of_batch(g.dy(1)), of_batch(g.dy(2))}, outputs,
                 {GradientAttribute(a.find("epsilon")), {"training_mode", training ? 1 : 0}}, "heddle");
  for (uint32_t i = 0; i < outputs; ++i) g.give(i, made[i]);
  return {};
}

// ---------------------------------------------------------------- instance and group normalisation

// Groups of neighbouring channels of one image, normalised to mean 0 and variance 1 together.
class GroupNormalization {
 public:
  Status create(const CreateContext& context) {
    epsilon_ = context.attributes.f("epsilon");
    groups_ = context.attributes.declares("num_groups") ? context.attributes.i("num_groups", 0) : 0;
    return context.attributes.declares("stash_type") ? read_stash_type(context.attributes, float_dtypes, &stash_) : Status();
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(0);
    tiling_.plan(context, static_cast<int64_t>(2 * x.byte_size));
    context.set_scratch(0, static_cast<uint64_t>(group_elements(x)) * byte_width(working_dtype(x.dtype, stash_)) + 64);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    if (writes_nothing(context)) return {};
    CancellationPoll poll(context);
    with_working(working_dtype(context.inputs[0]->dtype, stash_), [&](auto zero) { run_as<decltype(zero)>(context, begin, end, poll); });
    return poll.status();
  }

 private:
  int64_t group_count(const ChannelShape& shape) const { return groups_ > 0 ? groups_ : shape.channels; }
  int64_t group_elements(const heddle_tensor& x) const {
    const ChannelShape shape = channel_shape(dims_of(x));
    return group_count(shape) ? shape.channels / group_count(shape) * shape.spatial : 0;
  }

  template <class T>
  void run_as(const RunContext& context, int64_t begin, int64_t end, CancellationPoll& poll) const {
    const heddle_tensor& x = *context.inputs[0];
    heddle_tensor& y = *context.outputs[0];
    const ChannelShape shape = channel_shape(dims_of(x));
    const int64_t elements = group_elements(x), groups = group_count(shape);
    if (elements == 0) return;
    const int64_t channels = shape.channels / groups;
    T* buffer = thread_scratch<T>(context);
    const auto [first, last] = tiling_.range(shape.batch * groups, begin, end);
    for (int64_t g = first; g < last && !poll.stops(2 * elements); ++g) {
      const T* from = as_working(x, g * elements, elements, buffer);
      T* to = target(y, g * elements, buffer);
      const Moments<T> m = row_moments(from, elements);
      const double inverse = 1 / std::sqrt(m.variance + epsilon_);
      for (int64_t k = 0; k < channels && !poll.stops(shape.spatial); ++k) {
        const int64_t c = g % groups * channels + k;
        const double factor = inverse * parameter(*context.inputs[1], c);
        const double bias = parameter(*context.inputs[2], c);
        // Splitting the mean in two parts loses no precision, but with an infinite factor the two parts would cancel to NaN.
        const bool finite = std::isfinite(factor);
        row_affine(from + k * shape.spatial, to + k * shape.spatial, shape.spatial, finite ? m.shift : static_cast<T>(m.mean()),
                   static_cast<T>(factor), static_cast<T>(finite ? bias - m.rest * factor : bias));
      }
      store_working(y, g * elements, elements, to);
    }
  }

  double epsilon_ = 0;
  int64_t groups_ = 0;  // 0: one per channel
  heddle_dtype stash_ = HEDDLE_F32;
  Tiling tiling_;
};

Status infer_group_normalization(InferContext& context) {
  if (context.dims(0).rank < 2) return invalid("input has shape " + dims_text(context.dims(0)) + ", expected at least 2 dimensions");
  const int64_t channels = context.dims(0)[1],
                groups = context.attributes.declares("num_groups") ? context.attributes.i("num_groups", channels) : channels;
  if (groups <= 0 || channels % groups != 0)
    if (channels != 0)
      return invalid("num_groups is " + std::to_string(groups) + ", which does not divide " + std::to_string(channels) + " channels");
  return check_channels(context, 1, 2);
}

Status group_normalization_gradient(GradientContext& g) {
  const Attributes& a = g.attributes();
  const bool has_groups = a.declares("num_groups");
  const uint32_t outputs = g.wants(2) ? 3 : g.wants(1) ? 2 : 1;
  const std::vector<GradientValue> made =
      g.emit_all("GroupNormalizationGradient", {g.dy(0), g.x(0), g.x(1)}, outputs,
                 {GradientAttribute(a.find("epsilon")), GradientAttribute(has_groups ? a.find("num_groups") : nullptr),
                  GradientAttribute(has_groups ? a.find("stash_type") : nullptr)},
                 "heddle");
  for (uint32_t i = 0; i < outputs; ++i) g.give(i, made[i]);
  return {};
}

}  // namespace

void add_normalization_channel(Builder& plugin) {
  plugin.add(
      Op("BatchNormalization", "", 15)
          .doc("Normalizes each channel by a mean and a variance: those given, or with training_mode 1 the batch's own, by which the "
               "running ones are then updated.")
          .formula("Y = (X - mean) / sqrt(var + epsilon) scale + B; running = momentum input + (1 - momentum) of the batch")
          .shapes("X is [N, C, ...]; Y has the dims of X, running_mean and running_var are [C]")
          .in("X", float_dtypes)
          .in("scale", float_dtypes, "T1")
          .in("B", float_dtypes, "T1")
          .in("input_mean", float_dtypes, "T2")
          .not_differentiable()
          .in("input_var", float_dtypes, "T2")
          .not_differentiable()
          .out("Y", same_as("X"), float_dtypes)
          .optional_out("running_mean", {}, float_dtypes, "T2")
          .optional_out("running_var", {}, float_dtypes, "T2")
          .attribute("epsilon", 1e-5)
          .attribute("momentum", 0.9)
          .attribute("training_mode", 0)
          .in_place("Y", "X")
          .precision(HEDDLE_PRECISION_FULL)
          .infer(infer_batch_normalization)
          .cost<per_input_element<2>>()  // after folding mean, variance, scale and B
          .gradient<batch_normalization_gradient>()
          .cpu<BatchNormalization>()
          .example("f32[2,2,3] = -4 -3 3 -4 3 -3 -4 0 0 -4 -3 3, f32[2] = 1 2, f32[2] = 0 -1, f32[2] = 0.5 1, f32[2] = 4 1 -> f32[2,2,3] = "
                   "-2.249997 -1.749998 1.249999 -10.99995 2.99998 -8.99996 -2.249997 -0.2499997 -0.2499997 -10.99995 -8.99996 2.99998",
                   "ONNX Runtime")
          .example("f32[1,1,2] = 3 3, bf16[1] = 1, bf16[1] = 2, bf16[1] = 3, bf16[1] = 4; epsilon=0.5 -> f32[1,1,2] = 2", "by hand")
          .example("f32[2,2,2] = 1 3 0 0 5 7 0 8, f32[2] = 1 2, f32[2] = 0 1, f32[2] = 8 0, f32[2] = 1 2; epsilon=4, momentum=0.5, "
                   "training_mode=1 -> f32[2,2,2] = -1 -0.3333333 0 0 0.3333333 1 0 4, f32[2] = 6 1, f32[2] = 3 7",
                   "by hand"));
  plugin.add(Op("InstanceNormalization", "", 6)
                 .doc("Normalizes each channel of each batch entry by its own mean and variance.")
                 .formula("output = (input - mean) / sqrt(var + epsilon) scale + B")
                 .shapes("input is [N, C, ...]; output has its dims")
                 .in("input", float_dtypes)
                 .in("scale", float_dtypes)
                 .in("B", float_dtypes)
                 .out("output", same_as("input"), float_dtypes)
                 .attribute("epsilon", 1e-5)
                 .in_place("output", "input")
                 .precision(HEDDLE_PRECISION_FULL)
                 .infer(infer_group_normalization)
                 .cost<per_input_element<8>>()
                 .gradient<group_normalization_gradient>()
                 .cpu<GroupNormalization>()
                 .example("f32[1,2,3] = -4 -3 3 -4 3 -3, f32[2] = 1 2, f32[2] = 0 -1 -> f32[1,2,3] = -0.8626617 -0.5391636 1.401825 "
                          "-2.725323 1.803651 -2.078327",
                          "ONNX Runtime")
                 .example("f32[1,2,2,2] = -4 -3 3 -4 3 -3 -4 0, f32[2] = 1 2, f32[2] = 0 -1; epsilon=0.5 -> f32[1,2,2,2] = -0.6666667 "
                          "-0.3333333 1.666667 -0.6666667 1.828427 -2.414213 -3.12132 -0.2928932",
                          "ONNX Runtime"));
  plugin.add(
      Op("GroupNormalization", "", 21)
          .doc("Normalizes each group of channels of each batch entry by its own mean and variance (Wu and He 2018).")
          .formula("Y = (X - mean) / sqrt(var + epsilon) scale + bias")
          .shapes("X is [N, C, ...], where num_groups divides C; Y has its dims")
          .in("X", float_dtypes)
          .in("scale", float_dtypes)
          .in("bias", float_dtypes)
          .out("Y", same_as("X"), float_dtypes)
          .required("num_groups", HEDDLE_ATTRIBUTE_INT)
          .attribute("epsilon", 1e-5)
          .attribute("stash_type", 1)
          .in_place("Y", "X")
          .precision(HEDDLE_PRECISION_FULL)
          .infer(infer_group_normalization)
          .cost<per_input_element<8>>()
          .gradient<group_normalization_gradient>()
          .cpu<GroupNormalization>()
          .example("f32[1,4,3] = -4 -3 3 -4 3 -3 -4 0 0 -4 -3 3, f32[4] = 1 2 0.5 1, f32[4] = 0 -1 1 0; num_groups=2 -> f32[1,4,3] = "
                   "-0.8626617 -0.5391636 1.401825 -2.725323 1.803651 -2.078327 0.4792448 1.260378 1.260378 -1.04151 -0.6509441 1.692455",
                   "ONNX Runtime")
          .example("f32[1,2,2,2] = -4 -3 3 -4 3 -3 -4 0, f32[2] = 1 2, f32[2] = 0 -1; num_groups=1, epsilon=0.5 -> f32[1,2,2,2] = "
                   "-0.8451542 -0.5070925 1.521278 -0.8451542 2.042555 -2.014185 -2.690309 0.01418507",
                   "ONNX Runtime")
          .example("f32[1,2,1] = 1 3, f32[2] = 1 2, f32[2] = 0 1; num_groups=1, epsilon=0, stash_type=11 -> f32[1,2,1] = -1 3", "by hand"));
}

}  // namespace heddle::cpu
