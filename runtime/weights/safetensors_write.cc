#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/checksum.h"
#include "base/file.h"
#include "base/text/text.h"
#include "weights/safetensors.h"
#include "weights/safetensors_dtypes.h"

namespace heddle {
namespace {

constexpr int64_t alignment = 64;

// One tensor, or the padding before one (`source` null).
struct Piece {
  const TensorToWrite* source = nullptr;
  std::string name;
  int64_t begin = 0;  // offset in the data
  int64_t bytes = 0;
};

size_t byte_size(const TensorToWrite& tensor) {
  return static_cast<size_t>(byte_width(tensor.dtype) * tensor.shape.element_count());
}

Result<std::vector<Piece>> layout(std::span<const TensorToWrite> tensors) {
  std::vector<std::string_view> names;
  std::vector<Piece> tensor_pieces;
  for (const TensorToWrite& tensor : tensors) {
    Piece piece{&tensor, tensor.name, 0, 0};
    if (safetensors_dtype(tensor.dtype).empty() || !checked_byte_size(tensor.dtype, tensor.shape, &piece.bytes))
      return Status(Code::invalid_argument, fmt::format("tensor {} has no dtype or no size", quoted(tensor.name)));
    if (tensor.name == "__metadata__" || tensor.name.starts_with(safetensors_padding) || !is_utf8(tensor.name))
      return Status(Code::invalid_argument, fmt::format("{} can't be the name of a tensor in a safetensors file", quoted(tensor.name)),
                    "rename it");
    names.emplace_back(tensor.name);
    tensor_pieces.push_back(std::move(piece));
  }
  const NameIndex index(std::move(names));
  if (!index.duplicates().empty())
    return Status(Code::duplicate_name, fmt::format("two tensors are called {}", quoted(tensors[index.duplicates().front().second].name)));
  // Sizes that keep the alignment come first: then most files need no padding at all.
  std::stable_partition(tensor_pieces.begin(), tensor_pieces.end(), [](const Piece& piece) { return piece.bytes % alignment == 0; });
  std::vector<Piece> pieces;
  int64_t end = 0;
  for (Piece& piece : tensor_pieces) {
    const int64_t aligned = align_up(end, alignment);
    if (aligned != end) pieces.push_back({nullptr, fmt::format("{}{}", safetensors_padding, pieces.size()), end, aligned - end});
    piece.begin = aligned;
    if (!checked_add(aligned, piece.bytes, &end)) return Status(Code::limit_exceeded, "the tensors have more than 2^63 bytes");
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

// The header without its length field, padded with spaces (as the format allows) so that the data begins aligned.
std::string header_of(const std::vector<Piece>& pieces, const TextPairs& metadata) {
  std::string json = "{";
  for (const auto& [key, value] : metadata) json += (json.size() == 1 ? "\"__metadata__\":{" : ",") + quoted(key) + ":" + quoted(value);
  if (!metadata.empty()) json += "}";
  for (const Piece& piece : pieces) {
    const std::string_view dtype = piece.source != nullptr ? safetensors_dtype(piece.source->dtype) : "U8";
    const std::string shape = piece.source != nullptr ? piece.source->shape.text() : fmt::format("[{}]", piece.bytes);
    json += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}", json.size() == 1 ? "" : ",", quoted(piece.name),
                        dtype, shape, piece.begin, piece.begin + piece.bytes);
  }
  json += "}";
  json.resize(static_cast<size_t>(align_up(static_cast<int64_t>(json.size()) + 8, alignment)) - 8, ' ');
  return json;
}

// Appends the checksums to the caller's metadata.
Result<TextPairs> with_checksums(const TextPairs& metadata, std::span<const TensorToWrite> tensors,
                                 const std::vector<uint64_t>& checksums) {
  for (const auto& [key, value] : metadata)
    if (key.starts_with(safetensors_checksum))
      return Status(Code::invalid_argument, fmt::format("the metadata {} would be taken for a tensor's checksum", quoted(key)),
                    "rename it");
  TextPairs all = metadata;
  for (size_t i = 0; i < tensors.size(); ++i) all.emplace_back(std::string(safetensors_checksum) + tensors[i].name, hex(checksums[i]));
  return all;
}

}  // namespace

Result<WrittenWeights> write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                                         const TextPairs& metadata) {
  HEDDLE_TRY(CompleteWeights weights, complete_safetensors(path, tensors, metadata));
  HEDDLE_CHECK(weights.file.commit());
  return std::move(weights.written);
}

Result<CompleteWeights> complete_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                                             const TextPairs& metadata) {
  static constexpr std::byte zeros[alignment] = {};
  HEDDLE_TRY(const std::vector<Piece> pieces, layout(tensors));
  WrittenWeights written;
  for (const TensorToWrite& tensor : tensors)
    written.checksums.push_back(tensor.checksum ? *tensor.checksum : checksum({tensor.data, byte_size(tensor)}));
  HEDDLE_TRY(const TextPairs pairs, with_checksums(metadata, tensors, written.checksums));
  const std::string header = header_of(pieces, pairs);
  if (!tensors.empty()) {
    const Digest128 digest = digest128(std::as_bytes(std::span(header.data(), header.size())));
    written.identity = {digest.high, digest.low};
  }
  std::string length;
  for (int shift = 0; shift < 64; shift += 8) length += static_cast<char>((header.size() >> shift) & 0xFF);
  HEDDLE_TRY(FileReplacement file, FileReplacement::create(path));
  HEDDLE_CHECK(file.write(length));
  HEDDLE_CHECK(file.write(header));
  for (const Piece& piece : pieces)
    HEDDLE_CHECK(file.write({piece.source != nullptr ? piece.source->data : zeros, static_cast<size_t>(piece.bytes)}));
  return CompleteWeights{std::move(written), std::move(file)};
}

}  // namespace heddle
