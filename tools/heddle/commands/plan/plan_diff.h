// The differences of another net's plan: steps by name, their kernels, layouts and tiles, memory.
#pragma once

#include <string>

#include "common/command.h"
#include "heddle/plan_info.h"

namespace heddle::tool {

Json plan_diff(const PlanInfo& plan, const PlanInfo& other);
// Returns one picture of the memory of both, in which the steps that differ are marked.
std::string plan_diff_svg(const PlanInfo& plan, const std::string& name, const PlanInfo& other, const std::string& other_name);
std::string plan_diff_text(const PlanInfo& plan, const PlanInfo& other);

}  // namespace heddle::tool
