// `heddle plan --cost`: the time that a run is predicted to take on its devices.
#pragma once

#include <string>
#include <vector>

#include "common/command.h"
#include "heddle/plan_info.h"

namespace heddle::tool {

// Parses texts of the form NAME=NS or NAME=NS+NS_PER_BYTE. NAME is an operator's type, with or without its domain, or "copy". Errors:
// invalid_argument.
Result<std::vector<WorkCost>> parse_costs(const std::vector<std::string>& texts);
// Returns a warning for each cost that no step on a device has.
std::vector<Diagnostic> unused_costs(const PlanInfo& plan, const std::vector<WorkCost>& costs);

// Returns the prediction as `heddle plan --json` has it.
Json prediction_json(const PredictedStep& step);
// Returns one line about it.
std::string prediction_text(const PredictedStep& step);

}  // namespace heddle::tool
