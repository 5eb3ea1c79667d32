#include "generate/move/view_launches.h"

#include "generate/move/move_source.h"
#include "shared/dims.h"
#include "shared/extent_rules.h"

namespace heddle::cuda {

using plugin::Status;

Status ViewLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  varies_ = varies || (operand != Operand::none && !operands.is_constant(1));
  if (operands.writes_nothing() && !varies_) return {};
  write_bytes_copy(source, varies_ || is_wide(static_cast<int64_t>(operands.output(0)->byte_size)));
  return {};
}

Status ViewLaunches::check(const Operands& operands) const {
  const heddle_tensor *const content = operands.input(1), &y = *operands.output(0);
  const operators::Dims from = operators::dims_of(*operands.input(0));
  switch (operand) {
    case Operand::shape:
      return operators::check_planned({{"shape", content}}, y,
                                      [&](operators::Extents* to) { return operators::reshape_extents(from, content, keeps_zero, to); });
    case Operand::squeezed:
      return operators::check_planned({{"axes", content}}, y,
                                      [&](operators::Extents* to) { return operators::squeeze_extents(from, content, false, to); });
    case Operand::unsqueezed:
      return operators::check_planned({{"axes", content}}, y,
                                      [&](operators::Extents* to) { return operators::unsqueeze_extents(from, content, false, to); });
    default:
      return {};
  }
}

Status ViewLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  if (operand != Operand::none && !operands.is_known(1)) return {};
  if (varies_) HEDDLE_PLUGIN_CHECK(check(operands));
  if (!operands.writes_nothing()) plan_bytes_copy(operands, 0, plan);
  return {};
}

}  // namespace heddle::cuda
