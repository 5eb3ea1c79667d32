#include "generate/rows/row_launches.h"

#include <algorithm>

#include "shared/axes.h"
#include "shared/dims.h"
#include "shared/reduce_plan.h"

namespace heddle::cuda {
namespace {

using operators::ReducePlan;
using plugin::Status;

// The largest row that threads hold in registers: lanes, and elements of each in f32; half as many in f64.
struct Holders {
  int lanes, elements;
};
constexpr Holders holders[] = {{32, 32}, {256, 32}, {1024, 16}};
constexpr int64_t longest_alone = 32;  // of a row with strided elements, which one thread holds

ReducePlan rows_of(const RowView& view) {
  return operators::plan_reduction(view.x, view.set, 0, false);
}
bool neighbouring(const ReducePlan& rows) {
  return rows.folded == 1 || rows.outputs == 0 || (!rows.columns && rows.reduced.count <= 1);
}

// Returns false if rows are too long to be held, or have another layout.
bool hold(const ReducePlan& rows, RowShape* shape) {
  const int share = shape->working == HEDDLE_F64 || shape->input == HEDDLE_F64 ? 2 : 1;  // registers of an element
  shape->held = true;
  shape->strided = false;
  if (neighbouring(rows)) {
    shape->width = row_width(*shape, rows.folded);
    const int64_t packs = rows.folded / shape->width;
    for (const Holders& h : holders) {
      if (rows.folded > int64_t{h.lanes} * (h.elements / share)) continue;
      shape->lanes = static_cast<int>(std::min<int64_t>(h.lanes, power_above(packs)));
      shape->threads = std::max(shape->lanes, 128);
      shape->packs = static_cast<int>(power_above(blocks_of(packs, shape->lanes)));
      return true;
    }
    return false;
  }
  if (rows.reduced.count != 1 || rows.folded > longest_alone / share) return false;
  if (shape->scale != PerRow::none || shape->bias != PerRow::none) return false;
  shape->strided = true;
  shape->width = shape->lanes = 1;
  shape->threads = 128;
  shape->packs = static_cast<int>(power_above(rows.folded));
  return true;
}

}  // namespace

Status RowLaunches::look(const Operands& operands, RowView* view, RowShape* shape) const {
  view->x = *operands.input(0);
  return see(operands, view, shape);
}

Status RowLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  if (operands.writes_nothing() && !varies) return {};
  shape.input = operands.input(0)->dtype;
  shape.output = operands.output(0)->dtype;
  if (shape.input == HEDDLE_F64) shape.working = HEDDLE_F64;
  RowView view;
  HEDDLE_PLUGIN_CHECK(look(operands, &view, &shape));
  // Runs may have parameters of other sizes with rows of the same size.
  for (PerRow* const access : {&shape.scale, &shape.bias})
    if (varies && *access == PerRow::position) *access = PerRow::repeated;
  const ReducePlan rows = rows_of(view);
  shape.wide = varies || is_wide(view.x.element_count) || is_wide(rows.outputs);
  if (!varies && hold(rows, &shape)) {
    shape.one_channel = view.spatial % shape.width == 0;
    return row_source(shape, "rows", source);
  }
  known_.last.shape.kind = known_of(shape.kind);
  known_.last.shape.working = shape.working;
  known_.last.shape.prologue = shape.prologue;
  known_.last.epsilon = epsilon;
  HEDDLE_PLUGIN_CHECK(known_.choose(view.x, view.set, varies, "known", source));
  shape.held = false;
  elements_.shape = shape;
  return elements_.choose(view.x, view.set, varies, "rows", source, view.spatial);
}

