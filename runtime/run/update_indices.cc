#include "run/update_indices.h"

#include <utility>

#include "compile/index_check.h"

namespace heddle {

UpdateIndices::UpdateIndices(const Plan& plan) {
  if (plan.graph.tail_begin == plan.graph.count) return;
  // Values that steps of the update phase produce do not exist yet when indices are checked.
  std::vector<char> made_late(plan.values.size());
  for (uint32_t i = plan.graph.tail_begin; i < plan.graph.count; ++i)
    for (const Operand& out : plan.steps[i].outputs)
      if (out.value.valid()) made_late[out.value.index] = 1;
  for (uint32_t i = plan.graph.tail_begin; i < plan.graph.count; ++i)
    for (const IndexInput& indices : plan.steps[i].indices) {
      const ValueId value = plan.steps[i].inputs[indices.input].value;
      const DType dtype = plan.values[value.index].type.dtype;
      const bool integers = dtype == DType::i32 || dtype == DType::i64;
      if (integers && !made_late[value.index] && plan.values[value.index].place.device == 0) steps_.push_back({i, indices});
    }
}

std::optional<UpdateIndices::Outside> UpdateIndices::find(const StepContexts& steps) const {
  for (const Checked& checked : steps_) {
    const heddle_run_context& context = steps.abi(checked.step);
    const heddle_tensor* const indices = context.inputs[checked.indices.input];
    const heddle_tensor* const of = context.inputs[checked.indices.of];
    if (!indices || !of) continue;
    if (auto text = index_outside(*indices, *of, checked.indices.axis)) return Outside{checked.step, std::move(*text)};
  }
  return std::nullopt;
}

}  // namespace heddle
