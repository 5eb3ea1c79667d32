#include "common/file_roles.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/text/text.h"

namespace heddle::tool {
namespace {

// Returns one text for one file: its inode when it exists, else the place where it would be. Empty: a device or pipe, which stores nothing.
std::string file_key(const std::filesystem::path& file) {
  struct stat there = {};
  if (::stat(file.c_str(), &there) == 0) return S_ISREG(there.st_mode) ? fmt::format("inode {} {}", there.st_dev, there.st_ino) : "";
  std::error_code unknown;
  const std::filesystem::path place = std::filesystem::weakly_canonical(std::filesystem::absolute(file, unknown), unknown);
  return fmt::format("place {}", (unknown ? file : place).native());
}

}  // namespace

void FileRoles::reads(const std::filesystem::path& file) {
  const std::string key = file_key(file);
  if (!key.empty()) roles_.try_emplace(key, Role{true, {}, file});
}

Status FileRoles::writes(const std::string& what, const std::filesystem::path& file) {
  const std::string key = file_key(file);
  if (key.empty()) return {};
  const auto [at, added] = roles_.try_emplace(key, Role{false, what, file});
  if (added) return {};
  const Role& there = at->second;
  return {Code::invalid_argument,
          fmt::format("{} {} would be written over {}{}", what, quoted(file.native()), quoted(there.file.native()),
                      there.read ? ", which is read" : fmt::format(", where {} goes", there.what)),
          "name another file"};
}

}  // namespace heddle::tool
