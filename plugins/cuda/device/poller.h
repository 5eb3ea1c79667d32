// Poller calls the host back when a stream has reached a given place. CUDA's own callbacks are not called after an error, and may not call
// CUDA; therefore an event is recorded at the place, and a thread of the plugin polls it.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "device/device_loss.h"
#include "device/poll_pace.h"
#include "heddle/device_plugin.h"
#include "heddle/op.h"
#include "library/api.h"

namespace heddle::cuda {

class Poller {
 public:
  // `loss` is set when the device is lost, and must outlive this.
  Poller(int device, DeviceLoss& loss) : device_(device), loss_(loss) {}
  // Waits until no callback is pending, and destroys the events.
  ~Poller();
  // Creates events in advance, up to this number, so that notify() need not create any. Events that are created later are kept too.
  plugin::Status reserve(size_t events);
  // Calls `callback` once, when the stream has passed the work enqueued on it so far. Callbacks of one stream are called in order.
  plugin::Status notify(cudaStream_t stream, heddle_stream_callback callback, void* user);
  // Returns true if callbacks of the stream are still to come, or in progress.
  bool pending(cudaStream_t stream);
  // Waits for the callbacks of the stream, that is, until after the end of its work.
  void drain(cudaStream_t stream);
  // Forgets a stream that is to be destroyed, or was released.
  void forget(cudaStream_t stream);

 private:
  struct Waiting {
    cudaEvent_t event;
    heddle_stream_callback callback;
    void* user;
  };
  // The callbacks of one stream, in order. It has memory for more of them than a run requests at a time, since how many wait at once
  // depends on how fast the device is.
  class Queue {
   public:
    Queue() { waiting_.reserve(2 * max_passed); }
    bool empty() const { return first_ == waiting_.size(); }
    const Waiting& front() const { return waiting_[first_]; }
    void push(const Waiting& waiting) { waiting_.push_back(waiting); }
    void pop() {
      if (++first_ < waiting_.size() && first_ < max_passed) return;
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    PollPace pace;

   private:
    static constexpr size_t max_passed = 64;  // for a queue that is never empty
    std::vector<Waiting> waiting_;
    size_t first_ = 0;
  };
  void run();
  plugin::Status make_event(cudaEvent_t* event);
  // Checks the first event of each stream once. Returns true if any was done.
  bool look(std::unique_lock<std::mutex>& lock);
  // Checks the stream until its first event is not done yet. Returns true if any was done.
  bool look_at(cudaStream_t stream, std::unique_lock<std::mutex>& lock);
  // Returns true if any callback is pending.
  bool waits() const;
  // Returns how long to sleep before the next check; zero: do not sleep.
  PollPace::Time pause() const;

  const int device_;
  DeviceLoss& loss_;
  std::mutex mutex_;
  std::condition_variable asked_, called_;
  std::map<cudaStream_t, Queue> waiting_;
  std::vector<cudaStream_t> looked_at_;  // used by the thread alone, during a check
  bool sleeps_ = false;                  // true while the thread waits to be notified
  std::vector<cudaEvent_t> free_events_;
  size_t events_ = 0;  // number of events that exist
  std::thread thread_;
  bool ends_ = false;
};

}  // namespace heddle::cuda
