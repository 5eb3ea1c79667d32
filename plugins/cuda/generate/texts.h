// The files of text/, which kernels' sources begin with, by name without ".cuh".
#pragma once

#include <map>
#include <string_view>

namespace heddle::cuda {

const std::map<std::string_view, std::string_view>& texts();

}  // namespace heddle::cuda
