// GridSample: the input interpolated at positions that a grid gives, in coordinates from -1 to 1 along every spatial axis.
//
// The positions and weights of one output position are the same for all channels: found once, applied channel by channel. Tiles are
// ranges of output positions of all batch entries.
#include <algorithm>
#include <cmath>

#include "families.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/image/grid_options.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

Status infer_grid_sample(InferContext& context) {
  GridOptions options;
  HEDDLE_PLUGIN_CHECK(parse_grid_options(context.attributes, &options));
  const Dims x = context.dims(0), grid = context.dims(1);
  const int axes = x.rank - 2;
  if (axes < 1 || axes > most_grid_axes)
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

// Mirrors at the borders of the pixels, or at their centres.
double reflect(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  double distance = x < low ? low - x : x - low;
  const double turns = std::floor(distance / range), rest = distance - turns * range;
  if (x >= low && x <= high) return x;
  return std::fmod(turns, 2.0) == 0 ? low + rest : high - rest;
}

// The input positions along one axis and their weights; position -1 reads zero.
struct Taps {
  int count = 0;
  int64_t positions[4];
  double weights[4];
};

Taps find_taps(const GridOptions& options, double coordinate, int64_t extent) {
  const auto length = static_cast<double>(extent);
  const double low = options.align_corners ? 0 : -0.5, high = options.align_corners ? length - 1 : length - 0.5;
  double x = options.align_corners ? (coordinate + 1) / 2 * (length - 1) : ((coordinate + 1) * length - 1) / 2;
  if (!(std::fabs(x) < 1e15)) x = -1e15;  // NaN and what no position is close to
  if (options.interpolation == SampleInterpolation::nearest) x = std::nearbyint(x);
  // A cubic interpolation keeps its place outside the border: each of its taps is brought inside (as in PyTorch), not the coordinate.
  if (options.interpolation != SampleInterpolation::cubic) {
    if (options.padding == SamplePadding::border) x = std::clamp(x, 0.0, length - 1);
    if (options.padding == SamplePadding::reflection && (x < low || x > high)) x = reflect(x, low, high);
  }
  const double below = std::floor(x), rest = x - below;
  Taps taps;
  int64_t first = static_cast<int64_t>(below);
  if (options.interpolation == SampleInterpolation::nearest) {
    taps = {1, {}, {1}};
    first = static_cast<int64_t>(std::nearbyint(x));
  } else if (options.interpolation == SampleInterpolation::linear) {
    taps = {2, {}, {1 - rest, rest}};
  } else {
    constexpr double a = -0.75;
    const auto inner = [](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    const auto outer = [](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    taps = {4, {}, {outer(rest + 1), inner(rest), inner(1 - rest), outer(2 - rest)}};
    --first;
  }
  for (int t = 0; t < taps.count; ++t) {
    int64_t p = first + t;
    if (p < 0 || p >= extent) {
      if (options.padding == SamplePadding::zeros) p = -1;
      if (options.padding == SamplePadding::border) p = std::clamp<int64_t>(p, 0, extent - 1);
      if (options.padding == SamplePadding::reflection)
        p = std::clamp<int64_t>(static_cast<int64_t>(reflect(static_cast<double>(p), low, high)), 0, extent - 1);
    }
    taps.positions[t] = p;
  }
  return taps;
}

class GridSample {
 public:
  Status create(const CreateContext& context) { return parse_grid_options(context.attributes, &options_); }
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, static_cast<int64_t>(context.output(0)->byte_size),
                 options_.interpolation == SampleInterpolation::cubic ? 64.0 : 16.0);
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
  // Offsets into a channel and weights of one output position.
  struct Points {
    int count = 0;
    int64_t offsets[64];
    double weights[64];
  };
  Points find_points(const heddle_tensor& grid, int64_t position, Dims x) const {
    Points points;
    points.count = 1;
    points.offsets[0] = 0;
    points.weights[0] = 1;
    const int axes = x.rank - 2;
    for (int axis = 0; axis < axes; ++axis) {
      // The grid gives the innermost axis first.
      const Taps taps = find_taps(options_, number_at(grid, position * axes + axes - 1 - axis), x[2 + axis]);
      Points next;
      for (int i = 0; i < points.count; ++i)
        for (int t = 0; t < taps.count; ++t) {
          if (taps.positions[t] < 0 || taps.weights[t] == 0) continue;
          next.offsets[next.count] = points.offsets[i] * x[2 + axis] + taps.positions[t];
          next.weights[next.count++] = points.weights[i] * taps.weights[t];
        }
      points = next;
    }
    return points;
  }
  template <class T>
  void sample(const RunContext& context, int64_t begin, int64_t end, CancellationPoll& poll) const {
    const heddle_tensor &x = *context.inputs[0], &grid = *context.inputs[1], &y = *context.outputs[0];
    const Dims from = dims_of(x), to = dims_of(y);
    const int64_t channels = from[1], read = from.count(2, from.rank), written = to.count(2, to.rank);
    const Tiling::Range range = tiling_.range(channels == 0 ? 0 : from[0] * written, begin, end);
    for (int64_t i = range.first; i < range.last; ++i) {
      const Points points = find_points(grid, i, from);
      const int64_t batch = i / written;
      for (int64_t c = 0; c < channels && !poll.stops(2 * points.count); ++c) {
        const T* channel = static_cast<const T*>(x.data) + (batch * channels + c) * read;
        double sum = 0;
        for (int p = 0; p < points.count; ++p) sum += points.weights[p] * static_cast<double>(to_arithmetic(channel[points.offsets[p]]));
        static_cast<T*>(y.data)[(batch * channels + c) * written + i % written] = from_arithmetic<T>(sum);
      }
    }
  }
  GridOptions options_;
  Tiling tiling_;
};

}  // namespace

void add_grid_sample(Builder& plugin) {
  plugin.add(Op("GridSample", "", 20)
                 .doc("the input interpolated at the positions of a grid")
                 .in("X", float_dtypes)
                 .in("grid", float_dtypes, nullptr)
                 .out("Y", {}, float_dtypes)
                 .attribute("mode", "linear")
                 .attribute("padding_mode", "zeros")
                 .attribute("align_corners", 0)
                 .infer(infer_grid_sample)
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
