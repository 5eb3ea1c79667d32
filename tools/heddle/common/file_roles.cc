#include "common/file_roles.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/text/text.h"
#include "common/standard_streams.h"

namespace heddle::tool {

// Returns one text for one file: its inode when it exists, else the place where it would be. Empty: a device or pipe, which stores nothing.
std::string FileRoles::key_of(const std::filesystem::path& file) {
  if (is_standard_output(file.native())) return standard_output_key;
  struct stat there = {};
  if (::stat(file.c_str(), &there) == 0) return S_ISREG(there.st_mode) ? fmt::format("inode {} {}", there.st_dev, there.st_ino) : "";
  std::error_code unknown;
  const std::filesystem::path place = std::filesystem::weakly_canonical(std::filesystem::absolute(file, unknown), unknown);
  return fmt::format("place {}", (unknown ? file : place).native());
}

void FileRoles::reads(const std::filesystem::path& file) {
  if (file == "-") return;
  const std::string key = key_of(file);
  if (!key.empty()) roles_.try_emplace(key, Role{true, {}, file});
}

Status FileRoles::writes(const std::string& what, const std::filesystem::path& file) {
  const std::string key = key_of(file);
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
