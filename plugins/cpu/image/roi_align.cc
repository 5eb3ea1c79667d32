// RoiAlign: regions of feature maps pooled to one size, from bilinear samples (He et al., Mask R-CNN, 2017; ONNX RoiAlign-16).
//
// Tiles are ranges of (region, channel).
#include <algorithm>
#include <limits>

#include "families.h"
#include "image/roi_region.h"
#include "image/sampled_points.h"
#include "shared/axes.h"
#include "shared/dtype_dispatch.h"
#include "shared/image/roi_options.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

// X [N, C, H, W], rois [R, 4] as x1 y1 x2 y2, batch_indices [R] -> [R, C, height, width]
Status infer_roi_align(InferContext& context) {
  const Dims x = context.dims(0), rois = context.dims(1), batches = context.dims(2);
  const Attributes& a = context.attributes;
  if (x.rank != 4) return invalid("X has shape " + dims_text(x) + ", expected four dimensions");
  if (rois.rank != 2 || rois[1] != 4) return invalid("rois has shape " + dims_text(rois) + ", expected [regions, 4]");
  if (batches.rank != 1 || batches[0] != rois[0])
    return invalid("batch_indices has shape " + dims_text(batches) + ", expected [" + std::to_string(rois[0]) + "]");
  const std::string mode = a.s("mode"), coordinates = a.s("coordinate_transformation_mode");
  if (mode != "avg" && mode != "max") return invalid("mode is \"" + mode + "\", expected avg or max");
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    return invalid("coordinate_transformation_mode is \"" + coordinates + "\", expected half_pixel or output_half_pixel");
  if (a.i("output_height") < 1 || a.i("output_width") < 1) return invalid("output_height and output_width must be positive");
  if (a.i("sampling_ratio") < 0 || a.i("sampling_ratio") > max_roi_samples)
    return invalid("sampling_ratio is " + std::to_string(a.i("sampling_ratio")) + ", expected 0 to " + std::to_string(max_roi_samples));
  context.set_dims(0, std::vector<int64_t>{rois[0], x[1], a.i("output_height"), a.i("output_width")});
  return {};
}

// Operations for one element of the output; regions with an adaptive number of samples take few.
double sample_operations(int64_t sampling_ratio) {
  const double samples = static_cast<double>(sampling_ratio == 0 ? 2 : sampling_ratio);
  return 16 * samples * samples;
}
void roi_align_cost(CostContext& context) {
  context.set_flops(sample_operations(context.attributes.i("sampling_ratio")) * context.output_elements(0));
}

class RoiAlign {
 public:
  Status create(const CreateContext& context) {
    options_ = RoiOptions(context.attributes);
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& y = *context.output(0);
    tiling_.plan(context, static_cast<double>(y.byte_size), 64.0,
                 sample_operations(options_.sampling_ratio) * static_cast<double>(y.element_count));
    context.set_scratch(0, max_entries * (sizeof(int64_t) + sizeof(double)));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    return with_dtype(context.inputs[0]->dtype, [&](auto tag) { return pool<typename decltype(tag)::type>(context, begin, end); });
  }

 private:
  template <class T>
  Status pool(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor &x = *context.inputs[0], &batches = *context.inputs[2], &y = *context.outputs[0];
    const int64_t channels = x.dims[1], bins = y.dims[2] * y.dims[3];
    const Tiling::Range range = tiling_.range(y.dims[0] * channels, begin, end);
    CancellationPoll poll(context);
    for (int64_t unit = range.first; unit < range.last && !poll.stopped();) {
      const int64_t r = unit / channels, batch = integer_at(batches, r), last = std::min(range.last, (r + 1) * channels);
      if (batch < 0 || batch >= x.dims[0]) return outside_range("batch index", batch, 0, x.dims[0] - 1);
      const RoiRegion region(options_, *context.inputs[1], r, y.dims[2], y.dims[3]);
      const int64_t pixels = x.dims[2] * x.dims[3];
      const Maps<T> maps = {static_cast<const T*>(x.data) + (batch * channels + unit % channels) * pixels,
                            x.dims[2],
                            x.dims[3],
                            static_cast<T*>(y.data) + unit * bins,
                            bins,
                            y.dims[3],
                            last - unit};
      if (4 * region.samples() * SampledPoints::multiple > max_entries)
        pool_large<T>(maps, region, poll);
      else if (region.samples() == 0)
        fill_cancellable(maps.y, maps.channels * bins, T{}, poll);
      else
        pool_small<T>(context, maps, region, poll);
      unit = last;
    }
    return poll.status();
  }

  // The channels of one region.
  template <class T>
  struct Maps {
    const T* x;
    int64_t height, width;
    T* y;
    int64_t bins, columns, channels;
  };

