// Poller: calls the host back when a stream has come to a place. CUDA's own callbacks are not called behind an error, and may not call
// CUDA; so an event stands at the place, and a thread of the plugin's asks for it.
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
  // `loss` is told when the device is lost, and outlives this.
  Poller(int device, DeviceLoss& loss) : device_(device), loss_(loss) {}
  // Waits until nothing is asked for any more; events are destroyed.
  ~Poller();
  // Before events are asked for: there are as many as this, so that calling back makes none. Those that are made later stay too.
  plugin::Status reserve(size_t events);
  // Once for each time, when the stream has passed what is enqueued on it now. Calls for one stream come in order.
  plugin::Status notify(cudaStream_t stream, heddle_stream_callback callback, void* user);
  // Whether callbacks of the stream are still to come, or under way.
  bool pending(cudaStream_t stream);
  // Waits for them: behind the end of what the stream does.
  void drain(cudaStream_t stream);
  // Of a stream that is to be destroyed, or was let go.
  void forget(cudaStream_t stream);

 private:
  struct Waiting {
    cudaEvent_t event;
    heddle_stream_callback callback;
    void* user;
  };
  // Of one stream, in order. It keeps its memory, so that calling back allocates nothing once as many were asked for at a time.
  class Queue {
   public:
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
    static constexpr size_t max_passed = 64;  // of a queue that is never empty
    std::vector<Waiting> waiting_;
    size_t first_ = 0;
  };
  void run();
  plugin::Status make_event(cudaEvent_t* event);
  // One look at the first of each stream. Whether any was done.
  bool look(std::unique_lock<std::mutex>& lock);
  // Looks at the stream until its first is not done yet.
  bool look_at(cudaStream_t stream, std::unique_lock<std::mutex>& lock);
  // Whether anything is asked for.
  bool waits() const;
  // How long to sleep before the next look; zero: not at all.
  PollPace::Time pause() const;

  const int device_;
  DeviceLoss& loss_;
  std::mutex mutex_;
  std::condition_variable asked_, called_;
  std::map<cudaStream_t, Queue> waiting_;
  std::vector<cudaStream_t> looked_at_;  // the thread's own, during a look
  bool sleeps_ = false;                  // the thread, until it is notified
  std::vector<cudaEvent_t> free_events_;
  size_t events_ = 0;  // that there are
  std::thread thread_;
  bool ends_ = false;
};

}  // namespace heddle::cuda
