// The arguments of `heddle plan`, and its two halves.
#pragma once

#include <string>
#include <vector>

#include "commands/plan/plan_ranks.h"
#include "options/commit_option.h"
#include "options/net_options.h"

namespace heddle::tool {

// The backend's own description of devices.
constexpr const char* own_description = "its own";

struct PlanArguments : NetOptions {
  std::string svg, svg_net, diff, buffers, capacity, output;
  std::string dry;                 // empty: not requested; `own_description`; or a file
  std::vector<std::string> costs;  // of works, for a prediction
  RankOptions ranks;
  CommitOption commit;
  bool dot = false;
  double time_limit_s = 0;
};

// `plan --buffers`: the offset planner alone, on a table of buffers.
Status plan_buffers(const PlanArguments& o, Report& report);

}  // namespace heddle::tool
