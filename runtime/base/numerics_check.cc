#include "base/numerics_check.h"

#include <fmt/format.h>

#include "base/element.h"
#include "base/text/text.h"

namespace heddle {
Status NumericsCheck::look(const PlanInfo& plan, StepView& view) {
  const PlanInfo::Step& step = plan.steps[view.step()];
  not_finite_.resize(plan.values.size());
  bool passes_on = false;
  for (size_t k = 0; k < step.inputs.size(); ++k) {
    if (!step.inputs[k].value) continue;
    const size_t value = *step.inputs[k].value;
    const PlanInfo::Place place = plan.values[value].place;
    // Values from outside the steps are checked where they are read; a variable that the step updates in place has been overwritten
    // already.
    const bool from_outside = place == PlanInfo::Place::input || place == PlanInfo::Place::constant ||
                              (place == PlanInfo::Place::variable && !step.updates_variable);
    if (from_outside && is_float(view.input_type(k).dtype)) {
      HEDDLE_TRY(const TensorView input, view.read_input(k));
      not_finite_[value] = first_not_finite(input) >= 0;
    }
    passes_on = passes_on || not_finite_[value];
  }
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    if (!step.outputs[k].value || !is_float(view.output_type(k).dtype)) continue;
    HEDDLE_TRY(const TensorView output, view.read_output(k));
    const int64_t at = first_not_finite(output);
    not_finite_[*step.outputs[k].value] = at >= 0;
    if (at < 0 || passes_on) continue;
    Status bad(Code::numerics, fmt::format("element {} of its output is {}", at, shortest(element(output, at))),
               "look at the inputs of that operator");
    return std::move(bad).at(step.name, step.type).in_net(plan.net);
  }
  return {};
}

}  // namespace heddle
