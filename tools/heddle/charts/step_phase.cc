#include "charts/step_phase.h"

#include <string>

namespace heddle::tool {

std::vector<StepPhase> phases_of(const PlanInfo& plan) {
  std::vector<StepPhase> phases(plan.steps.size(), StepPhase::forward);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanInfo::Step& step = plan.steps[i];
    if (step.tail)
      phases[i] = StepPhase::update;
    else if (step.name.find(".gradient") != std::string::npos)
      phases[i] = StepPhase::backward;
    if (phases[i] != StepPhase::backward) continue;
    for (const size_t successor : step.successors)
      if (!plan.steps[successor].tail) phases[successor] = StepPhase::backward;
  }
  return phases;
}

}  // namespace heddle::tool