Status RowLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  if (operands.writes_nothing()) return {};
  RowView view;
  HEDDLE_PLUGIN_CHECK(look(operands, &view, nullptr));
  const ReducePlan rows = rows_of(view);
  RowNumbers n;
  n.rows = rows.outputs;
  n.columns = rows.folded;
  n.epsilon = epsilon;
  n.scale_repeat = view.scale_repeat;
  n.bias_repeat = view.bias_repeat;
  n.groups = view.groups;
  n.channels = view.channels;
  n.spatial = view.spatial;
  if (!shape.held) {
    const uint64_t known = plan->take(static_cast<uint64_t>(rows.outputs * max_known_bytes));
    known_.plan(view.x, view.set, {Address::scratch, 0, 0, known}, plan);
    elements_.plan(view.x, view.set, n, known, plan);
    return {};
  }
  if (shape.strided) n.inner = rows.reduced.items[0].input_stride;
  const int64_t blocks = blocks_of(rows.outputs, shape.threads / shape.lanes);
  ParameterWriter writer(nullptr, &plan->add(0, static_cast<unsigned int>(shape.threads), blocks));
  row_parameters(shape, n, writer);
  return {};
}

// ---------------------------------------------------------------- views

Status AxisLaunches::see(const Operands&, RowView* view, RowShape*) const {
  int at = 0;
  if (view->x.rank == 0 && (axis == 0 || axis == -1)) return {};
  if (!operators::normalize_axis(axis, view->x.rank, &at)) return operators::axis_outside("axis", axis, view->x.rank);
  view->set = 1u << at;
  return {};
}

Status AxesLaunches::see(const Operands&, RowView* view, RowShape*) const {
  for (const int64_t axis : axes) {
    int at = 0;
    if (!operators::normalize_axis(axis, view->x.rank, &at)) return operators::axis_outside("axes", axis, view->x.rank);
    view->set |= 1u << at;
  }
  return {};
}

namespace {

// Makes the view of rows of `columns` neighbouring elements each.
void as_matrix(int64_t rows, int64_t columns, RowView* view) {
  view->dims[0] = rows;
  view->dims[1] = columns;
  view->x.rank = 2;
  view->x.dims = view->dims;
  view->x.layout = {};
  view->set = 2;
}

PerRow access_of(const heddle_tensor* parameter, int64_t columns) {
  if (!parameter) return PerRow::none;
  if (parameter->element_count == columns) return PerRow::position;
  return parameter->element_count == 1 ? PerRow::one : PerRow::repeated;
}

}  // namespace

Status TrailingLaunches::see(const Operands& operands, RowView* view, RowShape* shape) const {
  const heddle_tensor& x = *operands.input(0);
  int at = 0;
  if (!operators::normalize_axis(axis, x.rank, &at)) return operators::axis_outside("axis", axis, x.rank);
  const operators::Dims dims = operators::dims_of(x);
  const int64_t rows = dims.count(0, at), columns = dims.count(at, x.rank);
  as_matrix(rows, columns, view);
  const heddle_tensor *scale = operands.input(1), *bias = operands.input(2);
  if (scale) view->scale_repeat = std::max<int64_t>(scale->element_count, 1);
  if (bias) view->bias_repeat = std::max<int64_t>(bias->element_count, 1);
  if (!shape) return {};
  shape->scale = access_of(scale, columns);
  shape->bias = access_of(bias, columns);
  if (scale) shape->scale_dtype = scale->dtype;
  if (bias) shape->bias_dtype = bias->dtype;
  if (operands.output(1)) shape->mean = operands.output(1)->dtype;
  if (operands.output(2)) shape->inverse = operands.output(2)->dtype;
  return {};
}

Status GroupLaunches::see(const Operands& operands, RowView* view, RowShape* shape) const {
  const heddle_tensor& x = *operands.input(0);
  const operators::Dims dims = operators::dims_of(x);
  view->groups = groups > 0 ? groups : dims[1];
  view->channels = view->groups > 0 ? dims[1] / view->groups : 0;
  view->spatial = std::max<int64_t>(dims.count(2, x.rank), 1);
  as_matrix(dims[0] * view->groups, x.element_count == 0 ? 0 : view->channels * view->spatial, view);
  if (x.element_count == 0) view->dims[0] = 0;
  if (!shape) return {};
  shape->scale = shape->bias = PerRow::channel;
  shape->scale_dtype = operands.input(1)->dtype;
  shape->bias_dtype = operands.input(2)->dtype;
  return {};
}

}  // namespace heddle::cuda
