// WarmSlot: a place for the one object that was given back last, in front of a pool that takes a lock. Thread-safe; no thread waits in it.
#pragma once

#include <atomic>
#include <utility>

namespace heddle {

// `T` is empty when it is made, and swaps without exceptions, like a smart pointer.
template <class T>
class WarmSlot {
 public:
  WarmSlot() = default;
  WarmSlot(const WarmSlot&) = delete;
  WarmSlot& operator=(const WarmSlot&) = delete;
  // Leaves `value` there and returns what was there; or returns `value` itself if another thread is at the slot right now.
  T exchange(T value = T()) noexcept {
    if (busy_.exchange(true, std::memory_order_acquire)) return value;
    std::swap(held_, value);
    busy_.store(false, std::memory_order_release);
    return value;
  }

 private:
  std::atomic<bool> busy_{false};
  T held_{};
};

}  // namespace heddle
