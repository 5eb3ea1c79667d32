// Turns: who may work in memory that several share. A lock whose waiters can be called off.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace heddle {

// Thread-safe; a BasicLockable. Waiters are not queued: who comes first when it is free takes it.
class Turns {
 public:
  void lock() { lock_within(-1, nullptr); }
  void unlock() {
    {
      const std::lock_guard lock(mutex_);
      taken_ = false;
    }
    changed_.notify_all();
  }
  // False: `ns` (negative: any time) passed, or `called_off` was set and wake() called, before it was free.
  bool lock_within(int64_t ns, const std::atomic<bool>* called_off) {
    std::unique_lock lock(mutex_);
    const auto over = [&] { return !taken_ || (called_off && called_off->load()); };
    if (ns < 0)
      changed_.wait(lock, over);
    else
      changed_.wait_for(lock, std::chrono::nanoseconds(ns), over);
    const bool mine = !taken_;
    taken_ = true;
    return mine;
  }
  void wake() {
    { const std::lock_guard lock(mutex_); }  // a waiter has looked at its flag or waits
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool taken_ = false;
};

}  // namespace heddle
