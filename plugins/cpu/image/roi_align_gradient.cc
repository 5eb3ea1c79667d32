// heddle::RoiAlignGradient: the gradients of pooled regions, added to the pixels that they were pooled from. The gradient of RoiAlign by X.
//
// Tiles are ranges of channels of all batch entries: each goes through all regions of its batch entry, in their order.
#include <algorithm>

#include "families.h"
#include "image/roi_region.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/extent_rules.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/float_sums.h"

namespace heddle::cpu {
namespace {

constexpr uint32_t pooled_shape_port = 1, pooled_rois_port = 2, pooled_batches_port = 3, pooled_x_port = 4;

// dY [R, C, height, width], X [N, C, H, W].
Status check_pooled(Dims dy, Dims x) {
  if (dy.rank != 4 || x.rank != 4) return invalid("dY " + dims_text(dy) + " and X " + dims_text(x) + " must have four dimensions");
  if (dy[1] != x[1]) return invalid("dY " + dims_text(dy) + " and X " + dims_text(x) + " differ in channels");
  return {};
}

Status infer_roi_align_gradient(InferContext& context) {
  const Dims dy = context.dims(0), shape = context.dims(pooled_shape_port), rois = context.dims(pooled_rois_port),
             batches = context.dims(pooled_batches_port);
  const Attributes& a = context.attributes;
  const std::string mode = a.s("mode"), coordinates = a.s("coordinate_transformation_mode");
  if (mode != "avg" && mode != "max") return invalid("mode is \"" + mode + "\", expected avg or max");
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    return invalid("coordinate_transformation_mode is \"" + coordinates + "\", expected half_pixel or output_half_pixel");
  if (a.i("sampling_ratio") < 0 || a.i("sampling_ratio") > max_roi_samples)
    return invalid("sampling_ratio is " + std::to_string(a.i("sampling_ratio")) + ", expected 0 to " + std::to_string(max_roi_samples));
  if (mode == "max" && !context.has_input(pooled_x_port)) return invalid("mode max needs X, whose largest values it is of");
  if (dy.rank != 4) return invalid("dY has shape " + dims_text(dy) + ", expected four dimensions");
  if (shape.rank != 1 || shape[0] != 4) return invalid("shape has shape " + dims_text(shape) + ", expected [4]");
  if (rois.rank != 2 || rois[1] != 4 || rois[0] != dy[0])
    return invalid("rois has shape " + dims_text(rois) + ", expected [" + std::to_string(dy[0]) + ", 4]");
  if (batches.rank != 1 || batches[0] != dy[0])
    return invalid("batch_indices has shape " + dims_text(batches) + ", expected [" + std::to_string(dy[0]) + "]");
  if (!context.known(pooled_shape_port)) return context.set_dynamic(0, 4), Status();
  Extents to;
  HEDDLE_PLUGIN_CHECK(constant_extents(context.input(pooled_shape_port), &to));
  HEDDLE_PLUGIN_CHECK(check_pooled(dy, to.dims()));
  if (context.has_input(pooled_x_port)) {
    const Dims x = context.dims(pooled_x_port);
    if (!std::equal(x.begin(), x.end(), to.dims().begin(), to.dims().end()))
      return invalid("X has shape " + dims_text(x) + ", shape says " + dims_text(to.dims()));
  }
  context.set_dims(0, to.dims());
  return {};
}

double sample_operations_of(int64_t sampling_ratio) {
  const double samples = static_cast<double>(sampling_ratio == 0 ? 2 : sampling_ratio);
  return 20 * samples * samples;
}
void roi_align_gradient_cost(CostContext& context) {
  context.set_flops(sample_operations_of(context.attributes.i("sampling_ratio")) * context.elements(0));
}

class RoiAlignGradient {
 public:
  Status create(const CreateContext& context) {
    options_ = RoiOptions(context.attributes);
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor &dy = *context.input(0), &dx = *context.output(0);
    varies_ = varies(context, {pooled_shape_port});
    const bool narrow = dx.dtype == HEDDLE_F16 || dx.dtype == HEDDLE_BF16;
    context.set_scratch(0, narrow ? static_cast<uint64_t>(dims_of(dx).count(2, 4)) * sizeof(float) : 0);
    tiling_.plan(context, static_cast<double>(dx.byte_size) + static_cast<double>(dy.byte_size), 32.0,
                 sample_operations_of(options_.sampling_ratio) * static_cast<double>(dy.element_count));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor &dy = *context.inputs[0], &batches = *context.inputs[pooled_batches_port], &dx = *context.outputs[0];
    if (varies_)
      HEDDLE_PLUGIN_CHECK(check_planned({{"shape", context.inputs[pooled_shape_port]}}, dx,
                                        [&](Extents* to) { return constant_extents(*context.inputs[pooled_shape_port], to); }));
    HEDDLE_PLUGIN_CHECK(check_pooled(dims_of(dy), dims_of(dx)));
    for (int64_t r = 0; r < batches.element_count; ++r)
      if (const int64_t batch = integer_at(batches, r); batch < 0 || batch >= dx.dims[0]) return index_outside(batch, dx.dims[0], 0);
    CancellationPoll poll(context);
    with_float(dx.dtype, [&](auto tag) { add_up<typename decltype(tag)::type>(context, begin, end, poll); });
    return poll.status();
  }

