// Mapping: a read-only view of one file beneath a folder, for weights.
//
// The name is untrusted: it can not leave the folder (no absolute path, no "..", no symbolic link that leads out) and can not name a device
// or a pipe. The file is trusted only as long as it is unchanged: the bytes of a mapping are the file's, so a process that shortens the
// file makes later reads of lost pages a SIGBUS, which no check can prevent at the instant of the read. What is guaranteed: (1) read()
// never faults; a shorter file is an error; (2) still_whole(), called by the session before it uses the mapping again, turns a file that
// shrank or was rewritten in between into an error; (3) replacing a file by rename, as all of our writers do, leaves mappings of the old
// one intact. Callers that need more load with map_weights = false. Immutable after open; all members may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

// Opens `name` beneath `folder` for reading. Errors: weights_outside, weights_missing, file_unreadable (also: not a regular file).
Result<FileDescriptor> open_beneath(const std::filesystem::path& folder, std::string_view name);

class Mapping : public std::enable_shared_from_this<Mapping> {
 public:
  // Opens the file like open_beneath; also limit_exceeded when the file has more than `limit_bytes`.
  static Result<std::shared_ptr<const Mapping>> open(const std::filesystem::path& folder, std::string_view name, int64_t limit_bytes);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  const std::string& name() const { return name_; }
  int64_t size() const { return size_; }
  // size() bytes; at least 64 more may be read (vector loads past the end) and are zero.
  const std::byte* data() const { return data_; }
  // Copies bytes [offset, offset + into.size()) through the file, never through the mapping. Errors: file_truncated, file_unreadable.
  Status read(int64_t offset, std::span<std::byte> into) const;
  // Returns ok while the file has its size and modification time of open(). Errors: file_truncated, weights_mismatch.
  Status still_whole() const;
  // Allows the pages wholly inside [begin, begin + bytes) to leave memory; reading them again brings them back from the file.
  void release(const std::byte* begin, int64_t bytes) const;
  // A blob of bytes of this mapping, which it keeps alive. `offset` must be a multiple of 64 bytes, and the bytes must be inside the
  // mapping.
  std::shared_ptr<const Blob> blob(DType dtype, const Shape& shape, int64_t offset, int64_t bytes) const;
  // The mapping that `blob` is part of, or null when its bytes are in memory.
  static const Mapping* of(const Blob& blob);

 private:
  Mapping() = default;
  FileDescriptor fd_;
  std::string name_;
  const std::byte* data_ = nullptr;
  size_t reserved_ = 0;  // bytes of address space
  int64_t size_ = 0;
  int64_t modified_s_ = 0;
  int64_t modified_ns_ = 0;
};

}  // namespace heddle
