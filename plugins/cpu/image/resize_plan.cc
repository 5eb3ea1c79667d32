// Resolves Resize's extents and scales into tables.
#include "image/resize_plan.h"

#include <algorithm>

namespace heddle::cpu {

namespace {

constexpr uint64_t table_entry_bytes = sizeof(double) + sizeof(int32_t);

// Positions first + o / times * step.
struct Spacing {
  int64_t first, times, step;
};
bool is_evenly_spaced(const ResizePlan::Axis& axis, Spacing* spacing) {
  if (axis.taps == 0) return *spacing = {0, 1, 1}, true;
  if (axis.taps != 1 || axis.output == 0) return false;
  const int32_t* const positions = axis.positions;
  if (std::any_of(positions, positions + axis.output, [](int32_t p) { return p < 0; })) return false;  // outside of a cropped input
  const int64_t times = std::find_if(positions, positions + axis.output, [&](int32_t p) { return p != positions[0]; }) - positions;
  *spacing = {positions[0], times, times < axis.output ? positions[times] - positions[0] : 0};
  for (int64_t o = 0; o < axis.output; ++o)
    if (positions[o] != spacing->first + o / times * spacing->step) return false;
  return axis.output % times == 0;
}

void make_copy(int64_t width, ResizePlan* plan) {
  operators::Box box(width);
  int64_t target = plan->block * width;
  box.add(plan->block, width, width);
  for (int i = plan->rank - 1; i >= 0; --i) {
    const ResizePlan::Axis& axis = plan->axes[i];
    Spacing spacing;
    if (!is_evenly_spaced(axis, &spacing)) return;
    box.source_first += spacing.first * axis.stride * width;
    box.add(axis.output / spacing.times, spacing.step * axis.stride * width, spacing.times * target);
    box.add(spacing.times, 0, target);
    target *= axis.output;
  }
  plan->is_copy = true;
  plan->copy = StridedCopy(box);
}

// Turns the table of the column, by position, into one by tap at the given places. S: the type of the sums.
template <class S>
void turn_column(void* places, int32_t* positions, ResizePlan* plan) {
  const ResizePlan::Axis& column = plan->column();
  auto* const weights = static_cast<S*>(places);
  plan->columns = {positions, weights, column.taps, column.output, plan->block};
  for (int64_t o = 0; o < column.output; ++o)
    for (int64_t t = 0; t < column.taps; ++t) {
      const int64_t from = o * column.taps + t, to = t * column.output + o;
      plan->crops = plan->crops || column.positions[from] < 0;
      positions[to] = std::max(column.positions[from], 0);
      weights[to] = static_cast<S>(column.weights[from]);
    }
}

}  // namespace

uint64_t table_bytes(const ResizeNode& node, Dims input, Dims output) {
  // The column's table is there twice.
  return 2 * static_cast<uint64_t>(table_entries(node, input, output)) * table_entry_bytes;
}

Status make_resize_plan(const ResizeNode& node, const ResizeAxis* axes, const heddle_tensor& x, void* tables, uint64_t bytes,
                        ResizePlan* made) {
  ResizePlan& plan = *made = ResizePlan();
  const bool crops = node.options.coordinates == Coordinates::tf_crop_and_resize;
  int64_t entries = 0;
  for (int i = 0; i < x.rank; ++i) {
    const ResizeAxis& axis = axes[x.layout.rank == x.rank ? x.layout.order[i] : i];
    const bool moved = axis.scale != 1 || axis.input != axis.output || (crops && (axis.start != 0 || axis.end != 1));
    plan.axes[i] = {axis.input, axis.output, 1, moved ? tap_count(node.options, axis) : 0, nullptr, nullptr};
    entries += axis.output * plan.axes[i].taps;
    plan.interpolates = plan.interpolates || moved;
  }
  if (static_cast<uint64_t>(entries) > bytes / table_entry_bytes / 2)
    return invalid("the scales need a kernel wider than the extents of the output told: " + std::to_string(entries) + " weights");
  auto* weights = static_cast<double*>(tables);
  auto* positions = reinterpret_cast<int32_t*>(weights + 2 * entries);
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
  if (node.options.interpolation == Interpolation::nearest || !plan.interpolates)
    make_copy(static_cast<int64_t>(byte_width(x.dtype)), &plan);
  if (plan.is_copy || plan.column().taps == 0) return {};
  if (sums_in_f64(x.dtype))
    turn_column<double>(weights, positions, &plan);
  else
    turn_column<float>(weights, positions, &plan);
  return {};
}

}  // namespace heddle::cpu
