// The collectives of a plan in the report of a run.
#pragma once

#include <cstdint>
#include <string>

#include "heddle/observe.h"
#include "heddle/plan_info.h"

namespace heddle::tool {

// The time of a run in which threads of the host worked on collectives, and that part of it in which they worked on nothing else.
struct MeasuredCommunication {
  int64_t ns = 0, exposed_ns = 0;
};
MeasuredCommunication measured_communication(const PlanInfo& plan, const Profile& profile);

// A section of a page; empty if the plan has no collectives.
std::string collectives_section(const PlanInfo& plan, const Profile& profile);

}  // namespace heddle::tool
