// Returns the files of text/, with which kernels' sources begin, by name without ".cuh".
#pragma once

#include <map>
#include <string_view>

namespace heddle::cuda {

const std::map<std::string_view, std::string_view>& texts();

}  // namespace heddle::cuda
