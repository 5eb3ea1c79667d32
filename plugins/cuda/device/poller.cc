#include "device/poller.h"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>

#include "device/current_device.h"
#include "device/errors.h"

namespace heddle::cuda {
namespace {

PollPace::Time now() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

}  // namespace

Poller::~Poller() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  asked_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (const cudaEvent_t event : free_events_)
    if (!loss_) Api::get().cudaEventDestroy(event);
}

plugin::Status Poller::make_event(cudaEvent_t* event) {
  const CurrentDevice current(device_);
  HEDDLE_PLUGIN_CHECK(current.status());
  HEDDLE_CUDA_CALL(cudaEventCreateWithFlags, event, cudaEventDisableTiming);
  const std::lock_guard<std::mutex> lock(mutex_);
  ++events_;
  return {};
}

plugin::Status Poller::reserve(size_t events) {
  for (;;) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (events_ >= events) return {};
    }
    cudaEvent_t event = nullptr;
    HEDDLE_PLUGIN_CHECK(make_event(&event));
    const std::lock_guard<std::mutex> lock(mutex_);
    free_events_.push_back(event);
  }
}

plugin::Status Poller::notify(cudaStream_t stream, heddle_stream_callback callback, void* user) {
  cudaEvent_t event = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!free_events_.empty()) {
      event = free_events_.back();
      free_events_.pop_back();
    }
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  if (!event) HEDDLE_PLUGIN_CHECK(make_event(&event));
  const cudaError_t recorded = Api::get().cudaEventRecord(event, stream);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (recorded != cudaSuccess) {
    free_events_.push_back(event);
    return failed("cudaEventRecord", recorded);
  }
  Queue& queue = waiting_[stream];
  if (queue.empty()) queue.pace.begin(now());
  queue.push({event, callback, user});
  if (sleeps_) asked_.notify_all();
  return {};
}

bool Poller::pending(cudaStream_t stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = waiting_.find(stream);
  return found != waiting_.end() && !found->second.empty();
}

void Poller::drain(cudaStream_t stream) {
  std::unique_lock<std::mutex> lock(mutex_);
  called_.wait(lock, [&] {
    const auto found = waiting_.find(stream);
    return found == waiting_.end() || found->second.empty();
  });
}

void Poller::forget(cudaStream_t stream) {
  drain(stream);
  const std::lock_guard<std::mutex> lock(mutex_);
  waiting_.erase(stream);
}

bool Poller::look_at(cudaStream_t stream, std::unique_lock<std::mutex>& lock) {
  for (bool any = false;; any = true) {
    const auto found = waiting_.find(stream);
    if (found == waiting_.end() || found->second.empty()) return any;
    const Waiting first = found->second.front();
    lock.unlock();
    const cudaError_t state = Api::get().cudaEventQuery(first.event);
    lock.lock();
    if (state == cudaErrorNotReady) return any;
    // The event is free again before the callback, which may begin the next run at once and need it.
    free_events_.push_back(first.event);
    found->second.pace.end(now());
    lock.unlock();
    const std::string text = state == cudaSuccess ? std::string() : error_text("the stream", state);
    if (is_sticky(state)) loss_.happened(text);
    first.callback(first.user, status_of(state), text.data(), text.size());
    lock.lock();
    // The entry stays in the queue until its callback has returned: drain() waits for that.
    found->second.pop();
    found->second.pace.begin(now());
    called_.notify_all();
  }
}

bool Poller::look(std::unique_lock<std::mutex>& lock) {
  bool any = false;
  looked_at_.clear();
  looked_at_.reserve(waiting_.size());  // also for the streams that wait for nothing now
  for (const auto& [stream, queue] : waiting_)
    if (!queue.empty()) looked_at_.push_back(stream);
  for (const cudaStream_t stream : looked_at_) any = look_at(stream, lock) || any;
  return any;
}

bool Poller::waits() const {
  return std::any_of(waiting_.begin(), waiting_.end(), [](const auto& entry) { return !entry.second.empty(); });
}

PollPace::Time Poller::pause() const {
  const PollPace::Time time = now();
  PollPace::Time shortest = PollPace::nap;
  for (const auto& [stream, queue] : waiting_)
    if (!queue.empty()) shortest = std::min(shortest, queue.pace.pause(time));
  return shortest;
}

void Poller::run() {
  ::prctl(PR_SET_NAME, "heddle-cuda");
  ::prctl(PR_SET_TIMERSLACK, 1);  // in nanoseconds: by default Linux may add 50 microseconds to a sleep
  Api::get().cudaSetDevice(device_);
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    if (!waits()) {
      if (ends_) return;
      sleeps_ = true;
      asked_.wait(lock);
      sleeps_ = false;
      continue;
    }
    if (look(lock)) continue;
    const PollPace::Time sleep = pause();
    lock.unlock();
    sleep == PollPace::Time::zero() ? static_cast<void>(sched_yield()) : std::this_thread::sleep_for(sleep);
    lock.lock();
  }
}

}  // namespace heddle::cuda
