#include "schedule/control_groups.h"

#include <algorithm>
#include <charconv>
#include <fstream>

namespace heddle {
namespace {

// Returns the first line of a small file; empty when there is none.
std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns the positive decimal number at the front of `text` and removes it from there; 0: there is none.
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

// Returns the least limit of a group and its parents up to the mount. Inside a container the group's path may be the host's: then only the
// groups that exist count.
using LimitOf = double (*)(const std::filesystem::path& group);
double min_limit(const std::filesystem::path& mount, std::filesystem::path group, LimitOf limit_of) {
  double least = 0;
  for (;;) {
    const double limit = limit_of(mount / group);
    if (limit > 0 && (least == 0 || limit < least)) least = limit;
    if (group.empty()) return least;
    group = group.has_parent_path() ? group.parent_path() : std::filesystem::path();
  }
}

bool lists(std::string_view controllers, std::string_view controller) {
  while (!controllers.empty()) {
    const size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == controller) return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

// Returns a controller's limit; 0: none.
double limit(std::string_view memberships, const std::filesystem::path& mount, const char* controller, LimitOf unified, LimitOf legacy) {
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
    double found = 0;
    if (controllers.empty()) {
      found = min_limit(mount, group, unified);
    } else if (lists(controllers, controller)) {
      // Mounted under all its names or under its own alone; usually one is a link to the other.
      found = min_limit(mount / controller, group, legacy);
      if (found == 0) found = min_limit(mount / controllers, group, legacy);
    }
    if (found > 0 && (least == 0 || found < least)) least = found;
  }
  return least;
}

}  // namespace

double cgroup_quota(std::string_view memberships, const std::filesystem::path& mount) {
  return limit(memberships, mount, "cpu", quota_of_unified_group, quota_of_legacy_group);
}

std::string own_memberships() {
  std::ifstream file("/proc/self/cgroup");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace heddle
