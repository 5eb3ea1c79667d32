#include "library/program_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace heddle::cuda {
namespace {

namespace fs = std::filesystem;

constexpr size_t max_program_bytes = size_t{64} << 20;
const std::string extension = ".cubin";

// Returns true if the file belongs to the user, and no other user may write it.
bool is_own(const struct stat& status) {
  return status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::string file_of(const std::string& key) {
  const std::string folder = cache_folder();
  struct stat status = {};
  if (folder.empty() || ::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || !is_own(status)) return {};
  return folder + "/" + key + extension;
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

bool write_all(int fd, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::write(fd, bytes.data() + at, bytes.size() - at);
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  return true;
}

struct Kept {
  fs::path file;
  uint64_t bytes = 0;
  fs::file_time_type read;  // when it was last read or written
};

// Lists the programs in the folder, and unfinished files of processes that were killed while they wrote.
std::vector<Kept> kept_in(const std::string& folder) {
  std::vector<Kept> all;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().string().find(extension) == std::string::npos) continue;
    std::error_code gone;  // ignored: another process may remove files at the same time
    Kept kept{at->path(), at->file_size(gone), {}};
    if (!gone) kept.read = at->last_write_time(gone);
    if (!gone && at->symlink_status(gone).type() == fs::file_type::regular && !gone) all.push_back(std::move(kept));
  }
  return all;
}

// Removes the least recently read files until `bytes` more fit within `max_bytes`.
void make_room(const std::string& folder, uint64_t bytes, uint64_t max_bytes) {
  std::vector<Kept> all = kept_in(folder);
  for (const Kept& kept : all) bytes += kept.bytes;
  if (bytes <= max_bytes) return;
  std::sort(all.begin(), all.end(), [](const Kept& a, const Kept& b) { return a.read < b.read; });
  for (const Kept& kept : all) {
    if (bytes <= max_bytes) return;
    std::error_code ignored;
    if (fs::remove(kept.file, ignored)) bytes -= kept.bytes;
  }
}

}  // namespace

std::string hash_text(const std::string& text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  char digits[40];
  std::snprintf(digits, sizeof(digits), "%016" PRIx64 "%016" PRIx64, static_cast<uint64_t>(hash.high64), static_cast<uint64_t>(hash.low64));
  return digits;
}

std::string cache_folder() {
  if (const char* const given = std::getenv("HEDDLE_CUDA_CACHE")) return std::string(given) == "off" ? "" : given;
  if (const char* const cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/') return std::string(cache) + "/heddle/cuda";
  if (const char* const home = std::getenv("HOME"); home && *home == '/') return std::string(home) + "/.cache/heddle/cuda";
  return {};
}

bool read_cached(const std::string& key, std::string* code) {
  const std::string file = file_of(key);
  if (file.empty()) return false;
  const Descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status = {};
  if (in.get() < 0 || ::fstat(in.get(), &status) != 0 || !S_ISREG(status.st_mode) || !is_own(status)) return false;
  const auto size = static_cast<size_t>(status.st_size);
  if (size <= 32 || size > max_program_bytes) return false;
  std::string bytes(size, '\0');
  for (size_t at = 0; at < size;) {
    const ssize_t n = ::read(in.get(), bytes.data() + at, size - at);
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  *code = bytes.substr(32);
  if (bytes.substr(0, 32) != hash_text(*code)) return false;
  ::futimens(in.get(), nullptr);  // marks it as read now: the most recently read files are kept longest
  return true;
}

void write_cached(const std::string& key, const std::string& code, uint64_t max_bytes) {
  const std::string folder = cache_folder();
  if (folder.empty()) return;
  std::error_code ignored;
  fs::create_directories(fs::path(folder).parent_path(), ignored);
  ::mkdir(folder.c_str(), 0700);
  const std::string file = file_of(key);
  if (file.empty()) return;
  make_room(folder, code.size() + 32, max_bytes);
  std::string own = file + ".XXXXXX";
  {
    const Descriptor out(::mkostemp(own.data(), O_CLOEXEC));
    if (out.get() < 0) return;
    if (!write_all(out.get(), hash_text(code)) || !write_all(out.get(), code)) {
      ::unlink(own.c_str());
      return;
    }
  }
  if (::rename(own.c_str(), file.c_str()) != 0) ::unlink(own.c_str());
}

}  // namespace heddle::cuda
