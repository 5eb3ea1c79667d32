// The number of processors that the control groups of this process allow it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace heddle {

// `memberships` is the text of /proc/self/cgroup, `mount` where control groups are mounted. Handles both versions; a group's parents count
// too. Missing or malformed files mean no limit.

// Returns the quota in processors; 0: none.
double cgroup_quota(std::string_view memberships, const std::filesystem::path& mount);

// Returns this process's memberships. The constant is where Linux mounts control groups.
std::string own_memberships();
constexpr const char* cgroup_mount = "/sys/fs/cgroup";

}  // namespace heddle
