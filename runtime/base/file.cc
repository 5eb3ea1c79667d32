#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>
#include <system_error>

#include "base/limit_names.h"
#include "base/text.h"

namespace heddle {
namespace {

// The names of temporary files, where a signal handler can read them. More at a time than there are slots are simply not listed.
struct Unfinished {
  std::atomic<bool> taken{false};
  std::atomic<bool> named{false};
  char name[PATH_MAX] = "";
};
Unfinished unfinished[16];

int list_unfinished(const std::string& name) {
  if (name.size() >= sizeof(Unfinished::name)) return -1;
  for (int i = 0; i < static_cast<int>(std::size(unfinished)); ++i) {
    if (unfinished[i].taken.exchange(true)) continue;
    std::memcpy(unfinished[i].name, name.c_str(), name.size() + 1);
    unfinished[i].named = true;
    return i;
  }
  return -1;
}

void forget_unfinished(int slot) {
  if (slot < 0) return;
  unfinished[slot].named = false;
  unfinished[slot].taken = false;
}

}  // namespace

std::string errno_text(int error) {
  return std::generic_category().message(error);
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

void FileBytes::Free::operator()(std::byte* p) const {
  ::operator delete (p, std::align_val_t{64});
}

FileBytes FileBytes::allocate(size_t size) {
  FileBytes bytes;
  bytes.data.reset(static_cast<std::byte*>(::operator new (size, std::align_val_t{64})));
  bytes.size = size;
  return bytes;
}

Result<FileBytes> read_file(const std::filesystem::path& path, int64_t limit_bytes, const char* limit_name) {
  const std::string name = quoted(path.native());
  // O_NONBLOCK: opening a pipe or a device must not hang before it can be refused.
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) {
    const bool absent = errno == ENOENT || errno == ENOTDIR;
    return Status(absent ? Code::file_not_found : Code::file_unreadable, fmt::format("can't open {}: {}", name, errno_text(errno)),
                  absent ? "check the path" : "");
  }
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return Status(Code::file_unreadable, fmt::format("can't stat {}: {}", name, errno_text(errno)));
  if (!S_ISREG(info.st_mode))
    return Status(Code::file_unreadable, fmt::format("{} is not a regular file", name), "give the path of a file");
  if (info.st_size > limit_bytes) return over_limit(limit_name, limit_bytes, fmt::format("{} has {}", name, human_bytes(info.st_size)));
  FileBytes bytes = FileBytes::allocate(static_cast<size_t>(info.st_size));
  for (size_t done = 0; done < bytes.size;) {
    const ssize_t n = ::read(fd.get(), bytes.data.get() + done, bytes.size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Status(Code::file_unreadable, fmt::format("can't read {}: {}", name, errno_text(errno)));
    if (n == 0) return Status(Code::file_truncated, fmt::format("{} became shorter while it was read", name));
    done += static_cast<size_t>(n);
  }
  return bytes;
}

Result<FileReplacement> FileReplacement::create(const std::filesystem::path& path) {
  static std::atomic<unsigned> counter{0};
  if (!path.has_filename()) return Status(Code::file_unwritable, fmt::format("{} does not name a file", quoted(path.native())));
  std::error_code unknown;
  if (std::filesystem::is_symlink(path, unknown)) {
    const std::filesystem::path target = std::filesystem::weakly_canonical(path, unknown);
    if (!unknown && !std::filesystem::is_symlink(target, unknown)) return create(target);
    return Status(Code::file_unwritable, fmt::format("{} is a symbolic link that leads nowhere", quoted(path.native())),
                  "name the file itself");
  }
  struct stat there = {};
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode))
    return Status(Code::file_unwritable, fmt::format("{} is not a regular file, and would be replaced by one", quoted(path.native())),
                  "name another file");
  std::filesystem::path temporary;
  int fd = -1, slot = -1;
  do {  // a name left behind by a process of the same id is skipped
    const std::string suffix = fmt::format(".{}.{}.tmp", ::getpid(), counter.fetch_add(1));
    temporary = path.parent_path() / ("." + path.filename().native().substr(0, 200) + suffix);
    forget_unfinished(slot);
    slot = list_unfinished(temporary.native());
    fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  } while (fd < 0 && errno == EEXIST);
  if (fd < 0) {
    const int error = errno;
    forget_unfinished(slot);
    return Status(Code::file_unwritable, fmt::format("can't write {}: {}", quoted(path.native()), errno_text(error)),
                  error == ENOENT ? "make its folder first" : "");
  }
  struct stat before = {};  // a replaced file keeps its permissions; failing to is no reason not to write
  if (::stat(path.c_str(), &before) == 0 && S_ISREG(before.st_mode) && ::fchmod(fd, before.st_mode & 0777) != 0) errno = 0;
  return FileReplacement(FileDescriptor(fd), path, std::move(temporary), slot);
}

FileReplacement::FileReplacement(FileReplacement&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      slot_(std::exchange(other.slot_, -1)) {}

FileReplacement::~FileReplacement() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  forget_unfinished(slot_);
}

void FileReplacement::remove_unfinished() {
  for (const Unfinished& file : unfinished)
    if (file.named) ::unlink(file.name);
}

Status FileReplacement::failed(const char* what, int error) const {
  return Status(Code::file_unwritable, fmt::format("can't {} {}: {}", what, quoted(path_.native()), errno_text(error)));
}

Status FileReplacement::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("write", errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

Status FileReplacement::sync() {
  return ::fsync(fd_.get()) != 0 ? failed("sync", errno) : Status();
}

Status FileReplacement::commit() {
  HEDDLE_CHECK(sync());
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failed("replace", errno);
  temporary_.clear();
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path(".");
  const FileDescriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems refuse to sync a folder; the file itself is whole either way.
  if (directory.valid() && ::fsync(directory.get()) != 0 && errno != EINVAL && errno != ENOTSUP) return failed("sync the folder of", errno);
  return {};
}

}  // namespace heddle
