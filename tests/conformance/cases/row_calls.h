// Expands the text of a row's case into calls.
#pragma once

#include <string>
#include <vector>

#include "plugin/registry.h"

namespace heddle::conformance {

// Returns one call for each dtype that takes the place of "T", and then of "U" (reference.h: Case).
std::vector<std::string> calls_of(const RegistrySnapshot& registry, const OperatorSchema& schema, const std::string& text);

}  // namespace heddle::conformance