 private:
  template <class T>
  void add_up(const RunContext& context, int64_t begin, int64_t end, CancellationPoll& poll) const {
    const heddle_tensor &dy = *context.inputs[0], &dx = *context.outputs[0], &batches = *context.inputs[pooled_batches_port];
    const heddle_tensor* const x = pooled_x_port < context.input_count ? context.inputs[pooled_x_port] : nullptr;
    const int64_t channels = dx.dims[1], pixels = dx.dims[2] * dx.dims[3], bins = dy.dims[2] * dy.dims[3];
    const Tiling::Range range = tiling_.range(pixels == 0 ? 0 : dx.dims[0] * channels, begin, end);
    for (int64_t unit = range.first; unit < range.last && !poll.stopped(); ++unit) {
      T* const result = static_cast<T*>(dx.data) + unit * pixels;
      FloatSum<T>* sums;
      if constexpr (std::is_same_v<T, FloatSum<T>>)
        sums = result;
      else
        sums = thread_scratch<FloatSum<T>>(context);
      fill_cancellable(sums, pixels, FloatSum<T>(0), poll);
      for (int64_t r = 0; r < dy.dims[0] && !poll.stopped(); ++r) {
        if (integer_at(batches, r) != unit / channels) continue;
        const T* const arrived = static_cast<const T*>(dy.data) + (r * channels + unit % channels) * bins;
        const T* const map = x ? static_cast<const T*>(x->data) + unit * pixels : nullptr;
        add_region(context, r, arrived, map, sums, poll);
      }
      if constexpr (!std::is_same_v<T, FloatSum<T>>)
        for (int64_t i = 0; i < pixels; ++i) result[i] = from_arithmetic<T>(sums[i]);
    }
  }

  template <class T>
  void add_region(const RunContext& context, int64_t r, const T* arrived, const T* map, FloatSum<T>* sums, CancellationPoll& poll) const {
    const heddle_tensor &dy = *context.inputs[0], &dx = *context.outputs[0];
    const int64_t height = dy.dims[2], width = dy.dims[3];
    const RoiRegion region(options_, *context.inputs[pooled_rois_port], r, height, width);
    if (region.samples() == 0) return;
    for (int64_t bin = 0; bin < height * width; ++bin) {
      const auto value = static_cast<double>(to_arithmetic(arrived[bin]));
      double most = 0, weight_of_most = 0;
      int64_t place_of_most = -1;
      bool is_first = true;
      for (int64_t i = 0; i < region.samples_down; ++i) {
        if (poll.stops(16 * region.samples_across)) return;
        for (int64_t j = 0; j < region.samples_across; ++j) {
          const RoiCorners corners(dx.dims[2], dx.dims[3], region.row_of(bin / width, i), region.column_of(bin % width, j));
          if (!options_.takes_max) {
            for (int k = 0; k < corners.count; ++k)
              sums[corners.offsets[k]] += static_cast<FloatSum<T>>(value * corners.weights[k] / static_cast<double>(region.samples()));
            continue;
          }
          // A point outside counts as a zero. Among equal values the first counts.
          const auto consider = [&](double weighted, double weight, int64_t place) {
            if (!is_first && !(weighted > most)) return;
            is_first = false;
            most = weighted;
            weight_of_most = weight;
            place_of_most = place;
          };
          if (corners.count == 0) consider(0, 0, -1);
          for (int k = 0; k < corners.count; ++k)
            consider(corners.weights[k] * static_cast<double>(to_arithmetic(map[corners.offsets[k]])), corners.weights[k],
                     corners.offsets[k]);
        }
      }
      if (place_of_most >= 0) sums[place_of_most] += static_cast<FloatSum<T>>(value * weight_of_most);
    }
  }
  RoiOptions options_;
  bool varies_ = true;
  Tiling tiling_;
};

}  // namespace

void add_roi_align_gradient(Builder& plugin) {
  plugin.add(
      Op("RoiAlignGradient", "heddle")
          .doc("Adds what arrives at pooled regions to the pixels that they were pooled from. It is the gradient of RoiAlign by X.")
          .shapes("dX has the dims that shape holds")
          .in("dY", float_dtypes)
          .shape_operand("shape")
          .in("rois", float_dtypes)
          .in("batch_indices", dtypes<int64_t>(), nullptr)
          .optional("X", float_dtypes)
          .out("dX", {}, float_dtypes)
          .attribute("coordinate_transformation_mode", "half_pixel")
          .attribute("mode", "avg")
          .attribute("sampling_ratio", 0)
          .attribute("spatial_scale", 1.0)
          .infer(infer_roi_align_gradient)
          .cost<roi_align_gradient_cost>()
          .cpu<RoiAlignGradient>()
          .example("f32[1,1,1,1] = 8, i64[4] = 1 1 2 3, f32[1,4] = 1 1 2 2, i64[1] = 0; sampling_ratio=1 -> f32[1,1,2,3] = 0 0 0 0 8 0",
                   "by hand")
          .example("f32[1,1,1,1] = 8, i64[4] = 2 1 2 2, f32[1,4] = 1 1 2 2, i64[1] = 1; sampling_ratio=1, spatial_scale=0.5, "
                   "coordinate_transformation_mode=\"output_half_pixel\" -> f32[2,1,2,2] = 0 0 0 0 0 0 0 8",
                   "by hand")
          .example("f32[1,1,1,1] = 8, i64[4] = 1 1 2 2, f32[1,4] = 0.5 0.5 1.5 1.5, i64[1] = 0, f32[1,1,2,2] = 1 3 2 0; "
                   "sampling_ratio=1, mode=\"max\" -> f32[1,1,2,2] = 0 2 0 0",
                   "by hand"));
}

}  // namespace heddle::cpu
