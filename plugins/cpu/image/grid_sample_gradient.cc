// heddle::GridSampleInputGradient and heddle::GridSampleGridGradient: the gradients of GridSample by its input and by its grid.
//
// By the input: every output position adds to the elements that it read, in order; tiles are ranges of groups of channels, for which
// positions and weights are found once. By the grid: every position is independent; tiles are ranges of them.
#include <algorithm>

#include "families.h"
#include "image/grid_points.h"
#include "shared/computed_extents.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/extent_rules.h"
#include "shared/image/grid_options.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/float_sums.h"

namespace heddle::cpu {
namespace {

constexpr uint32_t sampled_shape_port = 1;

// X [N, C, extents...], grid [N, positions..., axes], dY [N, C, positions...].
Status check_sampled(Dims dy, Dims x, Dims grid) {
  const int axes = x.rank - 2;
  if (axes < 1 || axes > max_grid_axes)
    return unsupported("GridSample of an input " + dims_text(x) + ": one to three spatial axes are done");
  bool fits = dy.rank == x.rank && grid.rank == x.rank && grid[-1] == axes && dy[0] == x[0] && dy[1] == x[1] && grid[0] == x[0];
  for (int i = 2; fits && i < x.rank; ++i) fits = dy[i] == grid[i - 1];
  if (!fits)
    return invalid("dY has shape " + dims_text(dy) + ", which is not what a grid " + dims_text(grid) + " samples of an input " +
                   dims_text(x));
  for (int i = 2; i < x.rank; ++i)
    if (x[i] == 0) return invalid("input " + dims_text(x) + " has an empty spatial axis");
  return {};
}

// ---------------------------------------------------------------- by the input

Status infer_input_gradient(InferContext& context) {
  GridOptions options;
  HEDDLE_PLUGIN_CHECK(parse_grid_options(context.attributes, &options));
  const Dims dy = context.dims(0);
  if (context.dims(sampled_shape_port).rank != 1 || context.dims(sampled_shape_port)[0] != dy.rank)
    return invalid("shape has shape " + dims_text(context.dims(sampled_shape_port)) + ", expected [" + std::to_string(dy.rank) + "]");
  if (!context.known(sampled_shape_port)) return context.set_dynamic(0, dy.rank), Status();
  Extents to;
  HEDDLE_PLUGIN_CHECK(constant_extents(context.input(sampled_shape_port), &to));
  HEDDLE_PLUGIN_CHECK(check_sampled(dy, to.dims(), context.dims(2)));
  context.set_dims(0, to.dims());
  return {};
}

class GridSampleInputGradient {
 public:
  Status create(const CreateContext& context) { return parse_grid_options(context.attributes, &options_); }
  Status prepare(PrepareContext& context) {
    const heddle_tensor &dy = *context.input(0), &dx = *context.output(0);
    varies_ = varies(context, {sampled_shape_port});
    const bool narrow = dx.dtype == HEDDLE_F16 || dx.dtype == HEDDLE_BF16;
    context.set_scratch(0, narrow ? static_cast<uint64_t>(group * dims_of(dx).count(2, dx.rank)) * sizeof(float) : 0);
    tiling_.plan(context, static_cast<int64_t>(dx.byte_size + dy.byte_size),
                 options_.interpolation == SampleInterpolation::cubic ? 64.0 : 16.0);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor& dx = *context.outputs[0];
    if (varies_)
      HEDDLE_PLUGIN_CHECK(check_planned({{"shape", context.inputs[sampled_shape_port]}}, dx,
                                        [&](Extents* to) { return constant_extents(*context.inputs[sampled_shape_port], to); }));
    HEDDLE_PLUGIN_CHECK(check_sampled(dims_of(*context.inputs[0]), dims_of(dx), dims_of(*context.inputs[2])));
    CancellationPoll poll(context);
    with_float(dx.dtype, [&](auto tag) { add_up<typename decltype(tag)::type>(context, begin, end, poll); });
    return poll.status();
  }

 private:
  static constexpr int64_t group = 8;  // channels

