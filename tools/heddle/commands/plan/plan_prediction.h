// `heddle plan --cost`: the time that a run is predicted to take on its devices.
#pragma once

#include <string>
#include <vector>

#include "common/command.h"
#include "heddle/plan_info.h"

namespace heddle::tool {

// Parses texts of the form NAME=NS or NAME=NS+NS_PER_BYTE. Errors: invalid_argument.
Result<std::vector<WorkCost>> parse_costs(const std::vector<std::string>& texts);

Json prediction_json(const PredictedStep& step);
std::string prediction_text(const PredictedStep& step);

}  // namespace heddle::tool
