// The public description of a plan.
#pragma once

#include <memory>

#include "compile/plan.h"
#include "heddle/plan_info.h"

namespace heddle {

// Describes a plan; never null. `times`: those of the stages that made the plan.
std::shared_ptr<const PlanInfo> describe(const Plan& plan, const PlanInfo::Times& times, int64_t plans_made);

}  // namespace heddle
