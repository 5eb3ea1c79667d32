#include "base/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "heddle/limits.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

// Used where no source reports an amount: as much as machines have today.
constexpr int64_t unknown_machine = int64_t{1} << 40;

// Returns the lesser of two amounts, where 0 is unknown.
int64_t lesser(int64_t a, int64_t b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

// Returns the number in a group's file; 0 for "max", for text that is no number, and if there is no file.
int64_t number_in(const fs::path& file) {
  std::ifstream in(file);
  std::string text;
  if (!(in >> text)) return 0;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && number > 0 ? number : 0;
}

// Returns the least limit of the group `path` below `mount` and of the groups that contain it.
int64_t limit_of_groups(const fs::path& mount, const std::string& path, const char* file) {
  int64_t least = 0;
  fs::path group = mount / fs::path(path).relative_path();
  const size_t depth = static_cast<size_t>(std::distance(mount.begin(), mount.end()));
  while (static_cast<size_t>(std::distance(group.begin(), group.end())) >= depth) {
    least = lesser(least, number_in(group / file));
    if (group == mount || !group.has_relative_path()) break;
    group = group.parent_path();
  }
  return least;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(std::move(word));
  return words;
}

bool has_item(const std::string& list, std::string_view item) {
  std::istringstream in(list);
  for (std::string one; std::getline(in, one, ',');)
    if (one == item) return true;
  return false;
}

// Returns the path of this process's group; `controller` empty: of version 2. Empty: there is none.
std::string group_path(const fs::path& root, std::string_view controller) {
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : has_item(controllers, controller)) return line.substr(second + 1);
  }
  return {};
}

// Reads mountinfo: "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS ... - TYPE SOURCE SUPEROPTIONS".
int64_t limit_of_cgroups(const fs::path& root) {
  int64_t least = 0;
  std::ifstream in(root / "proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> words = words_of(line);
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    const bool second = dash[1] == "cgroup2", first = dash[1] == "cgroup" && has_item(dash[3], "memory");
    if (!first && !second) continue;
    std::string path = group_path(root, second ? "" : "memory");
    if (path.empty()) continue;
    // Only a part of the hierarchy may be mounted, as in containers.
    const std::string& mounted = words[3];
    if (mounted != "/") {
      if (path.compare(0, mounted.size(), mounted) == 0)
        path.erase(0, mounted.size());
      else
        path = "/";
    }
    const fs::path mount = root / fs::path(words[4]).relative_path();
    least = lesser(least, limit_of_groups(mount, path, second ? "memory.max" : "memory.limit_in_bytes"));
  }
  return least;
}

int64_t memory_of_machine(const fs::path& root) {
  std::ifstream in(root / "proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() < 2 || words[0] != "MemTotal:") continue;
    int64_t kib = 0;
    const auto [end, error] = std::from_chars(words[1].data(), words[1].data() + words[1].size(), kib);
    return error == std::errc() && kib > 0 && kib < (int64_t{1} << 50) ? kib * 1024 : 0;
  }
  return 0;
}

}  // namespace

int64_t machine_memory_bytes(const fs::path& root) {
  return lesser(memory_of_machine(root), limit_of_cgroups(root));
}

int64_t machine_memory_bytes() noexcept {
  static const int64_t bytes = [] {
    try {
      if (const int64_t told = machine_memory_bytes("/"); told > 0) return told;
    } catch (...) {  // no memory for a few lines of text, or an odd file system
    }
    const int64_t pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? pages * page : unknown_machine;
  }();
  return bytes;
}

}  // namespace heddle
