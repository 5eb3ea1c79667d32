// The extents of outputs that the content of operands decides: rules for inference, and for kernels that check a run by them. Pure.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

#include "shared/computed_extents.h"

namespace heddle::operators {

// The input's extents broadcast together with `shape` (Expand).
Status expand_extents(Dims from, const heddle_tensor& shape, Extents* to);
Status tile_extents(Dims from, const heddle_tensor& repeats, Extents* to);
// The extents of `indices` with `depth` before `axis`.
Status one_hot_extents(Dims indices, int axis, const heddle_tensor& operand, Extents* to);
Status constant_extents(const heddle_tensor& shape, Extents* to);

// The extents that `operand` gives (Reshape). `keeps_zero`: 0 is an extent, not a copy of the input's.
Status reshape_extents(Dims from, const heddle_tensor* operand, bool keeps_zero, Extents* to);
// Without `axes` (null) all dimensions of one element are removed.
Status squeeze_extents(Dims from, const heddle_tensor* axes, bool, Extents* to);
Status unsqueeze_extents(Dims from, const heddle_tensor* axes, bool, Extents* to);

// The number of elements that Range gives.
template <class T>
Status range_count(T start, T limit, T delta, int64_t* count) {
  if (delta == T(0)) return invalid("delta is 0");
  if constexpr (std::is_floating_point_v<T>) {
    const double steps = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta));
    if (!(steps < 4e18)) return invalid("the range has more elements than fit into memory, or no end");
    *count = steps > 0 ? static_cast<int64_t>(steps) : 0;
  } else {
    const bool empty = delta > 0 ? limit <= start : limit >= start;
    const auto low = static_cast<uint64_t>(delta > 0 ? start : limit), high = static_cast<uint64_t>(delta > 0 ? limit : start);
    const uint64_t stride = delta > 0 ? static_cast<uint64_t>(delta) : 0 - static_cast<uint64_t>(delta);
    const uint64_t steps = empty ? 0 : (high - low - 1) / stride + 1;
    if (steps > INT64_MAX / 8) return invalid("the range has more elements than fit into memory");
    *count = static_cast<int64_t>(steps);
  }
  return {};
}

}  // namespace heddle::operators
