// The memory of a plan as a picture: which bytes of each device hold what, over the steps.
#pragma once

#include <map>
#include <string>

#include "heddle/plan_info.h"

namespace heddle::tool {

// Returns an SVG with a part for each device: steps go right and bytes up. Each buffer is a rectangle with its name, as far as it has room;
// the whole name, its bytes and its life are shown at the pointer. All but the largest 4,000, and those too small to be seen, are drawn
// together, so that the picture of a net of any size stays under 2 MB.
std::string memory_chart(const PlanInfo& plan);

// How a step differs from that of the same name in another plan.
enum class StepChange { none, changed, only_here };

// One of two plans that are compared.
struct ComparedPlan {
  const PlanInfo& plan;
  const std::string& name;                           // where it comes from: a file
  const std::map<std::string, StepChange>& changes;  // by the name of the step, those that are not `none`
};

// Returns one SVG of both plans, below each other: parts of a device have the same scale of bytes, and the strips of steps show what
// differs.
std::string memory_chart_of_two(const ComparedPlan& first, const ComparedPlan& second);

}  // namespace heddle::tool
