// Copies that are waited for: to and from variables, constants and results that are looked at. Each has a stream to itself while it lasts,
// and the wait ends with a deadline or a cancellation even when the device never answers.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/text/text.h"
#include "base/threads/clock.h"
#include "base/threads/mutex.h"
#include "base/threads/patience.h"
#include "device/device.h"
#include "device/outstanding_work.h"

namespace heddle {

// A copy under way, and the argument of its callback, which may come long after the copy was given up, or, where it failed, not at all.
class Device::Arrival final : public OutstandingWork::Kept {
 public:
  explicit Arrival(Device& device)
      : Kept(device.busy_name_),
        device_(device),
        item_(std::make_shared<Unanswered>(std::make_shared<Unanswered::Count>(1),
                                           fmt::format("device {} still works on a copy that was given up", quoted(device.name_)),
                                           std::vector<BusyName>{device.busy_name_}, "wait until the device answers")) {}
  static void come(void* user, heddle_status, const char*, size_t) {
    auto& arrival = *static_cast<Arrival*>(user);
    const MutexLock lock(arrival.mutex_);
    arrival.arrived_ = true;
    arrival.item_->answer();
    arrival.changed_.notify_all();  // under the lock: once it is released this may be destroyed
  }
  // Returns false if the deadline passed, or the wait was cancelled, and the callback did not come in the time that devices then have to
  // answer.
  bool wait(const Interruption& until) {
    constexpr std::chrono::nanoseconds look_again = std::chrono::milliseconds(5);
    Patience patience;
    MutexLock lock(mutex_);
    while (!arrived_) {
      const bool interrupted = until.cancelled() || (until.deadline_ticks() != 0 && ticks() >= until.deadline_ticks());
      if (patience.is_over(ticks(), interrupted, answer_after_stop_ns)) return false;
      const uint64_t next = patience.told() ? patience.until() : until.deadline_ticks();
      const std::chrono::nanoseconds slice = next != 0 ? std::min(look_again, left_until(next)) : look_again;
      if (changed_.wait_for(mutex_, slice) || !device_.has(HEDDLE_DEVICE_DROPS_CALLBACKS)) continue;
      lock.unlock();
      if (is_there()) return true;
      lock.lock();
    }
    return true;
  }
  // Moves the copy, which is on `stream` and uses what `wait` keeps, to the list of outstanding work. Needs no memory.
  static void give_up(std::unique_ptr<Arrival> arrival, const CopyWait& wait) noexcept {
    arrival->open_ = arrival->device_.shared_from_this();
    arrival->keep_ = wait.keep;
    arrival->keep_host_ = wait.keep_host;
    OutstandingWork& outstanding = *arrival->device_.outstanding_;
    outstanding.add(arrival->item_);
    outstanding.keep(std::move(arrival), nullptr);
  }
  bool look_for_answers() noexcept override {
    if (!is_there()) return false;
    item_->answer();                                          // the callback may have been dropped
    static_cast<void>(device_.synchronize(stream, nullptr));  // the copy was reported when it was given up
    device_.give_back_stream(stream);
    return true;
  }
  std::shared_ptr<const Unanswered> unanswered() const override { return item_; }
  void* stream = nullptr;

 private:
  // Once this returns true no callback comes any more.
  bool is_there() noexcept {
    {
      const MutexLock lock(mutex_);
      if (arrived_) return true;
    }
    return device_.query(stream) != HEDDLE_PENDING;
  }
  Device& device_;
  const std::shared_ptr<Unanswered> item_;
  Mutex mutex_;
  Condition changed_;
  bool arrived_ HEDDLE_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const void> open_, keep_, keep_host_;  // once it is given up; the first keeps the device open
};

// Fails with busy while a given-up copy is outstanding: it may still write, and no other copy may overtake it.
Result<void*> Device::take_stream() {
  outstanding_->sweep(busy_name_);
  HEDDLE_CHECK(outstanding_->busy(busy_name_));
  const MutexLock lock(mutex_);
  if (idle_streams_.empty()) {
    // The room is reserved now: when the stream is given back, running out of memory could not be reported.
    idle_streams_.reserve(copy_streams_ + 1);
    HEDDLE_TRY(void* const made, make_stream(HEDDLE_STREAM_COMPUTE, nullptr));
    ++copy_streams_;
    return made;
  }
  void* const stream = idle_streams_.back();
  idle_streams_.pop_back();
  return stream;
}

void Device::give_back_stream(void* stream) {
  const MutexLock lock(mutex_);
  idle_streams_.push_back(stream);
}

Status Device::copy_now(void* destination, const void* source, int64_t bytes, int32_t kind, const CopyWait& wait) {
  if (bytes == 0) return {};
  HEDDLE_CHECK(usable());
  if (has(HEDDLE_DEVICE_UNIFIED)) {
    std::memcpy(destination, source, static_cast<size_t>(bytes));
    return {};
  }
  HostCall call, end_call;
  auto arrival = std::make_unique<Arrival>(*this);
  HEDDLE_TRY(void* const stream, take_stream());
  arrival->stream = stream;
  const heddle_copy copy = {sizeof(copy), kind, destination, source, static_cast<uint64_t>(bytes), nullptr};
  const heddle_work work = {sizeof(work),       0, UINT64_MAX, nullptr, &copy, nullptr, nullptr, Arrival::come, arrival.get(),
                            HEDDLE_WORK_ENTERS, 0};
  const heddle_status status = enqueue(stream, work, &call);
  leave();
  // A stream that accepts no copy has failed, and does not keep synchronize waiting.
  if (status == HEDDLE_OK && !arrival->wait(wait.until)) {
    Arrival::give_up(std::move(arrival), wait);
    const bool cancelled = wait.until.cancelled();
    return {cancelled ? Code::cancelled : Code::deadline_exceeded, fmt::format("device {} did not answer a copy in time", quoted(name_)),
            "allow more time, or look what keeps the device busy"};
  }
  const heddle_status end = synchronize(stream, &end_call);
  give_back_stream(stream);
  if (status == HEDDLE_OK && end == HEDDLE_OK) return {};
  return status == HEDDLE_OK ? error("failed to copy", end, end_call) : error("failed to copy", status, call);
}

Status Device::write(void* device_memory, const void* host, int64_t bytes, const CopyWait& wait) {
  return copy_now(device_memory, host, bytes, HEDDLE_COPY_HOST_TO_DEVICE, wait);
}
Status Device::read(void* host, const void* device_memory, int64_t bytes, const CopyWait& wait) {
  return copy_now(host, device_memory, bytes, HEDDLE_COPY_DEVICE_TO_HOST, wait);
}

Status Device::copy_within(void* destination, const void* source, int64_t bytes, const CopyWait& wait) {
  return copy_now(destination, source, bytes, HEDDLE_COPY_DEVICE_TO_DEVICE, wait);
}

}  // namespace heddle
