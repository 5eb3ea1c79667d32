#include "generate/reduce/reduce_launches.h"

#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/dims.h"

namespace heddle::cuda {

using plugin::Status;

Status ReduceLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  varies_ = varies || !operands.is_constant(1);
  if (operands.writes_nothing() && !varies_) return {};
  if (!varies_) HEDDLE_PLUGIN_CHECK(reduced(operands, &set_));
  passes.last.shape.output = operands.output(0)->dtype;
  return passes.choose(*operands.input(0), set_, varies_, "reduce", source);
}

Status ReduceLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  uint32_t set = set_;
  if (varies_ && !knows(operands)) {  // in prepare, which needs only the scratch
    passes.take_scratch(operands.output(0)->element_count, plan);
    return {};
  }
  if (varies_) HEDDLE_PLUGIN_CHECK(reduced(operands, &set));
  if (operands.writes_nothing()) return {};
  passes.plan(*operands.input(0), set, {Address::output, 0, 0, 0}, plan);
  return {};
}

bool AxesReduction::knows(const Operands& operands) const {
  const heddle_tensor* axes = operands.input(1);
  return !axes || axes->data || axes->element_count == 0;
}

Status AxesReduction::reduced(const Operands& operands, uint32_t* set) const {
  const heddle_tensor& x = *operands.input(0);
  const heddle_tensor* axes = operands.input(1);
  const auto read = [&]() -> Status {
    HEDDLE_PLUGIN_CHECK(operators::axis_set("axes", axes, x.rank, set));
    if ((!axes || axes->element_count == 0) && !none_when_empty) *set = (1u << x.rank) - 1;
    return {};
  };
  return operators::check_planned({{"axes", axes}}, *operands.output(0), [&](operators::Extents* to) -> Status {
    HEDDLE_PLUGIN_CHECK(read());
    for (int i = 0; i < x.rank; ++i) {
      if (!(*set >> i & 1))
        to->push(x.dims[i]);
      else if (keeps_dims)
        to->push(1);
    }
    return {};
  });
}

Status AxisReduction::reduced(const Operands& operands, uint32_t* set) const {
  const int rank = operands.input(0)->rank;
  int at = 0;
  if (!operators::normalize_axis(axis, rank, &at)) return operators::axis_outside("axis", axis, rank);
  *set = 1u << at;
  return {};
}

SpatialReduction::SpatialReduction(ReduceKind kind, int64_t p) {
  passes.last.mean_of_nothing_is_zero = true;
  passes.last.shape.kind = kind;
  if (kind != ReduceKind::power) return;
  passes.last.shape.exponent = static_cast<double>(p);
  if (p <= 2) passes.last.shape.kind = p == 1 ? ReduceKind::l1 : ReduceKind::l2;
}

Status SpatialReduction::reduced(const Operands& operands, uint32_t* set) const {
  *set = ((1u << operands.input(0)->rank) - 1) & ~3u;
  return {};
}

}  // namespace heddle::cuda
