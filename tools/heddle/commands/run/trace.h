// Chrome trace events of one run: opens in Perfetto, chrome://tracing and speedscope.
#pragma once

#include <string>
#include <vector>

#include "commands/run/profiled_runs.h"
#include "heddle/plan_info.h"

namespace heddle::tool {

// Writes a track for each row of charts/timeline.h, of which `threads` are workers, and in it one complete event for each step, or range of
// tiles, that ran there; times are in microseconds from the beginning of the first step. "otherData" names the run.
Status write_trace(const std::string& file, const PlanInfo& plan, const ProfiledRun& run, int threads);

}  // namespace heddle::tool
