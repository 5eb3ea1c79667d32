// What `heddle plan` was asked for, and its two halves.
#pragma once

#include "common/net_options.h"

namespace heddle::tool {

struct PlanArguments : NetOptions {
  std::string svg, diff, buffers, capacity, output;
  bool dot = false;
  double time_limit_s = 0;
};

// `plan --buffers`: the offset planner alone, on a table of buffers.
Status plan_buffers(const PlanArguments& o, Report& report);

// Replaces `file` by the text.
Status write_text(const std::string& file, const std::string& text);

}  // namespace heddle::tool
