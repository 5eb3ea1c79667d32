#include "run/update_indices.h"

#include <utility>

namespace heddle {

UpdateIndices::UpdateIndices(const Plan& plan) {
  for (const CheckedInput& checked : checked_inputs(plan))
    if (plan.values[plan.steps[checked.step].inputs[checked.indices.input].value.index].place.device == 0) steps_.push_back(checked);
}

std::optional<UpdateIndices::Outside> UpdateIndices::find(const StepContexts& steps) const {
  for (const CheckedInput& checked : steps_) {
    const heddle_run_context& context = steps.abi(checked.step);
    const heddle_tensor* const indices = context.inputs[checked.indices.input];
    const heddle_tensor* const of = context.inputs[checked.indices.of];
    if (!indices || !of) continue;
    if (auto text = index_outside(*indices, *of, checked.indices.axis)) return Outside{checked.step, std::move(*text)};
  }
  return std::nullopt;
}

}  // namespace heddle
