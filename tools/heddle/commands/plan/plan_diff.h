// What is other in another net's plan: steps by name, their kernels, layouts and tiles, memory.
#pragma once

#include <string>

#include "common/command.h"
#include "compile/plan.h"

namespace heddle::tool {

Json plan_diff(const Plan& plan, const Plan& other);
std::string plan_diff_text(const Plan& plan, const Plan& other);

}  // namespace heddle::tool
