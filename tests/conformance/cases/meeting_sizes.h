// Calls with coinciding sizes, for operators whose own cases have none: one element, which a kernel may take for none, and an output with
// as many bytes as the first input, whose place it may take.
#pragma once

#include <string>
#include <vector>

#include "conformance/reference.h"

namespace heddle::conformance {

std::vector<Case> cases_where_sizes_meet(const std::string& type);

}  // namespace heddle::conformance
