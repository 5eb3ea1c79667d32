// Memory with an inaccessible page after its last byte or before its first: code that reads or writes beyond it crashes, with or without
// AddressSanitizer.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace heddle::testing {

enum class Guard { front, behind };  // which end of the bytes touches its page

class GuardedMemory {
 public:
  // With Guard::front the bytes begin at a page boundary; otherwise they end where the guard page begins. The bytes and the rest of their
  // pages are filled with `slack`.
  GuardedMemory(size_t bytes, Guard guard) : bytes_(bytes), guard_(guard) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    room_ = (bytes + page - 1) / page * page;
    mapped_ = room_ + 2 * page;
    base_ = static_cast<std::byte*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (base_ == MAP_FAILED || (room_ > 0 && mprotect(base_ + page, room_, PROT_READ | PROT_WRITE) != 0)) std::abort();
    std::memset(base_ + page, slack, room_);
    data_ = base_ + page + (guard == Guard::behind ? room_ - bytes : 0);
  }
  ~GuardedMemory() { munmap(base_, mapped_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // Returns false if something wrote to the slack on the side that has no guard.
  bool intact() const {
    const std::byte* first = guard_ == Guard::behind ? data_ - (room_ - bytes_) : data_ + bytes_;
    for (size_t i = 0; i < room_ - bytes_; ++i)
      if (first[i] != std::byte{slack}) return false;
    return true;
  }

 private:
  static constexpr uint8_t slack = 0xa7;
  size_t bytes_, room_ = 0, mapped_ = 0;
  Guard guard_;
  std::byte *base_ = nullptr, *data_ = nullptr;
};

}  // namespace heddle::testing
