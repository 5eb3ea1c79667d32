#include "generate/image/roi_align_launches.h"

#include "generate/dtype_names.h"
#include "generate/kernel_text.h"

namespace heddle::cuda {

using plugin::Status;

namespace {

constexpr int roi_threads = 128;

}  // namespace

void RoiAlignLaunches::parameters(const Operands& operands, ParameterWriter& writer) const {
  const heddle_tensor &x = *operands.input(0), &y = *operands.output(0);
  writer.address("", stored_type(dtype_), "y", Address::output, 0);
  writer.address("const ", stored_type(dtype_), "x", Address::input, 0);
  writer.address("const ", stored_type(dtype_), "rois", Address::input, 1);
  writer.address("const ", "i64", "batch_indices", Address::input, 2);
  writer.fault();
  writer.number("count", y.element_count);
  writer.number("batches", x.dims[0]);
  writer.number("channels", x.dims[1]);
  writer.number("height", x.dims[2]);
  writer.number("width", x.dims[3]);
  writer.number("bins_down", y.dims[2]);
  writer.number("bins_across", y.dims[3]);
  writer.number("sampling_ratio", options.sampling_ratio);
  writer.number("max_samples", operators::max_roi_samples);
  writer.number("spatial_scale", options.spatial_scale);
}

Status RoiAlignLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  if (operands.writes_nothing() && !varies) return {};
  dtype_ = operands.input(0)->dtype;
  KernelText text("roi", varies || is_wide(operands.output(0)->element_count));
  text.type("T", stored_type(dtype_));
  text.type("C", compute_type(dtype_));
  text.function("C lowest()", "return -(C)float_of(0x7f800000u);");
  text.constant("MAX", options.takes_max);
  text.constant("HALF_PIXEL", options.half_pixel);
  parameters(operands, text.parameters);
  text.kernel("align", "roi_align<F>");
  source->contract = false;  // to get the host's places
  text.write({"fault", "grouped_sum", "roi_align"}, source);
  return {};
}

Status RoiAlignLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  if (operands.writes_nothing()) return {};
  ParameterWriter writer(nullptr, &plan->add(0, roi_threads, blocks_of(operands.output(0)->element_count, roi_threads)));
  parameters(operands, writer);
  return {};
}

}  // namespace heddle::cuda
