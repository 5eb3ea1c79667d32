// The calls of large extents that tile_cap_test.cc prepares.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "layouts/layout_support.h"
#include "prepared_operator.h"

namespace heddle::testing {

std::shared_ptr<const RegistrySnapshot> cpu_plugin();
// Operators whose tiles may exceed the limits, and the reasons.
const std::map<std::string, const char*>& in_one_tile();
// Returns at least one case for every operator of the CPU plugin.
std::vector<Case> cases();

}  // namespace heddle::testing