  // The pixels around the samples of several bins are found once, for all channels.
  template <class T>
  void pool_small(const RunContext& context, const Maps<T>& maps, const RoiRegion& region, CancellationPoll& poll) const {
    const int64_t taps = 4 * region.samples(), multiple = SampledPoints::multiple;
    const int64_t bins_at_once = std::min(max_bins, max_entries / taps / multiple * multiple);
    const auto& table = isa_sampled_points();
    const auto combine = options_.takes_max ? table.largest[context.inputs[0]->dtype] : table.sum[context.inputs[0]->dtype];
    auto* const offsets = thread_scratch<int64_t>(context);
    auto* const weights = reinterpret_cast<double*>(offsets + max_entries);
    double pooled[max_bins];
    for (int64_t first = 0, bins = 0; first < maps.bins; first += bins) {
      bins = std::min(maps.bins - first, bins_at_once);
      const SampledPoints points = {offsets, weights, taps, (bins + multiple - 1) / multiple * multiple};
      std::fill_n(offsets, taps * points.points, -1);
      std::fill_n(weights, taps * points.points, 0);
      for (int64_t bin = 0; bin < bins; ++bin)
        for (int64_t i = 0; i < region.samples(); ++i) {
          const RoiCorners corners(maps.height, maps.width, region.row_of((first + bin) / maps.columns, i / region.samples_across),
                                   region.column_of((first + bin) % maps.columns, i % region.samples_across));
          for (int k = 0; k < corners.count; ++k) {
            offsets[(4 * i + k) * points.points + bin] = corners.offsets[k];
            weights[(4 * i + k) * points.points + bin] = corners.weights[k];
          }
        }
      const double divisor = options_.takes_max ? 1 : static_cast<double>(region.samples());
      for (int64_t c = 0; c < maps.channels && !poll.stops(taps * bins); ++c) {
        combine(points, maps.x + c * maps.height * maps.width, pooled);
        for (int64_t bin = 0; bin < bins; ++bin) maps.y[c * maps.bins + first + bin] = from_arithmetic<T>(pooled[bin] / divisor);
      }
    }
  }
  // Bins of up to sixteen million samples, each of which is the weighted values of the four pixels around a point, 0 outside.
  template <class T>
  void pool_large(const Maps<T>& maps, const RoiRegion& region, CancellationPoll& poll) const {
    for (int64_t unit = 0; unit < maps.channels * maps.bins; ++unit) {
      const T* const map = maps.x + unit / maps.bins * maps.height * maps.width;
      double sum = 0, most = -std::numeric_limits<double>::infinity();
      for (int64_t i = 0; i < region.samples(); ++i) {
        if (poll.stops(8)) return;
        const RoiCorners at(maps.height, maps.width, region.row_of(unit % maps.bins / maps.columns, i / region.samples_across),
                            region.column_of(unit % maps.bins % maps.columns, i % region.samples_across));
        double values[4] = {};
        for (int k = 0; k < at.count; ++k) values[k] = at.weights[k] * static_cast<double>(to_arithmetic(map[at.offsets[k]]));
        sum += values[0] + values[1] + values[2] + values[3];
        most = std::max(most, std::max(std::max(values[0], values[1]), std::max(values[2], values[3])));
      }
      maps.y[unit] = from_arithmetic<T>(options_.takes_max ? most : sum / static_cast<double>(region.samples()));
    }
  }

  static constexpr int64_t max_bins = 64;
  static constexpr int64_t max_entries = 8192;
  RoiOptions options_;
  Tiling tiling_;
};

// There is no gradient by the regions.
Status roi_align_gradient(GradientContext& g) {
  const bool takes_max = g.attributes().s("mode") == "max";
  g.give(0,
         g.emit("RoiAlignGradient", {g.dy(0), shape_of(g, g.x(0)), g.x(1), g.x(2), takes_max ? g.x(0) : GradientValue()},
                {g.same("coordinate_transformation_mode"), g.same("mode"), g.same("sampling_ratio"), g.same("spatial_scale")}, "heddle"));
  return {};
}

}  // namespace

void add_roi_align(Builder& plugin) {
  plugin.add(Op("RoiAlign", "", 16)
                 .doc("Pools regions of feature maps to one size, from samples between pixels (He et al. 2017): their mean or maximum, as "
                      "`mode` says (avg, max).")
                 .shapes("X is [N, C, H, W], rois is [regions, 4]; Y is [regions, C, output_height, output_width]")
                 .in("X", float_dtypes)
                 .in("rois", float_dtypes)
                 .not_differentiable()
                 .in("batch_indices", dtypes<int64_t>(), nullptr)
                 .indexes("X", 0)
                 .out("Y", {}, float_dtypes)
                 .attribute("coordinate_transformation_mode", "half_pixel")
                 .attribute("mode", "avg")
                 .attribute("output_height", 1)
                 .attribute("output_width", 1)
                 .attribute("sampling_ratio", 0)
                 .attribute("spatial_scale", 1.0)
                 .infer(infer_roi_align)
                 .gradient<roi_align_gradient>()
                 .cost<roi_align_cost>()
                 .cpu<RoiAlign>()
                 .example("f32[1,1,4,4] = 1 3 3 1 5 7 7 5 1 3 3 1 5 7 7 5, f32[2,4] = 0 0 2 2 1 1 3 3, i64[2] = 0; output_height=1, "
                          "output_width=2 -> f32[2,1,1,2] = 3 5 5 5",
                          "ONNX Runtime")
                 .example("f32[1,1,4,4] = 1 3 3 1 5 7 7 5 1 3 3 1 5 7 7 5, f32[1,4] = 0 0 6 6, i64[1] = 0; mode=\"max\", sampling_ratio=1, "
                          "spatial_scale=0.5, output_height=2, output_width=1, coordinate_transformation_mode=\"output_half_pixel\" -> "
                          "f32[1,1,2,1] = 2.625 1.125",
                          "ONNX Runtime"));
}

}  // namespace heddle::cpu
