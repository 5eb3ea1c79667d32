// Slice: every step-th element between start and end along some axes, backwards for negative steps.
#include <algorithm>

#include "families.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/dense_layouts.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "support/copy_kernel.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

constexpr uint32_t starts_port = 1, ends_port = 2, axes_port = 3, steps_port = 4;

// Where one axis is read: element i of the output is element start + i * step of the input.
struct AxisSlice {
  int64_t start = 0, step = 1, extent = 0;
};

// ONNX clamps: an end or start beyond the axis means its edge; INT64_MAX and INT64_MIN are common for "to the edge".
AxisSlice slice_axis(int64_t start, int64_t end, int64_t step, int64_t extent) {
  if (extent == 0) return {0, step, 0};
  if (start < 0) start = start < -extent ? -1 : start + extent;
  if (end < 0) end = end < -extent ? -1 : end + extent;
  start = std::clamp<int64_t>(start, 0, step < 0 ? extent - 1 : extent);
  end = step < 0 ? std::clamp<int64_t>(end, -1, extent - 1) : std::clamp<int64_t>(end, 0, extent);
  const int64_t distance = step < 0 ? start - end : end - start;
  if (distance <= 0) return {0, step, 0};
  const uint64_t stride = step < 0 ? 0 - static_cast<uint64_t>(step) : static_cast<uint64_t>(step);
  return {start, step, static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / stride) + 1};
}

// The slices of all axes from the operands, whose content is readable. Errors name the operand.
Status read_slices(const heddle_tensor* const* inputs, uint32_t input_count, AxisSlice* slices) {
  const Dims from = dims_of(*inputs[0]);
  for (int i = 0; i < from.rank; ++i) slices[i] = {0, 1, from[i]};
  const auto operand = [&](uint32_t port) { return port < input_count ? inputs[port] : nullptr; };
  const heddle_tensor &starts = *inputs[starts_port], &ends = *inputs[ends_port];
  const heddle_tensor *axes = operand(axes_port), *steps = operand(steps_port);
  const int64_t count = starts.element_count;
  if (ends.element_count != count || (axes && axes->element_count != count) || (steps && steps->element_count != count))
    return invalid("starts, ends, axes and steps differ in length");
  if (!axes && count > from.rank)
    return invalid("starts has " + std::to_string(count) + " entries for an input of rank " + std::to_string(from.rank));
  uint32_t seen = 0;
  for (int64_t i = 0; i < count; ++i) {
    int axis = static_cast<int>(i);
    if (axes && !normalize_axis(integer_at(*axes, i), from.rank, &axis)) return axis_outside("axes", integer_at(*axes, i), from.rank);
    if (seen & (1u << axis)) return invalid("axes names axis " + std::to_string(axis) + " twice");
    seen |= 1u << axis;
    const int64_t step = steps ? integer_at(*steps, i) : 1;
    if (step == 0) return invalid("the step of axis " + std::to_string(axis) + " is 0");
    slices[axis] = slice_axis(integer_at(starts, i), integer_at(ends, i), step, from[axis]);
  }
  return {};
}

Status slice_extents(const heddle_tensor* const* inputs, uint32_t input_count, Extents* to) {
  AxisSlice slices[HEDDLE_MAX_RANK];
  HEDDLE_PLUGIN_CHECK(read_slices(inputs, input_count, slices));
  for (int i = 0; i < inputs[0]->rank; ++i) to->push(slices[i].extent);
  return {};
}

Status infer_slice(InferContext& context) {
  const Dims from = context.dims(0);
  for (uint32_t i = starts_port; i <= steps_port; ++i) {
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
    for (uint32_t i = starts_port; i < inputs; ++i) planned_ = planned_ && context.is_constant(i);
    if (planned_) HEDDLE_PLUGIN_CHECK(plan(context.inputs(), inputs, y, &copy_, &offset_));
    tiling_.plan(context, 2 * static_cast<int64_t>(y.byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    if (planned_) return run_copy(context, copy_, offset_, begin, end);
    const auto operand = [&](uint32_t port) { return port < context.input_count ? context.inputs[port] : nullptr; };
    HEDDLE_PLUGIN_CHECK(check_planned(
        {{"starts", operand(starts_port)}, {"ends", operand(ends_port)}, {"axes", operand(axes_port)}, {"steps", operand(steps_port)}},
        *context.outputs[0], [&](Extents* to) { return slice_extents(context.inputs, context.input_count, to); }));
    StridedCopy copy;
    int64_t offset = 0;
    HEDDLE_PLUGIN_CHECK(plan(context.inputs, context.input_count, *context.outputs[0], &copy, &offset));
    return run_copy(context, copy, offset, begin, end);
  }
  static std::vector<heddle_format> formats(const CreateContext& context) { return uniform_formats(context, 1, 1); }

 private:
  // The copy, and how many bytes of the input stand in front of its first element.
  static Status plan(const heddle_tensor* const* inputs, uint32_t input_count, const heddle_tensor& y, StridedCopy* copy, int64_t* offset) {
    AxisSlice slices[HEDDLE_MAX_RANK];
    HEDDLE_PLUGIN_CHECK(read_slices(inputs, input_count, slices));
    const heddle_tensor& x = *inputs[0];
    const auto width = static_cast<int64_t>(byte_width(x.dtype));
    int64_t source[HEDDLE_MAX_RANK], target[HEDDLE_MAX_RANK];
    strides_of(x, source);
    strides_of(y, target);
    *copy = StridedCopy(width);
    *offset = 0;
    if (y.element_count == 0) return copy->add(0, 0, 0), copy->finish(), Status();
    for (int axis = 0; axis < y.rank; ++axis) {
      const AxisSlice& s = slices[axis];
      *offset += s.start * source[axis] * width;
      copy->add(s.extent, s.extent > 1 ? s.step * source[axis] * width : 0, target[axis] * width);
    }
    copy->finish();
    return {};
  }
  bool planned_ = false;
  int64_t offset_ = 0;
};

}  // namespace

void add_slice(Builder& plugin) {
  plugin.add(Op("Slice", "", 13)
                 .doc("elements start, start + step, ... before end along axes")
                 .in("data")
                 .shape_operand("starts", index_dtypes)
                 .shape_operand("ends", index_dtypes)
                 .shape_operand("axes", index_dtypes, true)
                 .shape_operand("steps", index_dtypes, true)
                 .out("output")
                 .infer(infer_slice)
                 .cpu<Slice>()
                 .example("f32[2,3] = 1 2 3 4 5 6, i64[2] = 0 1, i64[2] = 1 3 -> f32[1,2] = 2 3", "ONNX Runtime")
                 .example("f32[5] = 1 2 3 4 5, i64[1] = -1, i64[1] = -6, i64[1] = 0, i64[1] = -2 -> f32[3] = 5 3 1", "ONNX Runtime")
                 .example("i32[2,3] = 1 0 0 1 0 1, i32[1] = 1, i32[1] = 9, i32[1] = -1 -> i32[2,2] = 0 0 0 1", "ONNX Runtime")
                 .example("f32[5] = 1 2 3 4 5, i32[1] = 0, i32[1] = 5, i32[1] = 0, i32[1] = 3 -> f32[2] = 1 4", "by hand"));
}

}  // namespace heddle::cpu
