// How many processors the control groups of this process leave of the machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace heddle {

// `memberships` is the text of /proc/self/cgroup, `mount` where control groups are mounted. Both versions; a group's parents count too.
// Files that are missing or odd: no limit.

// In processors; 0: none.
double cgroup_quota(std::string_view memberships, const std::filesystem::path& mount);

// This process's memberships, and where Linux mounts control groups.
std::string own_memberships();
constexpr const char* cgroup_mount = "/sys/fs/cgroup";

}  // namespace heddle
