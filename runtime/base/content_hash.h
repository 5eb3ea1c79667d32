// A hash that represents bytes where untrusted bytes must not pass for others.
//
// 128 bits, keyed by random numbers drawn once per process: an attacker's files can not make two contents collide. It differs from
// run to run, so it is never stored and decides no order. base/checksum.h finds damage, not malice. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace heddle {

using ContentHash = std::array<uint64_t, 2>;

ContentHash content_hash(std::span<const std::byte> bytes);
// Returns the hash's 16 bytes, to be part of a key.
std::string content_key(std::span<const std::byte> bytes);

}  // namespace heddle
