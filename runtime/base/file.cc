#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <new>
#include <optional>
#include <system_error>
#include <thread>

#include "base/text/limit_names.h"
#include "base/text/text.h"

namespace heddle {
namespace {

// The names of temporary files, stored where a signal handler can read them. Files beyond the number of slots are simply not listed.
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

// Cuts the name so that the system's limit leaves room for the rest of a temporary file's name.
std::string shortened(const std::string& name) {
  return name.substr(0, 200);
}

std::string temporary_name(const std::string& name, pid_t process, unsigned number) {
  return fmt::format(".{}.{}.{}.tmp", shortened(name), process, number);
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// The parts of the name of a temporary file.
struct TemporaryName {
  std::string name;  // that it will take, shortened
  pid_t process = 0;
};

// Takes the name of a file apart; none: it is not one of a temporary file.
std::optional<TemporaryName> parse_temporary_name(const std::string& file) {
  constexpr std::string_view end = ".tmp";
  if (!file.starts_with('.') || !file.ends_with(end)) return std::nullopt;
  const std::string_view middle = std::string_view(file).substr(0, file.size() - end.size());
  const size_t second = middle.rfind('.'), first = second == 0 ? 0 : middle.rfind('.', second - 1);
  int64_t process = 0, number = 0;
  if (first < 2 || !parse_int(middle.substr(first + 1, second - first - 1), &process) || !parse_int(middle.substr(second + 1), &number))
    return std::nullopt;
  if (process <= 0 || process > INT_MAX) return std::nullopt;
  return TemporaryName{std::string(middle.substr(1, first - 1)), static_cast<pid_t>(process)};
}

// Returns whether the process may have written its last. Of this process's own number there may be files of an earlier process, as where
// each container counts from 1: the lock tells them from those that are being written.
bool may_have_ended(pid_t process) {
  return process == ::getpid() || (::kill(process, 0) != 0 && errno == ESRCH);
}

// Locks a temporary file that was just made. Returns false if another thread or container has taken it, before it had a lock, for one that
// was left over, and removes it.
bool lock_new(int fd) {
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;  // where there are no locks, no file is removed
  struct stat info = {};
  return ::fstat(fd, &info) != 0 || info.st_nlink > 0;
}

void remove_unlocked(const std::filesystem::path& file) {
  const FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(file.c_str());
}

// Some file systems refuse to sync a folder; the file itself is whole either way. Returns 0, or an errno value.
int sync_folder_of(const std::filesystem::path& path) {
  const FileDescriptor directory(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid() || ::fsync(directory.get()) == 0 || errno == EINVAL || errno == ENOTSUP) return 0;
  return errno;
}

}  // namespace

std::string errno_text(int error) {
  return std::generic_category().message(error);
}

Result<std::vector<std::string>> names_in(const std::filesystem::path& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  if (!open) return Status(Code::file_unreadable, fmt::format("can't list the folder {}: {}", quoted(folder.native()), errno_text(errno)));
  std::vector<std::string> names;
  while (const dirent* const entry = ::readdir(open.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
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
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)  // no fault of the file
      return Status(Code::out_of_memory, fmt::format("can't open {}: {}", name, errno_text(errno)), "let processes have more open files");
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
  const std::string name = shortened(path.filename().native());
  remove_left_over(folder_of(path), [&](const std::string& other) { return other == name; });
  FileReplacement made(path);
  for (;;) {  // a name left over from a process of the same id is skipped
    std::filesystem::path temporary = path.parent_path() / temporary_name(path.filename().native(), ::getpid(), counter.fetch_add(1));
    forget_unfinished(made.slot_);
    made.slot_ = list_unfinished(temporary.native());
    made.fd_ = FileDescriptor(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
    const int error = errno;
    if (made.fd_.valid()) {
      if (!lock_new(made.fd_.get())) continue;
      made.temporary_ = std::move(temporary);
      break;
    }
    if (error == EEXIST) continue;
    return Status(Code::file_unwritable, fmt::format("can't write {}: {}", quoted(path.native()), errno_text(error)),
                  error == ENOENT ? "make its folder first" : "");
  }
  const int fd = made.fd_.get();
  struct stat before = {};  // a replaced file keeps its permissions; failing to is no reason not to write
  if (::stat(path.c_str(), &before) == 0 && S_ISREG(before.st_mode) && ::fchmod(fd, before.st_mode & 0777) != 0) errno = 0;
  return made;
}

FileReplacement::FileReplacement(FileReplacement&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      staged_(other.staged_),
      slot_(std::exchange(other.slot_, -1)) {}

FileReplacement::~FileReplacement() {
  if (!temporary_.empty() && !staged_) ::unlink(temporary_.c_str());
  forget_unfinished(slot_);
}

void FileReplacement::remove_left_over(const std::filesystem::path& folder, const std::function<bool(const std::string& name)>& is_wanted) {
  const Result<std::vector<std::string>> names = names_in(folder);
  if (!names.ok()) return;
  for (const std::string& file : *names) {
    const std::optional<TemporaryName> temporary = parse_temporary_name(file);
    if (temporary && is_wanted(temporary->name) && may_have_ended(temporary->process)) remove_unlocked(folder / file);
  }
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
  const int error = sync_folder_of(path_);
  return error != 0 ? failed("sync the folder of", error) : Status();
}

std::string FileReplacement::staged_name(const std::string& name, const std::string& tag) {
  return fmt::format(".{}.{}", shortened(name), tag);
}

Status FileReplacement::stage(const std::string& tag) {
  HEDDLE_CHECK(sync());
  std::filesystem::path staged = path_.parent_path() / staged_name(path_.filename().native(), tag);
  if (::rename(temporary_.c_str(), staged.c_str()) != 0) return failed("replace", errno);
  forget_unfinished(std::exchange(slot_, -1));
  temporary_ = std::move(staged);
  staged_ = true;
  const int error = sync_folder_of(path_);
  return error != 0 ? failed("sync the folder of", error) : Status();
}

void FileReplacement::remove_staged(const std::string& tag) const {
  const std::string name = path_.filename().native();
  const std::string begin = staged_name(name, "");
  const Result<std::vector<std::string>> names = names_in(folder_of(path_));
  if (!names.ok()) return;
  for (const std::string& file : *names)
    if (file.starts_with(begin) && file.size() == begin.size() + tag.size() &&
        file.find_first_not_of("0123456789abcdef", begin.size()) == std::string::npos)
      remove_unlocked(folder_of(path_) / file);
}

FileDescriptor FileReplacement::lock_folder() const {
  FileDescriptor folder(::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  constexpr int tries = 3000;
  for (int i = 0; folder.valid() && i < tries && ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return folder;
}

}  // namespace heddle
