#include "generate/reduce/reduce_pass.h"

#include <algorithm>

#include "shared/reduce_plan.h"

namespace heddle::cuda {
namespace {

using operators::ReducePlan;
using plugin::Status;

constexpr int64_t vector_bytes = 16, max_at_once = 8;
// The number of blocks below which the elements of one output are divided, and the number to divide into: twice and four times what the
// largest devices run at once. Not the device's own number, because results would depend on it.
constexpr int64_t few_blocks = 264, enough_blocks = 528;
constexpr int64_t long_row = 512;     // packs, above which a block folds a row and not a warp
constexpr int64_t shortest_part = 8;  // packs or elements that a thread has of a part

ReducePlan plan_of(const heddle_tensor& x, uint32_t set) {
  return operators::plan_reduction(x, set, 0, false);
}

bool all_multiples(const ReducePlan::Groups& groups, int width, bool but_last) {
  for (int i = 0; i < groups.count - (but_last ? 1 : 0); ++i)
    if (groups.items[i].input_stride % width != 0) return false;
  return true;
}

// Returns how many elements are read at once: whole packs in whole rows.
int width_of(const ReducePlan& plan, int64_t widest) {
  int width = static_cast<int>(std::min(max_at_once, vector_bytes / widest));
  const auto fits = [&] {
    return plan.row % width == 0 && all_multiples(plan.kept, width, plan.columns) && all_multiples(plan.reduced, width, !plan.columns);
  };
  while (width > 1 && !fits()) width /= 2;
  return width;
}

ReduceGeometry rows_geometry(const ReducePlan& plan, int width) {
  ReduceGeometry g;
  g.width = width;
  const int64_t packs = blocks_of(plan.folded, width);
  g.lanes = packs > long_row ? 256 : static_cast<int>(std::min<int64_t>(32, power_above(packs)));
  return g;
}

// Uses as many adjacent threads as there are outputs, up to a warp where other threads share many elements, and up to a block where there
// are few elements, or outputs enough for all threads.
ReduceGeometry columns_geometry(const ReducePlan& plan, int width) {
  ReduceGeometry g;
  g.columns = true;
  g.width = width;
  const int64_t beside = power_above(plan.row / width), turns = power_above(std::max<int64_t>(1, plan.folded / 4));
  const bool many = plan.outputs / width >= enough_blocks * 256;
  g.lanes = static_cast<int>(std::min(beside, many ? 256 : 256 / std::min<int64_t>(turns, 8)));
  g.threads = static_cast<int>(std::clamp<int64_t>(g.lanes * std::min<int64_t>(turns, 256), 32, 256));
  return g;
}

// Divides the elements of each output into parts of whole turns of a block.
void divide(const ReducePlan& plan, const ReduceGeometry& g, ReduceNumbers* n) {
  const int64_t per_turn = g.columns ? g.threads / g.lanes : int64_t{g.lanes} * g.width;
  const int64_t tiles = g.columns ? plan.outputs / plan.row * blocks_of(plan.row, int64_t{g.lanes} * g.width) : plan.outputs;
  const int64_t wanted = std::min(blocks_of(enough_blocks, std::max<int64_t>(tiles, 1)), plan.folded / (per_turn * shortest_part));
  n->parts = 1;
  n->part = plan.folded;
  if ((!g.columns && g.lanes < g.threads) || tiles == 0 || tiles >= few_blocks || wanted < 2) return;
  n->part = blocks_of(blocks_of(plan.folded, wanted), per_turn) * per_turn;
  n->parts = blocks_of(plan.folded, n->part);
}

// Writes groups so that the last is the innermost; if the source has more groups, those in front get `otherwise`, as groups of one element.
void fill(const ReducePlan::Groups& groups, int count, int64_t ReducePlan::Group::*member, int64_t* values, int64_t otherwise) {
  const int missing = count - groups.count;
  for (int i = 0; i < count; ++i) values[i] = i < missing ? otherwise : groups.items[i - missing].*member;
}

}  // namespace

int64_t outputs_of(const heddle_tensor& x, uint32_t set) {
  int64_t outputs = 1;
  for (int i = 0; i < x.rank; ++i)
    if (!(set >> i & 1)) outputs *= x.dims[i];
  return outputs;
}

Status ReducePass::choose(const heddle_tensor& x, uint32_t set, bool varies, const std::string& name, KernelSource* source) {
  shape.input = x.dtype;
  ReduceGeometry& g = shape.geometry;
  g = {};
  kernel_ = static_cast<uint32_t>(source->entries.size());
  if (varies) {
    g.wide = true;
    g.linear = false;
    g.kept = g.reduced = std::max(x.rank, 1);
    return reduce_source(shape, name, source);
  }
  const ReducePlan plan = plan_of(x, set);
  const int64_t widest =
      static_cast<int64_t>(std::max(plugin::byte_width(x.dtype), FusedExpressionText(shape.prologue, "prologue").widest()));
  if (plan.folded > 0 && plan.outputs > 0) {
    const int width = width_of(plan, widest);
    g = plan.columns ? columns_geometry(plan, width) : rows_geometry(plan, width);
    ReduceNumbers n;
    divide(plan, g, &n);
    g.split = n.parts > 1;
    g.wide = is_wide(plan.outputs * n.parts);
  }
  g.linear = plan.linear || is_for_rows(shape.kind);
  g.wide = g.wide || is_wide(x.element_count) || is_wide(plan.outputs);
  g.kept = std::max(plan.kept.count, 1);
  g.reduced = std::max(plan.reduced.count, 1);
  return reduce_source(shape, name, source);
}

void ReducePass::plan(const heddle_tensor& x, uint32_t set, Address result, uint64_t shifts, LaunchPlan* plan) const {
  const ReducePlan walk = plan_of(x, set);
  const ReduceGeometry& g = shape.geometry;
  ReduceNumbers n;
  n.input = input;
  n.result = result;
  n.shifts = shifts;
  n.epsilon = epsilon;
  n.outputs = walk.outputs;
  n.part = n.folded = walk.folded;
  n.divisor = mean_of_nothing_is_zero ? std::max<int64_t>(walk.folded, 1) : walk.folded;
  n.row = g.columns ? walk.row : 1;
  fill(walk.kept, g.kept, &ReducePlan::Group::extent, n.kept_extents, 1);
  fill(walk.kept, g.kept, &ReducePlan::Group::input_stride, n.kept_strides, 0);
  fill(walk.kept, g.kept, &ReducePlan::Group::output_stride, n.kept_places, 0);
  fill(walk.reduced, g.reduced, &ReducePlan::Group::extent, n.reduced_extents, 1);
  fill(walk.reduced, g.reduced, &ReducePlan::Group::input_stride, n.reduced_strides, 0);
  if (is_for_rows(shape.kind))  // in the order in which they are numbered
    for (int64_t i = g.kept, stride = 1; i-- > 0; stride *= n.kept_extents[i]) n.kept_places[i] = stride;
  if (g.split) {
    divide(walk, g, &n);
    n.partial = plan->take(static_cast<uint64_t>(n.outputs * n.parts * max_folded_bytes));
  }
  const int64_t units = g.columns ? walk.outputs / walk.row * blocks_of(walk.row, int64_t{g.lanes} * g.width) : walk.outputs;
  const auto threads = static_cast<unsigned int>(g.threads);
  const int64_t blocks = g.columns ? units * n.parts : blocks_of(units * n.parts, g.threads / g.lanes);
  ParameterWriter first(nullptr, &plan->add(kernel_, threads, blocks));
  reduce_parameters(shape, n, first);
  if (!g.split) return;
  ParameterWriter second(nullptr, &plan->add(kernel_ + 1, threads, blocks_of(n.outputs, g.threads / 32)));
  reduce_parameters(shape, n, second);
}

Status ReducePasses::choose(const heddle_tensor& x, uint32_t set, bool varies, const std::string& name, KernelSource* source) {
  if (needs_shift(last.shape.kind)) {
    first_.shape = last.shape;
    first_.shape.kind = shift_of(last.shape.kind);
    first_.shape.epilogue = {};
    first_.input = last.input;
    HEDDLE_PLUGIN_CHECK(first_.choose(x, set, varies, name + "_shift", source));
  }
  return last.choose(x, set, varies, name, source);
}

uint64_t ReducePasses::take_scratch(int64_t outputs, LaunchPlan* plan) const {
  return needs_shift(last.shape.kind) ? plan->take(static_cast<uint64_t>(outputs * max_shift_bytes)) : 0;
}

void ReducePasses::plan(const heddle_tensor& x, uint32_t set, Address result, LaunchPlan* plan) const {
  const uint64_t shifts = take_scratch(outputs_of(x, set), plan);
  if (needs_shift(last.shape.kind)) first_.plan(x, set, {Address::scratch, 0, 0, shifts}, 0, plan);
  last.plan(x, set, result, shifts, plan);
}

}  // namespace heddle::cuda
