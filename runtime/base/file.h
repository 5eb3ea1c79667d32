// Whole files: reading untrusted ones with a bound, replacing ours as a whole.
// Threads: free functions are safe to call concurrently; one FileReplacement belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/status.h"

namespace heddle {

// "Permission denied" and such for an errno value.
std::string errno_text(int error);

// Owns a file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor();
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Bytes on the heap, 64-byte aligned.
struct FileBytes {
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte[], Free> data;
  size_t size = 0;
  static FileBytes allocate(size_t size);
  std::span<const std::byte> span() const { return {data.get(), size}; }
};

// The content of a regular file of at most `limit_bytes`, a limit of that name (base/text/limit_names.h). A file that changes while it is
// read gives some mixture or file_truncated. Errors: file_not_found, file_unreadable (also: not a regular file), file_truncated,
// limit_exceeded.
Result<FileBytes> read_file(const std::filesystem::path& path, int64_t limit_bytes, const char* limit_name = "file_bytes");

// The names in a folder, without "." and "..", in no order. (A std::filesystem::directory_iterator ends the process when there is no
// memory.) Errors: file_unreadable.
Result<std::vector<std::string>> names_in(const std::filesystem::path& folder);

// A file that takes the place of `path` only when commit() succeeds: written beside it, synced, renamed, the folder synced.
// Destroyed before that, it leaves nothing behind. Errors: file_unwritable.
//
// What a process that was killed has left is called ".NAME.PROCESS.NUMBER.tmp", and the next replacement of NAME removes it. A writer holds
// a lock on its own (flock), so that one that lives in another container is not taken for dead.
class FileReplacement {
 public:
  static Result<FileReplacement> create(const std::filesystem::path& path);
  FileReplacement(FileReplacement&& other) noexcept;
  FileReplacement& operator=(FileReplacement&&) = delete;
  ~FileReplacement();
  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text.data(), text.size()))); }
  // What was written lies on the disk, and what is left to commit() is the name: for files that are replaced together.
  Status sync();
  Status commit();
  // The first half of a commit() that goes together with that of another file: synced, it stays beside `path` as staged_name(name, tag)
  // until commit() renames it once more. From here on its destructor leaves it where it is: the other file may already need it.
  Status stage(const std::string& tag);
  // ".NAME.TAG"
  static std::string staged_name(const std::string& name, const std::string& tag);
  // After commit(): removes what earlier writers of this name staged and did not live to commit, with tags of the length of `tag`. What a
  // living writer has locked stays.
  void remove_staged(const std::string& tag) const;
  // Holds a lock on the folder of this file while two files change their names together, so that writers of the same two do it one after
  // the other. It waits some seconds for another writer, who may have been stopped, and goes on then; so it does where folders can't be
  // locked.
  FileDescriptor lock_folder() const;
  // [signal handler] Removes what every replacement of the process has written so far, for one that is about to end.
  static void remove_unfinished();

 private:
  explicit FileReplacement(std::filesystem::path path) : path_(std::move(path)) {}
  Status failed(const char* what, int error) const;

  FileDescriptor fd_;
  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty: nothing to remove
  bool staged_ = false;              // then it stays
  int slot_ = -1;                    // where remove_unfinished finds its name
};

}  // namespace heddle
