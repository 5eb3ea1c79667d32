// Chrome trace events of one run: opens in Perfetto, chrome://tracing and speedscope.
#pragma once

#include <string>
#include <vector>

#include "compile/plan.h"
#include "heddle/status.h"
#include "schedule/run_control.h"

namespace heddle::tool {

// One complete event per step and worker that took part, times in microseconds from the first step's begin.
Status write_trace(const std::string& file, const Plan& plan, const std::vector<StepSpan>& spans);

}  // namespace heddle::tool
