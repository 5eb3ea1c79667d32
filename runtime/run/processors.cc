#include "run/processors.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <thread>

namespace heddle {
namespace {

// The first line of a small file; empty when there is none.
std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// A positive decimal number at the front of `text`, which is cut off; 0: something else.
double take_number(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value <= 0) return 0;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return static_cast<double>(value);
}

double ratio(double quota, double period) {
  return quota > 0 && period > 0 ? quota / period : 0;
}

// cpu.max: "150000 100000", or "max 100000".
double quota_of_unified_group(const std::filesystem::path& group) {
  const std::string line = first_line(group / "cpu.max");
  std::string_view text = line;
  const double quota = take_number(text);
  return ratio(quota, take_number(text));
}

// cpu.cfs_quota_us (-1: none) and cpu.cfs_period_us.
double quota_of_legacy_group(const std::filesystem::path& group) {
  const std::string quota_line = first_line(group / "cpu.cfs_quota_us");
  const std::string period_line = first_line(group / "cpu.cfs_period_us");
  std::string_view quota = quota_line;
  std::string_view period = period_line;
  return ratio(take_number(quota), take_number(period));
}

// The least quota of a group and its parents up to the mount. Inside a container the group's path may be the host's: then only what
// exists counts.
template <class QuotaOf>
double least_quota(const std::filesystem::path& mount, std::filesystem::path group, QuotaOf&& quota_of) {
  double least = 0;
  for (;;) {
    const double quota = quota_of(mount / group);
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
    if (group.empty()) return least;
    group = group.has_parent_path() ? group.parent_path() : std::filesystem::path();
  }
}

bool lists_cpu(std::string_view controllers) {
  while (!controllers.empty()) {
    const size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == "cpu") return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

}  // namespace

std::vector<int> allowed_processors() {
  std::vector<int> result;
  // Machines may have more processors than cpu_set_t: ask for more until the kernel is content.
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

double cgroup_quota(std::string_view memberships, const std::filesystem::path& mount) {
  double least = 0;
  while (!memberships.empty()) {
    const size_t end = std::min(memberships.find('\n'), memberships.size());
    const std::string_view line = memberships.substr(0, end);
    memberships.remove_prefix(std::min(end + 1, memberships.size()));
    // hierarchy:controllers:path; hierarchy 0 without controllers is version 2.
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::filesystem::path group = std::filesystem::path(line.substr(second + 1)).relative_path();
    double quota = 0;
    if (controllers.empty()) {
      quota = least_quota(mount, group, quota_of_unified_group);
    } else if (lists_cpu(controllers)) {
      // Mounted under all its names or under "cpu" alone; usually one is a link to the other.
      quota = least_quota(mount / "cpu", group, quota_of_legacy_group);
      if (quota == 0) quota = least_quota(mount / controllers, group, quota_of_legacy_group);
    }
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
  }
  return least;
}

int default_concurrency() {
  int count = static_cast<int>(allowed_processors().size());
  if (count == 0) count = static_cast<int>(std::thread::hardware_concurrency());
  std::ifstream file("/proc/self/cgroup");
  const std::string memberships((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const double quota = cgroup_quota(memberships, "/sys/fs/cgroup");
  if (quota > 0) count = std::min(count, static_cast<int>(quota));
  return std::max(1, count);
}

}  // namespace heddle
