#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace sim {
namespace {

constexpr uint64_t page = 4096, unit = 256;
constexpr int poison = 0xff;  // NaN in every floating-point type, -1 in every integer

uint64_t rounded(uint64_t bytes, uint64_t to) {
  return (bytes + to - 1) / to * to;
}

}  // namespace

Memory::Memory(uint64_t bytes, bool unified) : bytes_(rounded(bytes, page)) {
  const int file = memfd_create("simulated device", 0);
  if (file < 0) return;
  if (ftruncate(file, static_cast<off_t>(bytes_)) == 0) {
    void* const seen = mmap(nullptr, bytes_, unified ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
    void* const shadow = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    seen_ = seen == MAP_FAILED ? nullptr : static_cast<char*>(seen);
    shadow_ = shadow == MAP_FAILED ? nullptr : static_cast<char*>(shadow);
  }
  ::close(file);
}

Memory::~Memory() {
  if (seen_) munmap(seen_, bytes_);
  if (shadow_) munmap(shadow_, bytes_);
}

uint64_t Memory::free() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return bytes_ - used_;
}

size_t Memory::allocations() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return live_.size();
}

void* Memory::allocate(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bytes > bytes_) return nullptr;
  const uint64_t size = bytes == 0 ? unit : rounded(bytes, unit);
  uint64_t at = 0;
  for (const auto& [offset, taken] : live_) {
    if (offset - at >= size) break;
    at = offset + taken.size;
  }
  if (bytes_ - at < size) return nullptr;
  live_[at] = {size, bytes};
  used_ += bytes;
  std::memset(shadow_ + at, poison, size);
  return seen_ + at;
}

// Discards the content and returns its pages to the system.
void Memory::release(void* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = live_.find(static_cast<uint64_t>(static_cast<char*>(memory) - seen_));
  if (found == live_.end()) return;
  const uint64_t first = rounded(found->first, page), last = (found->first + found->second.size) / page * page;
  if (first < last) madvise(shadow_ + first, last - first, MADV_REMOVE);
  used_ -= found->second.asked;
  live_.erase(found);
}

char* Memory::shadow(const void* address, uint64_t bytes) const {
  const auto* const at = static_cast<const char*>(address);
  if (at < seen_ || at >= seen_ + bytes_) return nullptr;
  const auto offset = static_cast<uint64_t>(at - seen_);
  const std::lock_guard<std::mutex> lock(mutex_);
  auto it = live_.upper_bound(offset);
  if (it == live_.begin()) return nullptr;
  --it;
  const uint64_t inside = offset - it->first;
  return inside <= it->second.asked && bytes <= it->second.asked - inside ? shadow_ + offset : nullptr;
}

}  // namespace sim
