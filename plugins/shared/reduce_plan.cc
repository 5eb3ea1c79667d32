// Planning a reduction: grouping of dimensions and division into tiles, from shapes and layout alone.
#include "shared/reduce_plan.h"

#include <algorithm>

#include "shared/dense_layouts.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"

namespace heddle::operators {
namespace {

constexpr double tile_ns = 50e3;

bool is_reduced(uint32_t set, int dim) {
  return (set >> dim) & 1;
}

// Row-major strides of the kept dimensions among themselves; 0 for reduced ones.
void output_strides(const heddle_tensor& input, uint32_t reduced_set, int64_t* strides) {
  int64_t stride = 1;
  for (int i = input.rank - 1; i >= 0; --i) {
    strides[i] = is_reduced(reduced_set, i) ? 0 : stride;
    if (!is_reduced(reduced_set, i)) stride *= input.dims[i];
  }
}

void add_groups(const heddle_tensor& input, uint32_t reduced_set, ReducePlan* plan) {
  int64_t input_strides[HEDDLE_MAX_RANK] = {}, strides[HEDDLE_MAX_RANK] = {};
  strides_of(input, input_strides);
  output_strides(input, reduced_set, strides);
  int last = -1;  // the dimension of the last group: 1 reduced, 0 kept
  for (int i = 0; i < input.rank; ++i) {
    const int dim = input.layout.rank == input.rank ? input.layout.order[i] : i;
    const int64_t extent = input.dims[dim];
    if (extent == 1) continue;
    const bool reduced = is_reduced(reduced_set, dim);
    ReducePlan::Groups& groups = reduced ? plan->reduced : plan->kept;
    const bool continues = last == (reduced ? 1 : 0) && (reduced || groups.back().output_stride == strides[dim] * extent);
    if (continues) {
      groups.back().extent *= extent;
      groups.back().input_stride = input_strides[dim];
      groups.back().output_stride = strides[dim];
    } else {
      groups.push_back({extent, input_strides[dim], strides[dim]});
    }
    last = reduced ? 1 : 0;
  }
  plan->columns = last == 0;
  int64_t stride = 1;
  for (int i = plan->kept.count - 1; i >= 0; --i) {
    plan->linear = plan->linear && plan->kept.items[i].output_stride == stride;
    stride *= plan->kept.items[i].extent;
  }
}

void add_tiles(double cost_ns, double bytes, bool splittable, ReducePlan* plan) {
  const int64_t tuned = std::clamp<int64_t>(static_cast<int64_t>(std::min(cost_ns / tile_ns, 1e9)), cost_ns > 20e3 ? 2 : 1, max_tiles);
  const int64_t wanted = std::max(tuned, min_tiles(cost_ns * bytes_per_ns, bytes));
  const int64_t grain = plan->columns ? 64 : 1;  // outputs of neighbouring tiles share no cache line
  plan->output_parts = std::clamp<int64_t>(plan->outputs / grain, 1, wanted);
  if (!splittable) return;
  const int64_t elements = std::max<int64_t>(1, 4096 / (plan->columns ? std::min<int64_t>(plan->outputs, 4096) : 1));
  plan->folded_parts = std::clamp<int64_t>(plan->folded / elements, 1, std::max<int64_t>(1, wanted / plan->output_parts));
}

}  // namespace

ReducePlan plan_reduction(const heddle_tensor& input, uint32_t reduced_set, double cost_ns, bool splittable) {
  ReducePlan plan;
  for (int i = 0; i < input.rank; ++i) (is_reduced(reduced_set, i) ? plan.folded : plan.outputs) *= input.dims[i];
  add_groups(input, reduced_set, &plan);
  if (plan.outputs == 0) {
    plan.output_parts = 0;
    return plan;
  }
  if (plan.folded == 0) return plan;  // every output is the fold of nothing
  const ReducePlan::Groups& inner = plan.columns ? plan.kept : plan.reduced;
  plan.row = inner.empty() ? 1 : inner.back().extent;
  // The output may be as large as the input: normalisations are divided like this too.
  add_tiles(cost_ns, 2 * static_cast<double>(input.byte_size), splittable, &plan);
  return plan;
}

}  // namespace heddle::operators
