// A plan as outsiders see it.
#pragma once

#include <memory>

#include "compile/plan.h"
#include "heddle/plan_info.h"

namespace heddle {

// Never null. `times`: of the stages that made the plan.
std::shared_ptr<const PlanInfo> describe(const Plan& plan, const PlanInfo::Times& times, int64_t plans_made);

}  // namespace heddle
