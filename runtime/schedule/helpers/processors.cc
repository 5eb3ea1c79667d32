#include "schedule/helpers/processors.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "schedule/control_groups.h"

namespace heddle {

std::vector<int> allowed_processors() {
  std::vector<int> result;
  // Machines may have more processors than cpu_set_t: try larger sets until the kernel accepts one.
  for (size_t limit = CPU_SETSIZE; limit <= (size_t{1} << 16); limit *= 2) {
    cpu_set_t* set = CPU_ALLOC(limit);
    if (!set) return result;
    const size_t bytes = CPU_ALLOC_SIZE(limit);
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    for (size_t cpu = 0; known && cpu < limit; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set)) result.push_back(static_cast<int>(cpu));
    CPU_FREE(set);
    if (known) return result;
  }
  return result;
}

int default_concurrency() {
  int count = static_cast<int>(allowed_processors().size());
  if (count == 0) count = static_cast<int>(std::thread::hardware_concurrency());
  const double quota = cgroup_quota(own_memberships(), cgroup_mount);
  if (quota > 0) count = std::min(count, static_cast<int>(quota));
  return std::max(1, count);
}

}  // namespace heddle
