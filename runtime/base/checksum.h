// xxh64 with seed 0: the checksum of net files and weights. It finds damage, not malice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace heddle {

uint64_t checksum(std::span<const std::byte> bytes);

// The same over pieces. One thread at a time.
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
