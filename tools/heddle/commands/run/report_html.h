// One run as a page: what `run --report F.html` writes. Self-contained: no script, no font, no other file.
#pragma once

#include <string>
#include <vector>

#include "commands/run/profiled_runs.h"
#include "heddle/plan_info.h"

namespace heddle::tool {

struct RunSummary {
  std::string net_file;
  std::string latency;  // as latency_text gives it
  int threads = 1;
  int64_t measured_peak_bytes = 0;
};

// Steps with their times, the run's timeline by worker, memory over the steps. Text from files is escaped.
Status write_report(const std::string& file, const PlanInfo& plan, const ProfiledRun& run, const RunSummary& summary);

}  // namespace heddle::tool
