#include "generate/rows/row_elements.h"

#include <algorithm>

#include "shared/reduce_plan.h"

namespace heddle::cuda {
namespace {

using operators::ReducePlan;
using plugin::Status;

// Returns the width of the widest element that is read or written.
size_t widest_of(const RowShape& shape) {
  size_t widest = std::max(plugin::byte_width(shape.input), plugin::byte_width(shape.output));
  for (const FusedExpression* fused : {&shape.prologue, &shape.epilogue})
    widest = std::max(widest, FusedExpressionText(*fused, "").widest());
  if (shape.scale == PerRow::position) widest = std::max(widest, plugin::byte_width(shape.scale_dtype));
  if (shape.bias == PerRow::position) widest = std::max(widest, plugin::byte_width(shape.bias_dtype));
  return widest;
}

// Writes the groups of both kinds, outermost first, in the order in which elements are stored; groups of extent 1 come before them until
// there are `at_least` groups. Returns how many there are.
int order_groups(const ReducePlan& rows, int at_least, RowNumbers* n) {
  const ReducePlan::Groups& kept = rows.kept;
  const ReducePlan::Groups& reduced = rows.reduced;
  const int count = std::max(kept.count + reduced.count, at_least);
  std::fill_n(n->extents, HEDDLE_MAX_RANK, 1);
  int64_t row = 1, position = 1;
  for (int k = kept.count, r = reduced.count, to = count - 1; k > 0 || r > 0; --to) {  // the innermost first
    const bool is_row = r == 0 || (k > 0 && kept.items[k - 1].input_stride < reduced.items[r - 1].input_stride);
    const ReducePlan::Group& group = is_row ? kept.items[--k] : reduced.items[--r];
    n->extents[to] = group.extent;
    n->row_strides[to] = is_row ? row : 0;
    n->position_strides[to] = is_row ? 0 : position;
    (is_row ? row : position) *= group.extent;
  }
  return count;
}

}  // namespace

int row_width(const RowShape& shape, int64_t row) {
  int width = static_cast<int>(16 / widest_of(shape));
  while (row % width != 0) width /= 2;
  return width;
}

Status RowElements::choose(const heddle_tensor& x, uint32_t set, bool varies, const std::string& name, KernelSource* source,
                           int64_t spatial) {
  const ReducePlan rows = operators::plan_reduction(x, set, 0, false);
  RowNumbers n;
  shape.held = shape.strided = false;
  shape.threads = 256;
  shape.wide = varies || is_wide(x.element_count);
  shape.groups = order_groups(rows, varies ? std::max(x.rank, 1) : 1, &n);
  shape.width = varies ? 1 : row_width(shape, n.extents[shape.groups - 1]);
  shape.one_channel = !varies && spatial % shape.width == 0;
  kernel_ = static_cast<uint32_t>(source->entries.size());
  return row_source(shape, name, source);
}

void RowElements::plan(const heddle_tensor& x, uint32_t set, RowNumbers parameters, uint64_t known, LaunchPlan* plan) const {
  const ReducePlan rows = operators::plan_reduction(x, set, 0, false);
  order_groups(rows, shape.groups, &parameters);
  parameters.count = x.element_count;
  parameters.known = known;
  const int64_t blocks = blocks_of(blocks_of(x.element_count, shape.width), shape.threads);
  ParameterWriter writer(nullptr, &plan->add(kernel_, static_cast<unsigned int>(shape.threads), blocks));
  row_parameters(shape, parameters, writer);
}

}  // namespace heddle::cuda
