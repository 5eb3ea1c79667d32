// The tables of the report: steps with their times, the slowest of them and why, and what is held at the peak.
#pragma once

#include <optional>
#include <string>

#include "commands/run/profiled_runs.h"
#include "commands/run/roofline.h"
#include "heddle/plan_info.h"

namespace heddle::tool {

// `roofline`: none, where it could not be measured.
std::string step_table(const PlanInfo& plan, const ProfiledRun& run, const std::optional<Roofline>& roofline);
// The ten steps that took longest, by the median of all runs, each with what bounds it.
std::string slowest_table(const PlanInfo& plan, const ProfiledRun& run, const std::optional<Roofline>& roofline);
// The largest buffers of each device that are live at the peak.
std::string owner_table(const PlanInfo& plan);

}  // namespace heddle::tool
