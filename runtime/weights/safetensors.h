// safetensors: named tensors in one file: 8 bytes header length (little-endian), a JSON header, the bytes. Format:
// https://github.com/huggingface/safetensors. Read strictly as its reference implementation does: offsets cover the bytes exactly, without
// holes and overlaps. Files written here begin their data and every tensor at a multiple of 64 bytes and carry the checksum of every tensor
// in their metadata, so that their header alone identifies the weights (docs/net_format.md). Threads: reading members are safe to call
// concurrently.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text/limit_names.h"
#include "base/text/name_index.h"
#include "heddle/status.h"
#include "heddle/tensor.h"
#include "net/net.h"
#include "weights/mapping.h"

namespace heddle {

using TextPairs = std::vector<std::pair<std::string, std::string>>;

struct TensorEntry {
  std::string name;
  std::string file_dtype;     // as the file spells it, "F32"
  DType dtype = DType::none;  // none: a dtype that Heddle does not have
  Shape shape;
  int64_t offset = 0;  // from the beginning of the file
  int64_t bytes = 0;
  std::optional<uint64_t> checksum;  // xxh64 of its bytes, as the file states it; files of other programs have none
};

// Parses the tensors of a header (the JSON text alone), sorted by offset, and checks them against the bytes that follow it in the file.
// `data_begin` is the offset of those bytes in the file. `metadata` receives __metadata__ without the checksums of tensors; entries that
// only pad are left out. Errors: file_corrupt, file_truncated, duplicate_name, limit_exceeded.
Result<std::vector<TensorEntry>> parse_safetensors_header(std::string_view header, int64_t data_begin, int64_t file_bytes,
                                                          TextPairs* metadata);

class Safetensors {
 public:
  // Opens `name` beneath `folder`; reads the header only.
  static Result<Safetensors> open(const std::filesystem::path& folder, std::string_view name, const Limits& limits);
  const std::vector<TensorEntry>& tensors() const { return *tensors_; }
  const TextPairs& metadata() const { return metadata_; }
  // Set when the file has the checksum of every tensor: the digest of its header.
  const WeightsIdentity& identity() const { return identity_; }
  const TensorEntry* find(std::string_view tensor) const;
  const Mapping& mapping() const { return *mapping_; }

  // The bytes of one of tensors(). Mapped without a copy when `map` is set, the tensor has more than `small_tensor_bytes` and begins at a
  // multiple of 64 bytes; else read into memory. Errors: unsupported (dtype), file_truncated, file_corrupt (a bool that is neither 0 nor
  // 1).
  Result<std::shared_ptr<const Blob>> blob(const TensorEntry& entry, bool map = true) const;
  // xxh64 of its bytes, read through the file.
  Result<uint64_t> checksum_of(const TensorEntry& entry) const;

  static constexpr int64_t small_tensor_bytes = 16 << 10;

 private:
  std::shared_ptr<const Mapping> mapping_;
  std::shared_ptr<const std::vector<TensorEntry>> tensors_;  // its address must not change: index_ refers to the names
  NameIndex index_;
  TextPairs metadata_;
  WeightsIdentity identity_;
};

// A tensor to write. The bytes belong to the caller and must stay valid during the call.
struct TensorToWrite {
  std::string name;
  DType dtype = DType::none;
  Shape shape;
  const std::byte* data = nullptr;
  std::optional<uint64_t> checksum = std::nullopt;  // xxh64 of the bytes, where the caller has computed it
};

// The facts that a net records about a file written for it.
struct WrittenWeights {
  WeightsIdentity identity;
  std::vector<uint64_t> checksums;  // of the tensors, in the order of the call
};

// Replaces `path` by a file of these tensors. Those whose size is a multiple of 64 come first, in the given order; between the others there
// are padding tensors of type U8 named "__padding__.<n>", because the format allows no holes. Their bytes are read twice: for the checksums
// in the header, unless these are given, and to be written. Errors: file_unwritable, duplicate_name, invalid_argument (also: a key of
// `metadata` is that of a checksum).
Result<WrittenWeights> write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                                         const TextPairs& metadata = {});

// Like write_safetensors, but without the last step: the file is complete, and replaces `path` with file.commit().
struct CompleteWeights {
  WrittenWeights written;
  FileReplacement file;
};
Result<CompleteWeights> complete_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                                             const TextPairs& metadata = {});

}  // namespace heddle
