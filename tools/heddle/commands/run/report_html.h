// One run as a page: what `run --report F.html` writes. It loads nothing: its style and script are in it.
#pragma once

#include <optional>
#include <string>

#include "commands/run/profiled_runs.h"
#include "commands/run/roofline.h"
#include "heddle/plan_info.h"

namespace heddle::tool {

struct RunSummary {
  std::string net_file;
  std::string latency;  // as latency_text gives it
  int threads = 1;
  int64_t measured_peak_bytes = 0;
  std::optional<Roofline> roofline;
  std::string without_roofline;  // why it could not be measured
};

// Writes the timeline of the run, its slowest steps and why, the memory over the steps, the operators, the
// collectives, and a table of all steps. Text
// from files is escaped.
Status write_report(const std::string& file, const PlanInfo& plan, const ProfiledRun& run, const RunSummary& summary);

}  // namespace heddle::tool