  template <class T>
  void add_up(const RunContext& context, int64_t begin, int64_t end, CancellationPoll& poll) const {
    const heddle_tensor &dy = *context.inputs[0], &grid = *context.inputs[2], &dx = *context.outputs[0];
    const Dims from = dims_of(dy), to = dims_of(dx);
    const int64_t channels = to[1], groups = (channels + group - 1) / group;
    const int64_t written = to.count(2, to.rank), positions = from.count(2, from.rank);
    const Tiling::Range range = tiling_.range(to[0] * groups, begin, end);
    for (int64_t unit = range.first; unit < range.last && !poll.stopped(); ++unit) {
      const int64_t batch = unit / groups, first = unit % groups * group, count = std::min(group, channels - first);
      T* const result = static_cast<T*>(dx.data) + (batch * channels + first) * written;
      const T* const arrived = static_cast<const T*>(dy.data) + (batch * channels + first) * positions;
      FloatSum<T>* sums;
      if constexpr (std::is_same_v<T, FloatSum<T>>)
        sums = result;
      else
        sums = thread_scratch<FloatSum<T>>(context);
      fill_cancellable(sums, count * written, FloatSum<T>(0), poll);
      for (int64_t o = 0; o < positions; ++o) {
        const GridPoints points(options_, grid, batch * positions + o, to);
        if (poll.stops(8 + count * points.count)) return;
        for (int64_t c = 0; c < count; ++c) {
          const auto value = static_cast<double>(to_arithmetic(arrived[c * positions + o]));
          for (int p = 0; p < points.count; ++p)
            sums[c * written + points.offsets[p]] += static_cast<FloatSum<T>>(points.weights[p] * value);
        }
      }
      if constexpr (!std::is_same_v<T, FloatSum<T>>)
        for (int64_t i = 0; i < count * written; ++i) result[i] = from_arithmetic<T>(sums[i]);
    }
  }
  GridOptions options_;
  bool varies_ = true;
  Tiling tiling_;
};

// ---------------------------------------------------------------- by the grid

Status infer_grid_gradient(InferContext& context) {
  GridOptions options;
  HEDDLE_PLUGIN_CHECK(parse_grid_options(context.attributes, &options));
  HEDDLE_PLUGIN_CHECK(check_sampled(context.dims(0), context.dims(1), context.dims(2)));
  context.set_dims(0, context.dims(2));
  return {};
}

class GridSampleGridGradient {
 public:
  Status create(const CreateContext& context) { return parse_grid_options(context.attributes, &options_); }
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, static_cast<int64_t>(context.input(0)->byte_size),
                 options_.interpolation == SampleInterpolation::cubic ? 96.0 : 24.0);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    CancellationPoll poll(context);
    with_float(context.inputs[0]->dtype, [&](auto tag) { differentiate<typename decltype(tag)::type>(context, begin, end, poll); });
    return poll.status();
  }

 private:
  // Computes the derivatives by one position of a batch entry along each of its axes.
  template <class T>
  void at_position(const T* arrived, int64_t positions, const T* image, Dims x, const double* coordinates, double* changes,
                   CancellationPoll& poll) const {
    const int axes = x.rank - 2;
    GridTaps taps[max_grid_axes];
    double slopes[max_grid_axes][4];
    int combinations = 1;
    for (int axis = 0; axis < axes; ++axis) {
      taps[axis] = find_grid_taps(options_, coordinates[axes - 1 - axis], x[2 + axis], slopes[axis]);
      combinations *= taps[axis].count;
      changes[axis] = 0;
    }
    const int64_t channels = x[1], read = x.count(2, x.rank);
    for (int i = 0; i < combinations; ++i) {
      if (poll.stops(channels * 2)) return;
      int of[max_grid_axes], rest = i;
      int64_t offset = 0;
      bool inside = true;
      for (int axis = axes - 1; axis >= 0; --axis) {
        of[axis] = rest % taps[axis].count;
        rest /= taps[axis].count;
      }
      for (int axis = 0; axis < axes; ++axis) {
        inside = inside && taps[axis].positions[of[axis]] >= 0;
        offset = offset * x[2 + axis] + taps[axis].positions[of[axis]];
      }
      if (!inside) continue;
      double sum = 0;
      for (int64_t c = 0; c < channels; ++c)
        sum += static_cast<double>(to_arithmetic(arrived[c * positions])) * static_cast<double>(to_arithmetic(image[c * read + offset]));
      for (int axis = 0; axis < axes; ++axis) {
        double weight = slopes[axis][of[axis]];
        for (int other = 0; other < axes; ++other)
          if (other != axis) weight *= taps[other].weights[of[other]];
        if (weight != 0) changes[axis] += weight * sum;
      }
    }
  }
  template <class T>
  void differentiate(const RunContext& context, int64_t begin, int64_t end, CancellationPoll& poll) const {
    const heddle_tensor &dy = *context.inputs[0], &x = *context.inputs[1], &grid = *context.inputs[2], &dgrid = *context.outputs[0];
    const Dims from = dims_of(x), to = dims_of(dy);
    const int axes = from.rank - 2;
    const int64_t positions = to.count(2, to.rank), read = from.count(2, from.rank), channels = from[1];
    const Tiling::Range range = tiling_.range(to[0] * positions, begin, end);
    for (int64_t i = range.first; i < range.last && !poll.stopped(); ++i) {
      double coordinates[max_grid_axes], changes[max_grid_axes];
      for (int axis = 0; axis < axes; ++axis) coordinates[axis] = number_at(grid, i * axes + axis);
      const int64_t batch = i / positions;
      at_position(static_cast<const T*>(dy.data) + batch * channels * positions + i % positions, positions,
                  static_cast<const T*>(x.data) + batch * channels * read, from, coordinates, changes, poll);
      with_float(dgrid.dtype, [&](auto tag) {
        using G = typename decltype(tag)::type;
        for (int axis = 0; axis < axes; ++axis) static_cast<G*>(dgrid.data)[i * axes + axes - 1 - axis] = from_arithmetic<G>(changes[axis]);
      });
    }
  }
  GridOptions options_;
  Tiling tiling_;
};

}  // namespace

