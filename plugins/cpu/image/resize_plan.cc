// Resolves Resize's extents and scales into tables.
#include "image/resize_plan.h"

#include <algorithm>

namespace heddle::cpu {

namespace {

constexpr uint64_t table_entry_bytes = sizeof(double) + sizeof(int32_t);

}  // namespace

uint64_t table_bytes(const ResizeNode& node, Dims input, Dims output) {
  return static_cast<uint64_t>(table_entries(node, input, output)) * table_entry_bytes;
}

Status make_resize_plan(const ResizeNode& node, const ResizeAxis* axes, const heddle_tensor& x, void* tables, uint64_t bytes,
                        ResizePlan* made) {
  ResizePlan& plan = *made = {};
  const bool crops = node.options.coordinates == Coordinates::tf_crop_and_resize;
  int64_t entries = 0;
  for (int i = 0; i < x.rank; ++i) {
    const ResizeAxis& axis = axes[x.layout.rank == x.rank ? x.layout.order[i] : i];
    const bool moved = axis.scale != 1 || axis.input != axis.output || (crops && (axis.start != 0 || axis.end != 1));
    plan.axes[i] = {axis.input, axis.output, 1, moved ? tap_count(node.options, axis) : 0, nullptr, nullptr};
    entries += axis.output * plan.axes[i].taps;
    plan.interpolates = plan.interpolates || moved;
  }
  if (static_cast<uint64_t>(entries) > bytes / table_entry_bytes)
    return invalid("the scales need a kernel wider than the extents of the output told: " + std::to_string(entries) + " weights");
  auto* weights = static_cast<double*>(tables);
  auto* positions = reinterpret_cast<int32_t*>(weights + entries);
  for (int i = 0; i < x.rank; ++i) {
    ResizePlan::Axis& axis = plan.axes[i];
    if (axis.taps == 0) continue;
    fill_taps(node.options, axes[x.layout.rank == x.rank ? x.layout.order[i] : i], axis.taps, positions, weights);
    axis.positions = positions;
    axis.weights = weights;
    positions += axis.output * axis.taps;
    weights += axis.output * axis.taps;
  }
  plan.rank = x.rank;
  while (plan.rank > 1 && plan.axes[plan.rank - 1].taps == 0) plan.block *= plan.axes[--plan.rank].input;
  plan.rank = std::max(plan.rank, 1);
  int64_t stride = plan.block;
  for (int i = plan.rank - 1; i >= 0; --i) {
    plan.axes[i].stride = stride;
    stride *= plan.axes[i].input;
    if (i + 1 < plan.rank) plan.rows *= plan.axes[i].output;
  }
  return {};
}

}  // namespace heddle::cpu
