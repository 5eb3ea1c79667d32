#include "load/header.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checksum.h"

namespace heddle {
namespace {

constexpr unsigned char magic[8] = {0x89, 'H', 'E', 'D', 'L', '\r', '\n', '\n'};

uint64_t get(std::span<const std::byte> bytes, size_t offset, size_t width) {
  uint64_t value = 0;
  for (size_t i = width; i-- > 0;) value = (value << 8) | std::to_integer<uint64_t>(bytes[offset + i]);
  return value;
}

void put(std::span<std::byte> bytes, size_t offset, size_t width, uint64_t value) {
  for (size_t i = 0; i < width; ++i) bytes[offset + i] = static_cast<std::byte>((value >> (8 * i)) & 0xFF);
}

}  // namespace

bool has_net_magic(std::span<const std::byte> bytes) {
  const size_t n = std::min(bytes.size(), sizeof(magic));
  return n > 0 && std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n), magic,
                             [](std::byte a, unsigned char b) { return std::to_integer<unsigned char>(a) == b; });
}

Result<std::span<const std::byte>> checked_payload(std::span<const std::byte> file) {
  if (!has_net_magic(file)) return Status(Code::file_corrupt, "this is not a Heddle net: it has another magic number");
  if (file.size() < net_header_bytes)
    return Status(Code::file_truncated, fmt::format("the file ends within its header, at byte {}", file.size()), "fetch it again");
  const uint64_t version = get(file, 8, 4);
  if (version > net_format_version)
    return Status(Code::file_version,
                  fmt::format("the file has format version {}, this Heddle reads up to {}", version, net_format_version),
                  "use a newer Heddle, or write the net again with this one");
  if (version == 0) return Status(Code::file_corrupt, "the file has format version 0, which does not exist");
  const bool padded = std::all_of(file.begin() + 32, file.begin() + 64, [](std::byte b) { return b == std::byte{0}; });
  if (get(file, 12, 4) != 0 || !padded) return Status(Code::file_corrupt, "reserved bytes of the header are not zero", "fetch it again");
  const uint64_t length = get(file, 16, 8);
  const uint64_t present = file.size() - net_header_bytes;
  if (present < length)
    return Status(Code::file_truncated, fmt::format("the file has {} bytes after its header, not {}", present, length), "fetch it again");
  if (present > length)
    return Status(Code::file_corrupt, fmt::format("{} bytes follow the end of the net", present - length), "fetch it again");
  const std::span<const std::byte> payload = file.subspan(net_header_bytes);
  if (checksum(payload) != get(file, 24, 8))
    return Status(Code::file_corrupt, "the checksum does not match: the file was damaged after it was written", "fetch it again");
  return payload;
}

std::array<std::byte, net_header_bytes> net_header(std::span<const std::byte> payload, uint32_t version) {
  std::array<std::byte, net_header_bytes> header = {};
  for (size_t i = 0; i < sizeof(magic); ++i) header[i] = std::byte{magic[i]};
  put(header, 8, 4, version);
  put(header, 16, 8, payload.size());
  put(header, 24, 8, checksum(payload));
  return header;
}

}  // namespace heddle
