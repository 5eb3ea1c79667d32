// Calls of one element, of operators whose other calls have more: a kernel may take an extent of 1 for one of 0.
#pragma once

#include <optional>
#include <string>

#include "conformance/reference.h"

namespace heddle::conformance {

std::optional<Case> case_of_one_element(const std::string& type);

}  // namespace heddle::conformance
