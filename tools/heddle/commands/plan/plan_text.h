// A plan for people and programs: text, JSON and Graphviz.
#pragma once

#include <string>

#include "common/command.h"
#include "heddle/plan_info.h"

namespace heddle::tool {

Json plan_json(const PlanInfo& plan);
std::string plan_text(const PlanInfo& plan);
// Graphviz of the steps.
std::string plan_dot(const PlanInfo& plan);

}  // namespace heddle::tool
