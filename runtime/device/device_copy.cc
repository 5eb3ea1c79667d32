// Copies that are waited for: to and from variables, constants and results that are looked at. Each has a stream to itself while it lasts,
// and the wait ends with a deadline or a cancellation even when the device never answers.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>

#include "base/clock.h"
#include "base/text.h"
#include "device/device.h"

namespace heddle {

// Shared with the callback, which may come when the copy has long been given up.
struct Device::Arrival {
  std::mutex mutex;
  std::condition_variable changed;
  bool arrived = false;

  static void come(void* user, heddle_status, const char*, size_t) {
    const std::unique_ptr<std::shared_ptr<Arrival>> arrival(static_cast<std::shared_ptr<Arrival>*>(user));
    const std::lock_guard lock((*arrival)->mutex);
    (*arrival)->arrived = true;
    (*arrival)->changed.notify_all();
  }
  bool is_there() {
    const std::lock_guard lock(mutex);
    return arrived;
  }
  // False: the deadline passed, or the wait was cancelled, before.
  bool wait(const Interruption& until) {
    constexpr std::chrono::nanoseconds look_again = std::chrono::milliseconds(5);
    std::unique_lock lock(mutex);
    while (!arrived) {
      if (until.cancelled()) return false;
      std::chrono::nanoseconds slice = look_again;
      if (until.deadline_ticks() != 0) slice = std::min(slice, left_until(until.deadline_ticks()));
      if (slice.count() == 0) return false;
      changed.wait_for(lock, slice);
    }
    return true;
  }
};

// Copies that have been answered by now; their streams are idle again. Under mutex_. What they kept goes behind it: it may be memory of
// this device.
std::vector<Device::GivenUpCopy> Device::take_answered() {
  std::vector<GivenUpCopy> answered;
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
  const std::lock_guard lock(mutex_);
  answered = take_answered();
}

// A copy that was given up may still write: no other copy overtakes it.
Result<void*> Device::take_stream() {
  std::vector<GivenUpCopy> answered;
  const std::lock_guard lock(mutex_);
  answered = take_answered();
  if (!given_up_copies_.empty())
    return Status(Code::busy, fmt::format("device {} still works on a copy that was given up", quoted(name_)),
                  "wait until the device answers");
  if (idle_streams_.empty()) return make_stream();
  void* const stream = idle_streams_.back();
  idle_streams_.pop_back();
  return stream;
}

void Device::give_back_stream(void* stream) {
  const std::lock_guard lock(mutex_);
  idle_streams_.push_back(stream);
}

// Told on a thread of the device's when the stream has come that far; null when the stream takes no notify.
std::shared_ptr<Device::Arrival> Device::ask_for_arrival(void* stream, const heddle_call* call) {
  auto arrival = std::make_shared<Arrival>();
  auto told = std::make_unique<std::shared_ptr<Arrival>>(arrival);
  if (notify(stream, Arrival::come, told.get(), call) != HEDDLE_OK) return nullptr;
  static_cast<void>(told.release());
  return arrival;
}

Status Device::copy_now(void* destination, const void* source, int64_t bytes, int32_t kind, const CopyWait& wait) {
  if (bytes == 0) return {};
  HostCall call, end_call;
  HEDDLE_TRY(void* const stream, take_stream());
  heddle_status status = copy(stream, destination, source, bytes, kind, &call);
  // A stream that takes no copy or notify has failed, and does not keep synchronize waiting.
  const auto arrival = status == HEDDLE_OK ? ask_for_arrival(stream, &call) : nullptr;
  if (arrival && !arrival->wait(wait.until)) {
    const std::lock_guard lock(mutex_);
    given_up_copies_.push_back({stream, arrival, wait.keep, wait.keep_host});
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

}  // namespace heddle
