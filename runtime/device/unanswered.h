// Unanswered: devices or asynchronous steps with outstanding work of a run that was given up. Shared by the run and by the things it works
// with (memory that contexts share, variables), whose users get the error busy.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "heddle/status.h"

namespace heddle {

// Thread-safe.
class Unanswered {
 public:
  using Count = std::atomic<uint32_t>;
  Unanswered(uint32_t streams, std::string message) : Unanswered(std::make_shared<Count>(streams), std::move(message), nullptr) {}
  // `left`: how many have not completed, counted down by the thread that learns of it. `next`: others of the same run.
  Unanswered(std::shared_ptr<Count> left, std::string message, std::shared_ptr<const Unanswered> next)
      : left_(std::move(left)), message_(std::move(message)), next_(std::move(next)) {}
  // Called when a stream has completed all its work.
  void answer() {
    uint32_t left = left_->load(std::memory_order_relaxed);
    while (left != 0 && !left_->compare_exchange_weak(left, left - 1, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  // Names the device or step, and what it runs.
  const std::string& message() const { return message_; }
  // Returns busy, naming a device and what it runs, or a step; ok when all have completed.
  Status status() const {
    if (left_->load(std::memory_order_acquire) != 0) return {Code::busy, message_, "use another context, or wait until it answers"};
    return next_ ? next_->status() : Status();
  }

 private:
  const std::shared_ptr<Count> left_;
  const std::string message_;
  const std::shared_ptr<const Unanswered> next_;
};

}  // namespace heddle
