// open_beneath: names from untrusted nets, resolved inside one folder by the kernel (openat2) or component by component.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/text/text.h"
#include "weights/mapping.h"

namespace heddle {
namespace {

// O_NONBLOCK: opening a pipe or a device must not hang before it can be refused.
constexpr int open_flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

Status outside(std::string_view name, const char* why) {
  return Status(Code::weights_outside, fmt::format("the weights file {} {}", quoted(name), why),
                "put the file into the folder of the net and refer to it by a relative name");
}

// The components of `name`, or the reason why it is refused.
Result<std::vector<std::string>> components(std::string_view name) {
  if (name.empty()) return Status(Code::weights_outside, "a weights file has an empty name");
  if (name.front() == '/') return outside(name, "is an absolute path");
  if (name.size() > 4096 || name.find('\0') != std::string_view::npos) return outside(name.substr(0, 64), "is not a file name");
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part == "..") return outside(name, "leaves the folder of the net");
    if (part.empty()) return outside(name, "has an empty component");
    if (part != ".") parts.emplace_back(part);
    begin = end + 1;
  }
  if (parts.empty()) return outside(name, "is not a file name");
  return parts;
}

Status refused(std::string_view name, int error) {
  if (error == EXDEV || error == ELOOP) return outside(name, "is or passes through a symbolic link that leaves the folder of the net");
  if (error == ENOENT || error == ENOTDIR)
    return Status(Code::weights_missing, fmt::format("the weights file {} does not exist", quoted(name)), "keep it beside the net");
  return Status(Code::file_unreadable, fmt::format("can't open the weights file {}: {}", quoted(name), errno_text(error)));
}

// Without openat2 (kernels before 5.6, some sandboxes): opens one component at a time, and refuses every symbolic link.
int walk(int folder, const std::vector<std::string>& parts) {
  FileDescriptor current;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    const int flags = last ? open_flags | O_NOFOLLOW : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const int fd = ::openat(current.valid() ? current.get() : folder, parts[i].c_str(), flags);
    if (fd < 0 || last) return fd;
    current = FileDescriptor(fd);
  }
  return -1;
}

int open_in(int folder, std::string_view name, const std::vector<std::string>& parts) {
  open_how how = {};
  how.flags = open_flags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const std::string terminated(name);
  const long fd = ::syscall(SYS_openat2, folder, terminated.c_str(), &how, sizeof(how));
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(fd);
  return walk(folder, parts);
}

}  // namespace

Result<FileDescriptor> open_beneath(const std::filesystem::path& folder, std::string_view name) {
  HEDDLE_TRY(const std::vector<std::string> parts, components(name));
  const std::filesystem::path base = folder.empty() ? std::filesystem::path(".") : folder;
  const FileDescriptor directory(::open(base.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid())
    return Status(Code::file_unreadable, fmt::format("can't open the folder {}: {}", quoted(base.native()), errno_text(errno)));
  FileDescriptor fd(open_in(directory.get(), name, parts));
  if (!fd.valid()) return refused(name, errno);
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return refused(name, errno);
  if (!S_ISREG(info.st_mode)) return Status(Code::file_unreadable, fmt::format("the weights file {} is not a regular file", quoted(name)));
  return fd;
}

}  // namespace heddle
