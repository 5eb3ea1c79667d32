// Whole files: reading untrusted ones with a bound, replacing ours as a whole.
// Threads: free functions are safe to call concurrently; one FileReplacement belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/status.h"

namespace heddle {

// Returns the text of an errno value, such as "Permission denied".
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

// Reads a regular file of at most `limit_bytes`, a limit of that name (base/text/limit_names.h). A file that changes while it is read gives
// some mixture or file_truncated. Errors: file_not_found, file_unreadable (also: not a regular file), file_truncated, limit_exceeded.
Result<FileBytes> read_file(const std::filesystem::path& path, int64_t limit_bytes, const char* limit_name = "file_bytes");

// Returns the names in a folder, without "." and "..", in no order. (A std::filesystem::directory_iterator ends the process when there is
// no memory.) Errors: file_unreadable.
Result<std::vector<std::string>> names_in(const std::filesystem::path& folder);

// A file that takes the place of `path` only when commit() succeeds: written next to it, synced, renamed, the folder synced. Destroyed
// before that, it leaves no file. Errors: file_unwritable.
//
// The temporary file of a process that was killed is called ".NAME.PROCESS.NUMBER.tmp", and the next replacement of NAME removes it, as
// does remove_left_over(). A writer holds a lock on its own (flock), so that one that lives in another container is not taken for dead, and
// so that a file of this process's number that an earlier process has left is told from one of its own.
class FileReplacement {
 public:
  static Result<FileReplacement> create(const std::filesystem::path& path);
  FileReplacement(FileReplacement&& other) noexcept;
  FileReplacement& operator=(FileReplacement&&) = delete;
  ~FileReplacement();
  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text.data(), text.size()))); }
  // Makes the written bytes durable, so that only the renaming is left to commit(): for files that are replaced together.
  Status sync();
  Status commit();
  // Does the first half of a commit() that goes together with that of another file: synced, it stays next to `path` as staged_name(name,
  // tag) until commit() renames it once more. From here on its destructor leaves it where it is: the other file may already need it.
  Status stage(const std::string& tag);
  // Returns ".NAME.TAG".
  static std::string staged_name(const std::string& name, const std::string& tag);
  // Called after commit(): removes the files that earlier writers of this name staged but never committed, with tags of the length of
  // `tag`. Files locked by a living writer stay.
  void remove_staged(const std::string& tag) const;
  // Locks the folder of this file while two files change their names together, so that writers of the same two do it one after the other.
  // Waits some seconds for another writer, who may have been stopped, and then continues without the lock; likewise where folders can't be
  // locked.
  FileDescriptor lock_folder() const;
  // Removes the temporary files of a folder that processes have left there which no longer run, of each name for which `is_wanted` returns
  // true. Files locked by a living writer stay. Failing to remove them is no error.
  static void remove_left_over(const std::filesystem::path& folder, const std::function<bool(const std::string& name)>& is_wanted);
  // [signal handler] Removes the temporary files of all the process's replacements, when the process is about to end.
  static void remove_unfinished();

 private:
  explicit FileReplacement(std::filesystem::path path) : path_(std::move(path)) {}
  Status failed(const char* what, int error) const;

  FileDescriptor fd_;
  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty: nothing to remove
  bool staged_ = false;              // the destructor then leaves the file
  int slot_ = -1;                    // where remove_unfinished finds its name
};

}  // namespace heddle
