// Finds the step of a run that makes the first number that is not finite, with the public interface alone (heddle/observe.h).
#pragma once

#include <vector>

#include "heddle/observe.h"
#include "heddle/plan_info.h"
#include "heddle/status.h"

namespace heddle {

// Checks the steps of a run one after the other, and remembers which values are not finite.
class NumericsCheck {
 public:
  // Code::numerics when the step has made nan or inf from finite inputs.
  Status look(const PlanInfo& plan, StepView& view);

 private:
  std::vector<bool> not_finite_;  // by value
};

}  // namespace heddle
