// Determines how much memory this process may have (heddle/limits.h), from the files of /proc and of the control groups.
#pragma once

#include <cstdint>
#include <filesystem>

namespace heddle {

// Reads below another root, for tests: ROOT/proc/meminfo, ROOT/proc/self/{cgroup,mountinfo}, and the groups' folders where mountinfo places
// them. 0: no file there reports an amount.
int64_t machine_memory_bytes(const std::filesystem::path& root);

}  // namespace heddle
