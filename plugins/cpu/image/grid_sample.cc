// GridSample: the input interpolated at positions that a grid gives, in coordinates from -1 to 1 along every spatial axis.
//
// The positions and weights of one output position are the same for all channels: found once, applied channel by channel. Tiles are
// ranges of output positions of all batch entries.
#include <algorithm>

#include "families.h"
#include "image/grid_points.h"
#include "image/sampled_points.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/image/grid_options.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

Status infer_grid_sample(InferContext& context) {
  GridOptions options;
  HEDDLE_PLUGIN_CHECK(parse_grid_options(context.attributes, &options));
  const Dims x = context.dims(0), grid = context.dims(1);
  const int axes = x.rank - 2;
  if (axes < 1 || axes > max_grid_axes)
    return unsupported("GridSample of an input " + dims_text(x) + ": one to three spatial axes are done");
  if (grid.rank != x.rank || grid[0] != x[0] || grid[-1] != axes)
    return invalid("grid has shape " + dims_text(grid) + ", expected [" + std::to_string(x[0]) + ", extents..., " + std::to_string(axes) +
                   "]");
  for (int i = 2; i < x.rank; ++i)
    if (x[i] == 0) return invalid("input " + dims_text(x) + " has an empty spatial axis");
  std::vector<int64_t> dims = {x[0], x[1]};
  dims.insert(dims.end(), grid.begin() + 1, grid.end() - 1);
  context.set_dims(0, dims);
  return {};
}

class GridSample {
 public:
  Status create(const CreateContext& context) { return parse_grid_options(context.attributes, &options_); }
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, static_cast<int64_t>(context.output(0)->byte_size),
                 options_.interpolation == SampleInterpolation::cubic ? 64.0 : 16.0);
    const auto taps = static_cast<uint64_t>(tap_count(context.input(0)->rank - 2));
    context.set_scratch(0, taps * chunk * (sizeof(int64_t) + sizeof(double)));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    return with_dtype(context.inputs[0]->dtype, [&](auto tag) {
      CancellationPoll poll(context);
      sample<typename decltype(tag)::type>(context, begin, end, poll);
      return poll.status();
    });
  }

 private:
  static constexpr int64_t chunk = 64;  // of output positions

  // The elements that an output position reads of each channel, at most.
  int64_t tap_count(int axes) const {
    if (options_.interpolation == SampleInterpolation::nearest) return 1;
    return int64_t{1} << (options_.interpolation == SampleInterpolation::linear ? axes : 2 * axes);
  }
  template <class T>
  void sample(const RunContext& context, int64_t begin, int64_t end, CancellationPoll& poll) const {
    const heddle_tensor &x = *context.inputs[0], &y = *context.outputs[0];
    const Dims from = dims_of(x), to = dims_of(y);
    const int64_t channels = from[1], read = from.count(2, from.rank), written = to.count(2, to.rank);
    const Tiling::Range range = tiling_.range(channels == 0 ? 0 : from[0] * written, begin, end);
    const auto sum = isa_sampled_points().sum[x.dtype];
    double sums[chunk];
    for (int64_t i = range.first, count = 0; i < range.last && !poll.stopped(); i += count) {
      const int64_t batch = i / written;
      count = std::min({chunk, range.last - i, (batch + 1) * written - i});
      const SampledPoints points = find_points(context, from, i, count);
      for (int64_t c = 0; c < channels && !poll.stops(2 * points.taps * count); ++c) {
        sum(points, static_cast<const T*>(x.data) + (batch * channels + c) * read, sums);
        T* const target = static_cast<T*>(y.data) + (batch * channels + c) * written + i % written;
        for (int64_t p = 0; p < count; ++p) target[p] = from_arithmetic<T>(sums[p]);
      }
    }
  }
  // The points of output positions [first, first + count), in the thread's scratch.
  SampledPoints find_points(const RunContext& context, Dims from, int64_t first, int64_t count) const {
    const int64_t taps = tap_count(from.rank - 2);
    const int64_t points = (count + SampledPoints::multiple - 1) / SampledPoints::multiple * SampledPoints::multiple;
    auto* const offsets = thread_scratch<int64_t>(context);
    auto* const weights = reinterpret_cast<double*>(offsets + taps * chunk);
    std::fill_n(offsets, taps * points, -1);
    std::fill_n(weights, taps * points, 0);
    for (int64_t p = 0; p < count; ++p) {
      const GridPoints found(options_, *context.inputs[1], first + p, from);
      for (int t = 0; t < found.count; ++t) {
        offsets[t * points + p] = found.offsets[t];
        weights[t * points + p] = found.weights[t];
      }
    }
    return {offsets, weights, taps, points};
  }
  GridOptions options_;
  Tiling tiling_;
};

Status grid_sample_gradient(GradientContext& g) {
  const GradientAttribute mode = g.same("mode"), padding = g.same("padding_mode"), align = g.same("align_corners");
  if (g.wants(0)) g.give(0, g.emit("GridSampleInputGradient", {g.dy(0), shape_of(g, g.x(0)), g.x(1)}, {mode, padding, align}, "heddle"));
  if (g.wants(1)) g.give(1, g.emit("GridSampleGridGradient", {g.dy(0), g.x(0), g.x(1)}, {mode, padding, align}, "heddle"));
  return {};
}

}  // namespace

void add_grid_sample(Builder& plugin) {
  plugin.add(
      Op("GridSample", "", 20)
          .doc("Reads X at the positions that grid holds, from -1 to 1 along each axis, and interpolates as `mode` says (nearest, linear, "
               "cubic). Outside of X are zeros, the border or a reflection, as padding_mode says (zeros, border, reflection).")
          .shapes("X is [N, C, ...], grid is [N, extents..., spatial axes]; Y is [N, C, extents...]")
          .in("X", float_dtypes)
          .in("grid", float_dtypes, nullptr)
          .out("Y", {}, float_dtypes)
          .attribute("mode", "linear")
          .attribute("padding_mode", "zeros")
          .attribute("align_corners", 0)
          .infer(infer_grid_sample)
          .gradient<grid_sample_gradient>()
          .cpu<GridSample>()
          .example("f32[1,1,2,2] = 1 3 3 1, f32[1,1,3,2] = 0 0 -0.5 0.5 1 -1 -> f32[1,1,1,3] = 2 3 0.75", "ONNX Runtime")
          .example("f32[1,1,3,3] = 1 3 3 1 5 7 7 5 1, f32[1,1,2,2] = 0.25 -0.5 1.5 0; mode=\"nearest\", padding_mode=\"border\" -> "
                   "f32[1,1,1,2] = 3 7",
                   "ONNX Runtime")
          .example("f32[1,1,3,3] = 1 3 3 1 5 7 7 5 1, f32[1,1,2,2] = 0.25 -0.5 1.5 0; mode=\"cubic\", align_corners=1, "
                   "padding_mode=\"reflection\" -> f32[1,1,1,2] = 4.52832 6.5625",
                   "ONNX Runtime")
          .example("f32[1,1,2,2] = 2 5 1 5, f16[1,1,1,2] = 0 0 -> f32[1,1,1,1] = 3.25", "by hand")
          .example("f32[1,1,2,2] = 2 5 1 5, bf16[1,1,1,2] = 0 0 -> f32[1,1,1,1] = 3.25", "by hand")
          .example("f32[1,1,2,2] = 2 5 1 5, f64[1,1,1,2] = 0 0 -> f32[1,1,1,1] = 3.25", "by hand"));
}

}  // namespace heddle::cpu
