// The calls that the text of a row's case stands for.
#pragma once

#include <string>
#include <vector>

#include "plugin/registry.h"

namespace heddle::conformance {

// One for each dtype that takes the place of "T", and then of "U" (reference.h: Case).
std::vector<std::string> calls_of(const RegistrySnapshot& registry, const OperatorSchema& schema, const std::string& text);

}  // namespace heddle::conformance
