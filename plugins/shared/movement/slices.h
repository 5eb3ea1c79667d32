// The elements that Slice reads: its operands, and the box (shared/movement/box.h) that they mean. Inputs are data, starts, ends, axes and
// steps. Pure.
#pragma once

#include <cstdint>

#include "shared/computed_extents.h"
#include "shared/movement/box.h"

namespace heddle::operators {

constexpr uint32_t slice_starts = 1, slice_ends = 2, slice_axes = 3, slice_steps = 4;

// The positions read along one axis: element i of the output is element start + i * step of the input.
struct AxisSlice {
  int64_t start = 0, step = 1, extent = 0;
};

// The content of the operands must be readable. Errors name the operand.
Status read_slices(const heddle_tensor* const* inputs, uint32_t input_count, AxisSlice* slices);  // of all axes
Status slice_extents(const heddle_tensor* const* inputs, uint32_t input_count, Extents* to);
Status sliced_box(const heddle_tensor* const* inputs, uint32_t input_count, const heddle_tensor& y, Box* box);
// Call it in run. Errors: the operands do not lead to the extents of `y`.
Status check_slices(const heddle_tensor* const* inputs, uint32_t input_count, const heddle_tensor& y);

}  // namespace heddle::operators
