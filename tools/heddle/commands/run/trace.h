// Chrome trace events of one run: opens in Perfetto, chrome://tracing and speedscope.
#pragma once

#include <string>
#include <vector>

#include "commands/run/profiled_runs.h"
#include "heddle/plan_info.h"

namespace heddle::tool {

// One complete event per step and worker that took part, times in microseconds from the first step's begin; preceded by the names of all
// `threads` workers. "otherData" names the run.
Status write_trace(const std::string& file, const PlanInfo& plan, const ProfiledRun& run, int threads);

}  // namespace heddle::tool
