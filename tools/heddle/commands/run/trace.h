// Chrome trace events of one run: opens in Perfetto, chrome://tracing and speedscope.
#pragma once

#include <string>
#include <vector>

#include "heddle/observe.h"
#include "heddle/plan_info.h"

namespace heddle::tool {

// One complete event per step and worker that took part, times in microseconds from the first step's begin.
Status write_trace(const std::string& file, const PlanInfo& plan, const Profile& profile);

}  // namespace heddle::tool
