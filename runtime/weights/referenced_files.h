// The weights files that a net names.
#pragma once

#include <string>
#include <vector>

#include "net/net.h"

namespace heddle {

// Paths relative to the net's folder, those of subnets too, each once.
std::vector<std::string> referenced_files(const Net& net);

}  // namespace heddle
