// Unanswered: that devices still work for a run that was given up. Shared by the run and by what it works with (memory that contexts share,
// variables), whose users are told to wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "heddle/status.h"

namespace heddle {

// Thread-safe.
class Unanswered {
 public:
  Unanswered(uint32_t streams, std::string message) : streams_(streams), message_(std::move(message)) {}
  // A stream has come to the end of what it was given.
  void answer() {
    uint32_t left = streams_.load(std::memory_order_relaxed);
    while (left != 0 && !streams_.compare_exchange_weak(left, left - 1, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  // Which device, and what it runs.
  const std::string& message() const { return message_; }
  // Busy, naming a device and what it runs; ok when all have answered.
  Status status() const {
    if (streams_.load(std::memory_order_acquire) == 0) return {};
    return {Code::busy, message_, "use another context, or wait until the device answers"};
  }

 private:
  std::atomic<uint32_t> streams_;
  const std::string message_;
};

}  // namespace heddle
