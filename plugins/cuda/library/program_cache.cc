#include "library/program_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace heddle::cuda {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_bytes = size_t{64} << 20;

// The user's own, and nobody else may write it.
bool is_own(const struct stat& status) {
  return status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::string file_of(const std::string& key) {
  const std::string folder = cache_folder();
  struct stat status = {};
  if (folder.empty() || ::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || !is_own(status)) return {};
  return folder + "/" + key + ".cubin";
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
  if (size <= 32 || size > most_bytes) return false;
  std::string bytes(size, '\0');
  for (size_t at = 0; at < size;) {
    const ssize_t n = ::read(in.get(), bytes.data() + at, size - at);
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  *code = bytes.substr(32);
  return bytes.substr(0, 32) == hash_text(*code);
}

void write_cached(const std::string& key, const std::string& code) {
  const std::string folder = cache_folder();
  if (folder.empty()) return;
  std::error_code ignored;
  fs::create_directories(fs::path(folder).parent_path(), ignored);
  ::mkdir(folder.c_str(), 0700);
  const std::string file = file_of(key);
  if (file.empty()) return;
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
