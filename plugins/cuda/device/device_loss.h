// Records whether a device is lost. Any thread may report the loss first.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

namespace heddle::cuda {

class DeviceLoss {
 public:
  // Marks the device lost. The first cause is kept.
  void happened(const std::string& cause) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (cause_.empty()) cause_ = cause;
    lost_.store(true, std::memory_order_release);
  }
  explicit operator bool() const { return lost_.load(std::memory_order_acquire); }
  std::string text() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return cause_ + "; the device is lost until the process ends";
  }

 private:
  std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;
  std::string cause_;
};

}  // namespace heddle::cuda
