// The header of a safetensors file: untrusted JSON to checked entries.
#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/text/json_document.h"
#include "base/text/text.h"
#include "weights/safetensors.h"
#include "weights/safetensors_dtypes.h"

namespace heddle {
namespace {

using Kind = JsonValue::Kind;

Status corrupt(const std::string& what) {
  return Status(Code::file_corrupt, fmt::format("the safetensors header is damaged: {}", what), "write the file again");
}

Status parse_shape(JsonValue dims, TensorEntry* entry) {
  if (!dims.is(Kind::array)) return corrupt(fmt::format("{} has no shape", quoted(entry->name)));
  if (dims.size() > max_rank)
    return Status(Code::limit_exceeded,
                  fmt::format("tensor {} has {} dimensions, more than {}", quoted(entry->name), dims.size(), max_rank));
  for (JsonValue dim : dims) {
    const std::optional<int64_t> extent = dim.integer();
    if (!extent || *extent < 0) return corrupt(fmt::format("{} has a dimension that is no size", quoted(entry->name)));
    entry->shape.push_back(*extent);
  }
  return {};
}

// Reads offsets, and converts them from "in the data" to "in the file".
Status parse_offsets(JsonValue offsets, int64_t data_begin, int64_t file_bytes, TensorEntry* entry) {
  if (!offsets.is(Kind::array) || offsets.size() != 2) return corrupt(fmt::format("{} has no data_offsets", quoted(entry->name)));
  JsonValue::Iterator at = offsets.begin();
  const std::optional<int64_t> begin = (*at).integer();
  const std::optional<int64_t> end = (*++at).integer();
  if (!begin || !end || *begin < 0 || *end < *begin)
    return corrupt(fmt::format("{} has data_offsets that are no range", quoted(entry->name)));
  if (*end > file_bytes - data_begin)
    return Status(Code::file_truncated,
                  fmt::format("tensor {} ends at byte {} of the data, the file has {}", quoted(entry->name), *end, file_bytes - data_begin),
                  "the file is shorter than it was written: fetch it again");
  entry->offset = data_begin + *begin;
  entry->bytes = *end - *begin;
  return {};
}

Result<TensorEntry> parse_entry(std::string_view name, JsonValue value, int64_t data_begin, int64_t file_bytes) {
  TensorEntry entry;
  entry.name = std::string(name);
  if (!value.is(Kind::object)) return corrupt(fmt::format("{} is no object", quoted(name)));
  const std::optional<JsonValue> dtype = value.find("dtype");
  const std::optional<JsonValue> shape = value.find("shape");
  const std::optional<JsonValue> offsets = value.find("data_offsets");
  if (value.size() != 3 || !dtype || !shape || !offsets || !dtype->is(Kind::string))
    return corrupt(fmt::format("{} needs exactly dtype, shape and data_offsets", quoted(name)));
  entry.file_dtype = std::string(dtype->text());
  entry.dtype = dtype_of_safetensors(entry.file_dtype);
  HEDDLE_CHECK(parse_shape(*shape, &entry));
  HEDDLE_CHECK(parse_offsets(*offsets, data_begin, file_bytes, &entry));
  int64_t expected = 0;
  if (entry.dtype == DType::none) return entry;  // unknown dtypes are listed; reading their bytes is refused
  if (!checked_byte_size(entry.dtype, entry.shape, &expected) || expected != entry.bytes)
    return corrupt(fmt::format("{} is {} {} but has {} bytes", quoted(name), entry.file_dtype, entry.shape.text(), entry.bytes));
  return entry;
}

Status parse_metadata(JsonValue value, TextPairs* pairs) {
  if (!value.is(Kind::object)) return corrupt("__metadata__ is no object");
  for (JsonValue::Iterator at = value.begin(); !(at == value.end()); ++at) {
    const std::string_view key = (*at).text();
    ++at;
    if (!(*at).is(Kind::string)) return corrupt(fmt::format("the metadata {} is no text", quoted(key)));
    pairs->emplace_back(key, (*at).text());
  }
  return {};
}

NameIndex index_of(const std::vector<TensorEntry>& entries) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const TensorEntry& entry : entries) names.emplace_back(entry.name);
  return NameIndex(std::move(names));
}

// Moves checksums from the metadata to their tensors. One for a tensor that the file does not have stays metadata: other programs may
// remove a tensor and leave its checksum.
Status take_checksums(const NameIndex& index, TextPairs& metadata, std::vector<TensorEntry>& entries) {
  Status status;
  std::erase_if(metadata, [&](const std::pair<std::string, std::string>& pair) {
    if (!pair.first.starts_with(safetensors_checksum)) return false;
    const std::optional<uint32_t> position = index.find(std::string_view(pair.first).substr(safetensors_checksum.size()));
    if (!position) return false;
    uint64_t checksum = 0;
    if (parse_hex(pair.second, &checksum))
      entries[*position].checksum = checksum;
    else if (status.ok())
      status =
          corrupt(fmt::format("the checksum {} of {} is not 16 hexadecimal digits", quoted(pair.second), quoted(entries[*position].name)));
    return true;
  });
  return status;
}

// "The byte buffer needs to be entirely indexed, and cannot contain holes."
Status check_cover(const std::vector<TensorEntry>& by_offset, int64_t data_begin, int64_t file_bytes) {
  int64_t end = data_begin;
  for (const TensorEntry& entry : by_offset) {
    if (entry.offset < end) return corrupt(fmt::format("{} overlaps the tensor before it", quoted(entry.name)));
    if (entry.offset > end) return corrupt(fmt::format("there is a hole before {}", quoted(entry.name)));
    end = entry.offset + entry.bytes;
  }
  if (end != file_bytes) return corrupt(fmt::format("{} bytes at the end of the file belong to no tensor", file_bytes - end));
  return {};
}

}  // namespace

Result<std::vector<TensorEntry>> parse_safetensors_header(std::string_view header, int64_t data_begin, int64_t file_bytes,
                                                          TextPairs* metadata) {
  if (header.empty() || header.front() != '{') return corrupt("it does not begin with {");
  HEDDLE_TRY(const JsonDocument document, JsonDocument::parse(header, 4), "while reading a safetensors header");
  const JsonValue root = document.root();
  std::vector<TensorEntry> entries;
  entries.reserve(root.size());
  bool metadata_seen = false;
  TextPairs pairs;
  for (JsonValue::Iterator at = root.begin(); !(at == root.end()); ++at) {
    const std::string_view name = (*at).text();
    ++at;
    if (name == "__metadata__") {
      if (std::exchange(metadata_seen, true)) return corrupt("it has two __metadata__");
      HEDDLE_CHECK(parse_metadata(*at, &pairs));
      continue;
    }
    HEDDLE_TRY(TensorEntry entry, parse_entry(name, *at, data_begin, file_bytes));
    entries.push_back(std::move(entry));
  }
  {
    const NameIndex index = index_of(entries);  // refers to the names until they are sorted
    if (!index.duplicates().empty())
      return Status(Code::duplicate_name,
                    fmt::format("two tensors of the file are called {}", quoted(entries[index.duplicates().front().second].name)));
    HEDDLE_CHECK(take_checksums(index, pairs, entries));
  }
  if (metadata != nullptr) *metadata = std::move(pairs);
  std::stable_sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.bytes < b.bytes;  // empty tensors precede the one that begins there
  });
  HEDDLE_CHECK(check_cover(entries, data_begin, file_bytes));
  std::erase_if(entries, [](const TensorEntry& entry) { return entry.name.starts_with(safetensors_padding); });
  return entries;
}

}  // namespace heddle
