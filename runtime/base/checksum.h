// Checksums of net files and weights: xxh64 with seed 0 of bytes, XXH3-128 to tell files apart. They find damage and mistakes, not malice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace heddle {

uint64_t checksum(std::span<const std::byte> bytes);

struct Digest128 {
  uint64_t high = 0, low = 0;
};
Digest128 digest128(std::span<const std::byte> bytes);

// Computes checksum() over pieces. One thread at a time.
class RunningChecksum {
 public:
  RunningChecksum();
  ~RunningChecksum();
  RunningChecksum(const RunningChecksum&) = delete;
  RunningChecksum& operator=(const RunningChecksum&) = delete;
  void add(std::span<const std::byte> bytes);
  uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heddle
