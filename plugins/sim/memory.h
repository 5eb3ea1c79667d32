// The memory of a simulated device: one memfd mapped twice. The addresses that it hands out lie in an inaccessible view, so that a host
// that follows one faults at once; the device's own thread translates them to the other view, the shadow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace sim {

class Memory {
 public:
  // `unified`: the host may access the memory after all.
  Memory(uint64_t bytes, bool unified);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  bool ok() const { return seen_ && shadow_; }
  uint64_t total() const { return bytes_; }
  uint64_t free() const;
  size_t allocations() const;
  // First fit, filled with bytes of NaN; null when no gap is large enough.
  void* allocate(uint64_t bytes);
  void release(void* memory);
  // Returns where the device finds `bytes` at an address that was handed out; null unless they lie within one allocation.
  char* shadow(const void* address, uint64_t bytes) const;

 private:
  const uint64_t bytes_;
  char* seen_ = nullptr;
  char* shadow_ = nullptr;
  mutable std::mutex mutex_;
  struct Allocation {
    uint64_t size = 0, asked = 0;  // bytes: taken, and requested
  };
  std::map<uint64_t, Allocation> live_;  // by offset
  uint64_t used_ = 0;                    // sum of the requested bytes
};

}  // namespace sim
