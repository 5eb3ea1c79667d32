// Slice: every step-th element between start and end along some axes, backwards for negative steps.
#include "families.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/dense_layouts.h"
#include "shared/dims.h"
#include "shared/movement/slices.h"
#include "support/copy_kernel.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

Status infer_slice(InferContext& context) {
  const Dims from = context.dims(0);
  for (uint32_t i = slice_starts; i <= slice_steps; ++i) {
    if (!context.has_input(i)) continue;
    if (context.dims(i).rank != 1) return not_one_dimensional("an operand", context.dims(i));
    if (!context.known(i)) return context.set_dynamic(0, from.rank), Status();
  }
  Extents to;
  HEDDLE_PLUGIN_CHECK(slice_extents(context.inputs(), context.input_count(), &to));
  context.set_dims(0, to.dims());
  return {};
}

class Slice : public CopyKernel {
 public:
  Status prepare(PrepareContext& context) {
    const heddle_tensor& y = *context.output(0);
    const uint32_t inputs = context.input_count();
    planned_ = true;
    for (uint32_t i = slice_starts; i < inputs; ++i) planned_ = planned_ && context.is_constant(i);
    if (planned_) HEDDLE_PLUGIN_CHECK(make_copy(context.inputs(), inputs, y, &copy_));
    tiling_.plan(context, 2 * static_cast<int64_t>(y.byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    if (planned_) return run_copy(context, copy_, begin, end);
    HEDDLE_PLUGIN_CHECK(check_slices(context.inputs, context.input_count, *context.outputs[0]));
    StridedCopy copy;
    HEDDLE_PLUGIN_CHECK(make_copy(context.inputs, context.input_count, *context.outputs[0], &copy));
    return run_copy(context, copy, begin, end);
  }
  static std::vector<heddle_format> formats(const CreateContext& context) { return uniform_formats(context, 1, 1); }

 private:
  static Status make_copy(const heddle_tensor* const* inputs, uint32_t input_count, const heddle_tensor& y, StridedCopy* copy) {
    Box box;
    HEDDLE_PLUGIN_CHECK(sliced_box(inputs, input_count, y, &box));
    *copy = StridedCopy(box);
    return {};
  }
  bool planned_ = false;
};

// Zeros to which dY is added: in this form a sum of gradients can leave out the zeros.
Status slice_gradient(GradientContext& g) {
  g.give(0, g.emit("ScatterSlice", {zeros_like_input(g, 0), g.dy(0), g.x(slice_starts), g.x(slice_ends), g.x(slice_axes), g.x(slice_steps)},
                   {{"reduction", "add"}}, "heddle"));
  return {};
}

}  // namespace

void add_slice(Builder& plugin) {
  plugin.add(Op("Slice", "", 13)
                 .doc("Takes elements along axes from starts up to but without ends, in steps. Negative positions count from the end, and "
                      "those outside are limited to the tensor.")
                 .shapes("output has the dims of data, and on each of axes ceil((end - start) / step)")
                 .in("data")
                 .shape_operand("starts", index_dtypes)
                 .shape_operand("ends", index_dtypes)
                 .shape_operand("axes", index_dtypes, true)
                 .shape_operand("steps", index_dtypes, true)
                 .out("output")
                 .infer(infer_slice)
                 .gradient<slice_gradient>()
                 .cpu<Slice>()
                 .example("f32[2,3] = 1 2 3 4 5 6, i64[2] = 0 1, i64[2] = 1 3 -> f32[1,2] = 2 3", "ONNX Runtime")
                 .example("f32[5] = 1 2 3 4 5, i64[1] = -1, i64[1] = -6, i64[1] = 0, i64[1] = -2 -> f32[3] = 5 3 1", "ONNX Runtime")
                 .example("i32[2,3] = 1 0 0 1 0 1, i32[1] = 1, i32[1] = 9, i32[1] = -1 -> i32[2,2] = 0 0 0 1", "ONNX Runtime")
                 .example("f32[5] = 1 2 3 4 5, i32[1] = 0, i32[1] = 5, i32[1] = 0, i32[1] = 3 -> f32[2] = 1 4", "by hand"));
}

}  // namespace heddle::cpu
