// The files of the project that `heddle plugin new` writes.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace heddle::tool {

// By file name in the project's folder: an operator for the host; with `cuda` also its kernel for NVIDIA's GPUs.
std::vector<std::pair<std::string, std::string>> project_template(const std::string& plugin, bool cuda);

}  // namespace heddle::tool
