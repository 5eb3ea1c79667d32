// Finds NVIDIA's libraries where plugins open them while they run: nothing links to these.
#pragma once

#include <string>
#include <vector>

namespace heddle::operators {

// Opens the first file of `names` that is there, which then stays in the process: in the folders of HEDDLE_CUDA_LIBRARIES; without it,
// where the loader looks and where the toolkit's installer puts libraries. HEDDLE_CUDA_STANDIN is a file that stands in for all. Returns
// null and says why if there is none. Thread-safe.
void* open_nvidia_library(const std::vector<std::string>& names, std::string* why);

}  // namespace heddle::operators
