// The 64 bytes before the flatbuffer of a .heddle file. All integers little-endian:
//    0  8  magic 89 48 45 44 4C 0D 0A 0A  ("\x89HEDL\r\n\n": binary at once, and damaged by every text-mode transfer)
//    8  4  version of the format: 1; 2 of a file that holds several nets; 3 where a variable has an initializer; 4 where one is a replica
//   12  4  zero
//   16  8  length of the payload in bytes; the file ends with it
//   24  8  xxh64 (seed 0) of the payload
//   32 32  zero
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "heddle/status.h"

namespace heddle {

inline constexpr size_t net_header_bytes = 64;
inline constexpr uint32_t net_format_version = 4;  // the newest that is read
// Files have the oldest version that can express their content, so that older readers can read as many as possible.
inline constexpr uint32_t one_net_version = 1, several_nets_version = 2, initializer_version = 3, replica_version = 4;

// Whether `bytes` begin like a binary net, or like a prefix of one.
bool has_net_magic(std::span<const std::byte> bytes);
// The payload of a whole file after its header was checked. Errors: file_truncated, file_corrupt, file_version.
Result<std::span<const std::byte>> checked_payload(std::span<const std::byte> file);
std::array<std::byte, net_header_bytes> net_header(std::span<const std::byte> payload, uint32_t version = one_net_version);

}  // namespace heddle
