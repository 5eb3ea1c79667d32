// The rules of a plan's update phase, for its checker. Private to plan_check.
#pragma once

#include "compile/plan.h"
#include "compile/plan_check/plan_check_graph.h"

namespace heddle::compiling {

// Returns ok if the plan says rightly whether it updates variables, and its update phase, if it has one, contains all updates, the steps
// after them, commits and reports of faults and nothing else, and begins when all work before it is done: the host has seen the fences of
// that work, or commits on the devices come after it, which all updates come after and obey. REQUIRES: `order` has read the plan. Errors:
// internal.
Status check_update_phase(const Plan& plan, const PlanOrder& order);

}  // namespace heddle::compiling
