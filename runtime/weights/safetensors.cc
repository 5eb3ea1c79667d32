#include "weights/safetensors.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checksum.h"
#include "base/text/text.h"

namespace heddle {
namespace {

constexpr int64_t header_limit_bytes = 100'000'000;  // like the reference implementation

Status check_booleans(const TensorEntry& entry, std::span<const std::byte> bytes) {
  const auto wrong = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
  if (wrong == bytes.end()) return {};
  return Status(Code::file_corrupt,
                fmt::format("element {} of the bool tensor {} is neither 0 nor 1", wrong - bytes.begin(), quoted(entry.name)));
}

int64_t little_endian(const std::byte (&bytes)[8]) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = (value << 8) | std::to_integer<uint64_t>(bytes[i]);
  return value > INT64_MAX ? INT64_MAX : static_cast<int64_t>(value);
}

}  // namespace

Result<Safetensors> Safetensors::open(const std::filesystem::path& folder, std::string_view name, const Limits& limits) {
  const std::string what = fmt::format("in {}", quoted(name));
  Safetensors file;
  HEDDLE_TRY(file.mapping_, Mapping::open(folder, name, limits.weight_file_bytes));
  const int64_t size = file.mapping_->size();
  if (size < 8) return Status(Code::file_truncated, fmt::format("the weights file {} has no header", quoted(name)), "fetch it again");
  std::byte length_bytes[8];
  HEDDLE_CHECK(file.mapping_->read(0, length_bytes));
  const int64_t length = little_endian(length_bytes);
  if (length > header_limit_bytes)
    return Status(Code::file_corrupt, fmt::format("the weights file {} says that its header has {} bytes", quoted(name), length),
                  "this is no safetensors file, or it is damaged");
  if (length > size - 8)
    return Status(Code::file_truncated, fmt::format("the header of the weights file {} is longer than the file", quoted(name)),
                  "fetch it again");
  std::string header(static_cast<size_t>(length), '\0');
  HEDDLE_CHECK(file.mapping_->read(8, std::as_writable_bytes(std::span(header.data(), header.size()))));
  HEDDLE_TRY(std::vector<TensorEntry> entries, parse_safetensors_header(header, 8 + length, size, &file.metadata_), what);
  const bool told = !entries.empty() && std::all_of(entries.begin(), entries.end(), [](const TensorEntry& e) { return e.checksum; });
  if (told) {
    const Digest128 digest = digest128(std::as_bytes(std::span(header.data(), header.size())));
    file.identity_ = {digest.high, digest.low};
  }
  file.tensors_ = std::make_shared<const std::vector<TensorEntry>>(std::move(entries));
  std::vector<std::string_view> names;
  names.reserve(file.tensors_->size());
  for (const TensorEntry& entry : *file.tensors_) names.emplace_back(entry.name);
  file.index_ = NameIndex(std::move(names));
  return file;
}

const TensorEntry* Safetensors::find(std::string_view tensor) const {
  const std::optional<uint32_t> position = index_.find(tensor);
  return position ? &(*tensors_)[*position] : nullptr;
}

Result<std::shared_ptr<const Blob>> Safetensors::blob(const TensorEntry& entry, bool map) const {
  if (entry.dtype == DType::none)
    return Status(Code::unsupported, fmt::format("tensor {} has the dtype {}", quoted(entry.name), quoted(entry.file_dtype)),
                  "convert it to f32 or f16");
  std::shared_ptr<const Blob> blob;
  // Booleans are read into memory, so that the checked bytes cannot change.
  if (map && entry.dtype != DType::boolean && entry.bytes > small_tensor_bytes && entry.offset % 64 == 0) {
    blob = mapping_->blob(entry.dtype, entry.shape, entry.offset, entry.bytes);
  } else {
    std::byte* bytes = nullptr;
    const std::shared_ptr<Blob> copy = Blob::allocate(entry.dtype, entry.shape, &bytes);
    const std::span<std::byte> into(bytes, static_cast<size_t>(entry.bytes));
    HEDDLE_CHECK(mapping_->read(entry.offset, into));
    if (entry.dtype == DType::boolean) HEDDLE_CHECK(check_booleans(entry, into));
    blob = copy;
  }
  return blob;
}

Result<uint64_t> Safetensors::checksum_of(const TensorEntry& entry) const {
  RunningChecksum sum;
  std::vector<std::byte> piece(static_cast<size_t>(std::min<int64_t>(entry.bytes, int64_t{1} << 20)));
  for (int64_t done = 0; done < entry.bytes;) {
    const std::span<std::byte> part(piece.data(), std::min(piece.size(), static_cast<size_t>(entry.bytes - done)));
    HEDDLE_CHECK(mapping_->read(entry.offset + done, part));
    sum.add(part);
    done += static_cast<int64_t>(part.size());
  }
  return sum.value();
}

}  // namespace heddle
