#include "shared/movement/pads.h"

#include <string>

#include "shared/axes.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"

namespace heddle::operators {
namespace {

constexpr int64_t max_pad = int64_t{1} << 60;  // of an axis: positions are sums of pads and extents

// Reads the pads of every axis from the operands, whose content must be readable.
Status read_pads(const heddle_tensor& pads, const heddle_tensor* axes, int rank, Pads* result) {
  const int64_t count = axes ? axes->element_count : rank;
  if (pads.element_count != 2 * count)
    return invalid("pads has " + std::to_string(pads.element_count) + " entries, expected two for each of " + std::to_string(count) +
                   " axes");
  uint32_t seen = 0;
  for (int64_t i = 0; i < count; ++i) {
    int axis = static_cast<int>(i);
    if (axes && !normalize_axis(integer_at(*axes, i), rank, &axis)) return axis_outside("axes", integer_at(*axes, i), rank);
    if (seen & (1u << axis)) return invalid("axes names axis " + std::to_string(axis) + " twice");
    seen |= 1u << axis;
    result->before[axis] = integer_at(pads, i);
    result->after[axis] = integer_at(pads, i + count);
    for (const int64_t pad : {result->before[axis], result->after[axis]})
      if (pad < -max_pad || pad > max_pad) return invalid("pads has " + std::to_string(pad) + " for axis " + std::to_string(axis));
  }
  return {};
}

}  // namespace

Status parse_pad_mode(const Attributes& attributes, PadMode* mode) {
  const std::string text = attributes.s("mode");
  if (text == "constant")
    *mode = PadMode::constant;
  else if (text == "edge")
    *mode = PadMode::edge;
  else if (text == "reflect")
    *mode = PadMode::reflect;
  else if (text == "wrap")
    *mode = PadMode::wrap;
  else
    return invalid("mode is \"" + text + "\", expected constant, edge, reflect or wrap");
  return {};
}

Status pad_extents(Dims from, const heddle_tensor& operand, const heddle_tensor* axes, PadMode mode, Pads* pads, Extents* to) {
  HEDDLE_PLUGIN_CHECK(read_pads(operand, axes, from.rank, pads));
  for (int i = 0; i < from.rank; ++i) {
    int64_t dim = from[i];
    if (__builtin_add_overflow(dim, pads->before[i], &dim) || __builtin_add_overflow(dim, pads->after[i], &dim) || dim < 0)
      return invalid("pads " + std::to_string(pads->before[i]) + " and " + std::to_string(pads->after[i]) + " do not fit axis " +
                     std::to_string(i) + " of " + dims_text(from));
    if (from[i] == 0 && dim > 0 && mode != PadMode::constant)
      return invalid("axis " + std::to_string(i) + " is empty: only mode constant can pad it");
    to->push(dim);
  }
  return {};
}

int64_t source_position(int64_t at, int64_t extent, PadMode mode) {
  if (at >= 0 && at < extent) return at;
  switch (mode) {
    case PadMode::constant:
      return -1;
    case PadMode::edge:
      return at < 0 ? 0 : extent - 1;
    case PadMode::wrap: {
      const int64_t r = at % extent;
      return r < 0 ? r + extent : r;
    }
    default: {
      if (extent == 1) return 0;
      const int64_t period = 2 * (extent - 1);
      int64_t r = at % period;
      if (r < 0) r += period;
      return r < extent ? r : period - r;
    }
  }
}

PadPlan pad_plan(const heddle_tensor& x, const heddle_tensor& y, const Pads& pads) {
  PadPlan plan;
  plan.rank = x.rank;
  for (int i = 0; i < x.rank; ++i) {
    const int axis = x.layout.rank == x.rank ? x.layout.order[i] : i;
    plan.in[i] = x.dims[axis];
    plan.out[i] = y.dims[axis];
    plan.before[i] = pads.before[axis];
  }
  plan.block = static_cast<int64_t>(byte_width(x.dtype));
  while (plan.rank > 1 && plan.before[plan.rank - 1] == 0 && plan.in[plan.rank - 1] == plan.out[plan.rank - 1])
    plan.block *= plan.in[--plan.rank];
  if (plan.rank == 0) {
    plan.in[0] = plan.out[0] = 1;
    plan.before[0] = 0;
    plan.rank = 1;
  }
  int64_t stride = plan.block;
  for (int i = plan.rank - 1; i >= 0; --i) {
    plan.stride[i] = stride;
    stride *= plan.in[i];
    if (i + 1 < plan.rank) plan.rows *= plan.out[i];
  }
  return plan;
}

}  // namespace heddle::operators