void add_grid_sample_gradient(Builder& plugin) {
  const auto with_options = [](Op op) {
    op.attribute("mode", "linear").attribute("padding_mode", "zeros").attribute("align_corners", 0);
    return op;
  };
  plugin.add(
      with_options(Op("GridSampleInputGradient", "heddle")
                       .doc("Adds what arrives at samples to what they were interpolated from. It is the gradient of GridSample by X.")
                       .shapes("dX has the dims that shape holds")
                       .in("dY", float_dtypes)
                       .shape_operand("shape")
                       .in("grid", float_dtypes, nullptr)
                       .out("dX", {}, float_dtypes)
                       .infer(infer_input_gradient)
                       .cpu<GridSampleInputGradient>())
          .example("f32[1,1,1,2] = 4 8, i64[4] = 1 1 2 2, f32[1,1,2,2] = 0 0 -0.5 0.5 -> f32[1,1,2,2] = 1 1 9 1", "by hand")
          .example("f32[1,1,3] = 1 2 4, i64[3] = 1 1 2, f32[1,3,1] = -3 0.5 3; padding_mode=\"border\", mode=\"nearest\" -> "
                   "f32[1,1,2] = 1 6",
                   "by hand")
          .example("f32[1,1,2] = 1 2, i64[3] = 1 1 3, f32[1,2,1] = 0.5 2; align_corners=1, padding_mode=\"reflection\" -> "
                   "f32[1,1,3] = 0 2.5 0.5",
                   "by hand"));
  plugin.add(with_options(Op("GridSampleGridGradient", "heddle")
                              .doc("Computes how samples change with their positions. It is the gradient of GridSample by grid.")
                              .shapes("dgrid has the dims of grid")
                              .in("dY", float_dtypes)
                              .in("X", float_dtypes)
                              .in("grid", float_dtypes, "U")
                              .out("dgrid", {}, float_dtypes, "U")
                              .infer(infer_grid_gradient)
                              .cpu<GridSampleGridGradient>())
                 .example("f32[1,1,1,1] = 2, f32[1,1,2,2] = 1 3 3 9, f32[1,1,1,2] = 0 -0.5 -> f32[1,1,1,2] = 4 8", "by hand")
                 .example("f32[1,1,3] = 1, f32[1,1,3] = 1 2 4, f32[1,3,1] = -3 -0.5 0.5; align_corners=1, padding_mode=\"border\" -> "
                          "f32[1,3,1] = 0 1 2",
                          "by hand")
                 .example("f32[1,1,1] = 1, f32[1,1,3] = 1 2 4, f32[1,1,1] = 0.5; mode=\"nearest\" -> f32[1,1,1] = 0", "by hand"));
}

}  // namespace heddle::cpu
