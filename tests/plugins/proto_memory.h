// The memory of a proto device: one memfd mapped twice. The addresses it hands out lie in a view that nobody may touch, so that a host that
// follows one faults at once; the device's own threads translate to the other view.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <mutex>

namespace proto {

class Memory {
 public:
  explicit Memory(uint64_t bytes) : bytes_((bytes + 4095) / 4096 * 4096) {
    const int file = memfd_create("proto device", 0);
    if (file < 0) return;
    if (ftruncate(file, static_cast<off_t>(bytes_)) == 0) {
      void* const seen = mmap(nullptr, bytes_, PROT_NONE, MAP_SHARED, file, 0);
      void* const shadow = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      seen_ = seen == MAP_FAILED ? nullptr : static_cast<char*>(seen);
      shadow_ = shadow == MAP_FAILED ? nullptr : static_cast<char*>(shadow);
    }
    close(file);
  }
  ~Memory() {
    if (seen_) munmap(seen_, bytes_);
    if (shadow_) munmap(shadow_, bytes_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  bool ok() const { return seen_ && shadow_; }
  uint64_t total() const { return bytes_; }
  uint64_t free() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    uint64_t used = 0;
    for (const auto& [offset, size] : live_) used += size;
    return bytes_ - used;
  }
  size_t allocations() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return live_.size();
  }
  // First fit; null when no gap is large enough.
  void* allocate(uint64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (bytes > bytes_) return nullptr;
    const uint64_t size = bytes == 0 ? 256 : (bytes + 255) / 256 * 256;
    uint64_t at = 0;
    for (const auto& [offset, taken] : live_) {
      if (offset - at >= size) break;
      at = offset + taken;
    }
    if (bytes_ - at < size) return nullptr;
    live_[at] = size;
    return seen_ + at;
  }
  bool release(void* memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return live_.erase(static_cast<uint64_t>(static_cast<char*>(memory) - seen_)) == 1;
  }
  // What the device's threads use for `bytes` at a device address; null unless they lie within one allocation.
  char* shadow(const void* address, uint64_t bytes) const {
    const auto at = static_cast<uint64_t>(static_cast<const char*>(address) - seen_);
    if (static_cast<const char*>(address) < seen_ || at > bytes_) return nullptr;
    const std::lock_guard<std::mutex> lock(mutex_);
    auto it = live_.upper_bound(at);
    if (it == live_.begin()) return nullptr;
    --it;
    return at + bytes <= it->first + it->second ? shadow_ + at : nullptr;
  }

 private:
  const uint64_t bytes_;
  char* seen_ = nullptr;
  char* shadow_ = nullptr;
  mutable std::mutex mutex_;
  std::map<uint64_t, uint64_t> live_;  // offset, bytes
};

}  // namespace proto
