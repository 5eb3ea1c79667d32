// `heddle plan --ranks`: the time that a run is predicted to take on each of several processes.
#pragma once

#include <string>
#include <vector>

#include "common/command.h"
#include "common/file_roles.h"
#include "heddle/plan_info.h"

namespace heddle::tool {

// The options of it.
struct RankOptions {
  std::string ranks;  // "8,64,1024"; empty: not asked for
  std::string link;   // "DELAY_US,MB_PER_S[,MESSAGE_US[,PROCESSOR_NS]]"
  std::string trace;  // a file that `heddle run --trace` has written
};

// One line of the table.
struct PredictedRanks {
  RankLink link;
  PredictedStep step;
};

// Errors: invalid_argument (an option of another form, a trace that has none of the plan's steps), file errors.
Result<std::vector<PredictedRanks>> predict_ranks(const PlanInfo& plan, const RankOptions& options, FileRoles& roles);

// Returns the predictions as `heddle plan --json` has them, and as lines of text that say what was assumed.
Json ranks_json(const std::vector<PredictedRanks>& predicted);
std::string ranks_text(const std::vector<PredictedRanks>& predicted);

}  // namespace heddle::tool
