// The collectives of a plan in the report of a run.
#pragma once

#include <cstdint>
#include <string>

#include "heddle/observe.h"
#include "heddle/plan_info.h"

namespace heddle::tool {

// The time of a run in which collectives of the host were under way, waiting for other ranks included, and that part of it in which no
// other step was. Those on devices are not counted: the host does not see when they run.
struct MeasuredCommunication {
  int64_t ns = 0, exposed_ns = 0;
};
MeasuredCommunication measured_communication(const PlanInfo& plan, const Profile& profile);

// A section of a page; empty if the plan has no collectives.
std::string collectives_section(const PlanInfo& plan, const Profile& profile);

}  // namespace heddle::tool
