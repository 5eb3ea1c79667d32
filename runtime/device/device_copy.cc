// Copies that are waited for: to and from variables, constants and results that are looked at. Each has a stream to itself while it lasts,
// and the wait ends with a deadline or a cancellation even when the device never answers.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/exceptions.h"
#include "base/text/text.h"
#include "base/threads/clock.h"
#include "base/threads/mutex.h"
#include "base/threads/patience.h"
#include "device/device.h"

namespace heddle {

// The argument of the callback, which may come long after the copy was given up, or, where it failed, not at all.
struct Device::Arrival {
  Device& device;
  void* stream = nullptr;
  Mutex mutex;
  Condition changed;
  bool arrived HEDDLE_GUARDED_BY(mutex) = false;

  explicit Arrival(Device& of) : device(of) {}
  static void come(void* user, heddle_status, const char*, size_t) {
    auto& arrival = *static_cast<Arrival*>(user);
    const MutexLock lock(arrival.mutex);
    arrival.arrived = true;
    arrival.changed.notify_all();  // under the lock: once it is released this may be destroyed
  }
  // Once this returns true no callback comes any more.
  bool is_there() {
    {
      const MutexLock lock(mutex);
      if (arrived) return true;
    }
    return device.query(stream) != HEDDLE_PENDING;
  }
  // Returns false if the deadline passed, or the wait was cancelled, and the callback did not come in the time that devices then have to
  // answer.
  bool wait(const Interruption& until) {
    constexpr std::chrono::nanoseconds look_again = std::chrono::milliseconds(5);
    Patience patience;
    MutexLock lock(mutex);
    while (!arrived) {
      const bool interrupted = until.cancelled() || (until.deadline_ticks() != 0 && ticks() >= until.deadline_ticks());
      if (patience.is_over(ticks(), interrupted, answer_after_stop_ns)) return false;
      const uint64_t next = patience.told() ? patience.until() : until.deadline_ticks();
      const std::chrono::nanoseconds slice = next != 0 ? std::min(look_again, left_until(next)) : look_again;
      if (changed.wait_for(mutex, slice) || !device.has(HEDDLE_DEVICE_DROPS_CALLBACKS)) continue;
      lock.unlock();
      if (is_there()) return true;
      lock.lock();
    }
    return true;
  }
};

void Device::DeleteArrival::operator()(Arrival* arrival) const noexcept {
  delete arrival;
}

// Removes and returns the given-up copies that have completed by now; their streams are idle again. The caller must destroy the result
// after releasing mutex_: the memory they kept may be memory of this device.
std::vector<Device::GivenUpCopy> Device::take_answered() {
  std::vector<GivenUpCopy> answered;
  answered.reserve(given_up_copies_.size());
  for (GivenUpCopy& copy : given_up_copies_)
    if (copy.arrival->is_there()) {
      static_cast<void>(synchronize(copy.stream, nullptr));  // the copy was reported when it was given up
      idle_streams_.push_back(copy.stream);
      answered.push_back(std::move(copy));
    }
  std::erase_if(given_up_copies_, [](const GivenUpCopy& copy) { return !copy.arrival; });
  return answered;
}

void Device::sweep() {
  std::vector<GivenUpCopy> answered;
  without_exceptions([&] {  // the next sweep takes the copies that this one had no memory for
    const MutexLock lock(mutex_);
    answered = take_answered();
  });
}

// Fails with busy while a given-up copy is outstanding: it may still write, and no other copy may overtake it.
Result<void*> Device::take_stream() {
  std::vector<GivenUpCopy> answered;
  const MutexLock lock(mutex_);
  answered = take_answered();
  if (!given_up_copies_.empty())
    return Status(Code::busy, fmt::format("device {} still works on a copy that was given up", quoted(name_)),
                  "wait until the device answers");
  if (idle_streams_.empty()) {
    // The room is reserved now: when the stream is given back, or its copy is given up, running out of memory could not be reported.
    idle_streams_.reserve(copy_streams_ + 1);
    given_up_copies_.reserve(copy_streams_ + 1);
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
  std::unique_ptr<Arrival, DeleteArrival> arrival(new Arrival(*this));
  HEDDLE_TRY(void* const stream, take_stream());
  arrival->stream = stream;
  const heddle_copy copy = {sizeof(copy), kind, destination, source, static_cast<uint64_t>(bytes), nullptr};
  const heddle_work work = {sizeof(work),       0, UINT64_MAX, nullptr, &copy, nullptr, nullptr, Arrival::come, arrival.get(),
                            HEDDLE_WORK_ENTERS, 0};
  const heddle_status status = enqueue(stream, work, &call);
  leave();
  // A stream that accepts no copy has failed, and does not keep synchronize waiting.
  if (status == HEDDLE_OK && !arrival->wait(wait.until)) {
    const MutexLock lock(mutex_);
    given_up_copies_.push_back({stream, std::move(arrival), wait.keep, wait.keep_host});
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
