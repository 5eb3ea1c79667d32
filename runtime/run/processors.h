// How many threads this process can really run at once: what its affinity mask and its control groups leave of the machine.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// Processors that the calling thread may run on, ascending. Empty if the system does not say.
std::vector<int> allowed_processors();

// The CPU quota of this process's control groups in processors, 0: none. `memberships` is the text of /proc/self/cgroup, `mount` where
// control groups are mounted (/sys/fs/cgroup). Both versions; a group's parents count too. Files that are missing or odd: no quota.
double cgroup_quota(std::string_view memberships, const std::filesystem::path& mount);

// Allowed processors or quota (rounded down), whichever is less; at least 1.
int default_concurrency();

}  // namespace heddle
