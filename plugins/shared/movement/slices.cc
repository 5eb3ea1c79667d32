#include "shared/movement/slices.h"

#include <algorithm>
#include <string>

#include "shared/axes.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"

namespace heddle::operators {
namespace {

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

}  // namespace

Status read_slices(const heddle_tensor* const* inputs, uint32_t input_count, AxisSlice* slices) {
  const Dims from = dims_of(*inputs[0]);
  for (int i = 0; i < from.rank; ++i) slices[i] = {0, 1, from[i]};
  const auto operand = [&](uint32_t port) { return port < input_count ? inputs[port] : nullptr; };
  const heddle_tensor &starts = *inputs[slice_starts], &ends = *inputs[slice_ends];
  const heddle_tensor *axes = operand(slice_axes), *steps = operand(slice_steps);
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

Status sliced_box(const heddle_tensor* const* inputs, uint32_t input_count, const heddle_tensor& y, Box* box) {
  AxisSlice slices[HEDDLE_MAX_RANK];
  HEDDLE_PLUGIN_CHECK(read_slices(inputs, input_count, slices));
  const heddle_tensor& x = *inputs[0];
  const auto width = static_cast<int64_t>(byte_width(x.dtype));
  int64_t source[HEDDLE_MAX_RANK], target[HEDDLE_MAX_RANK];
  strides_of(x, source);
  strides_of(y, target);
  *box = Box(width);
  if (y.element_count == 0) return box->add(0, 0, 0), Status();
  for (int axis = 0; axis < y.rank; ++axis) {
    const AxisSlice& s = slices[axis];
    box->source_first += s.start * source[axis] * width;
    box->add(s.extent, s.extent > 1 ? s.step * source[axis] * width : 0, target[axis] * width);
  }
  return {};
}

Status check_slices(const heddle_tensor* const* inputs, uint32_t input_count, const heddle_tensor& y) {
  const auto operand = [&](uint32_t port) { return port < input_count ? inputs[port] : nullptr; };
  return check_planned(
      {{"starts", operand(slice_starts)}, {"ends", operand(slice_ends)}, {"axes", operand(slice_axes)}, {"steps", operand(slice_steps)}}, y,
      [&](Extents* to) { return slice_extents(inputs, input_count, to); });
}

}  // namespace heddle::operators
