#include "device/poller.h"

#include <sched.h>

#include <chrono>

#include "device/errors.h"

namespace heddle::cuda {
namespace {

// Looks in a row that find nothing before the thread begins to sleep between them: about 20 µs of yielding.
constexpr int eager_looks = 64;
constexpr std::chrono::microseconds nap{20};

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
  HEDDLE_CUDA_CALL(cudaSetDevice, device_);
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
  waiting_[stream].push_back({event, callback, user});
  asked_.notify_all();
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

// The first that is asked of a stream; false: nothing is.
bool Poller::first_of(cudaStream_t stream, Waiting* first) const {
  const auto found = waiting_.find(stream);
  if (found == waiting_.end() || found->second.empty()) return false;
  *first = found->second.front();
  return true;
}

bool Poller::look(std::unique_lock<std::mutex>& lock) {
  bool any = false;
  std::vector<cudaStream_t> streams;
  for (const auto& [stream, queue] : waiting_)
    if (!queue.empty()) streams.push_back(stream);
  for (const cudaStream_t stream : streams) {
    for (Waiting first = {}; first_of(stream, &first);) {
      lock.unlock();
      const cudaError_t state = Api::get().cudaEventQuery(first.event);
      lock.lock();
      if (state == cudaErrorNotReady) break;
      any = true;
      // Whoever is called begins the next run at once, which needs it again.
      free_events_.push_back(first.event);
      lock.unlock();
      const std::string text = state == cudaSuccess ? std::string() : error_text("the stream", state);
      if (is_sticky(state)) loss_.happened(text);
      first.callback(first.user, status_of(state), text.data(), text.size());
      lock.lock();
      // It stands there as long as its callback is under way: that is what drain() waits for.
      waiting_[stream].pop_front();
      called_.notify_all();
    }
  }
  return any;
}

void Poller::run() {
  Api::get().cudaSetDevice(device_);
  std::unique_lock<std::mutex> lock(mutex_);
  int idle = 0;
  for (;;) {
    bool waits = false;
    for (const auto& [stream, queue] : waiting_) waits = waits || !queue.empty();
    if (!waits) {
      if (ends_) return;
      asked_.wait(lock);
      idle = 0;
      continue;
    }
    idle = look(lock) ? 0 : idle + 1;
    if (idle == 0) continue;
    lock.unlock();
    if (idle < eager_looks)
      sched_yield();
    else
      std::this_thread::sleep_for(nap);
    lock.lock();
  }
}

}  // namespace heddle::cuda
