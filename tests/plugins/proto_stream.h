// Streams and events of a proto device: a thread for each stream, which takes its time when a seed says so.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "heddle/device_plugin.h"

namespace proto {

struct Failure {
  heddle_status status = HEDDLE_OK;
  std::string text;
  uint64_t label = UINT64_MAX;
};

class Event {
 public:
  // What a record or a wait enqueues: the record it stands for, counted when it is enqueued.
  uint64_t expect() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ++expected_;
  }
  uint64_t last() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return expected_;
  }
  void reach(uint64_t record, const Failure& failure) {
    const std::lock_guard<std::mutex> lock(mutex_);
    reached_ = record;
    failure_ = failure;
    changed_.notify_all();
  }
  Failure wait_for(uint64_t record) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return reached_ >= record; });
    return failure_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t expected_ = 0, reached_ = 0;
  Failure failure_;
};

class Memory;

class Stream {
 public:
  // One call for a stream, by whichever thread: the host promises that no two overlap. One that does is refused, and so is everything
  // after it.
  class Call {
   public:
    explicit Call(Stream& stream) : stream_(stream), first_(!stream.inside_.exchange(true)) {
      if (!first_) stream.overlapped_ = true;
    }
    ~Call() {
      // A caller that overlaps is caught here: this gives it the time to.
      if (stream_.delays_) std::this_thread::yield();
      if (first_) stream_.inside_ = false;
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    bool alone() const { return !stream_.overlapped_; }

   private:
    Stream& stream_;
    const bool first_;
  };
  static constexpr const char* overlap = "two threads were in calls for one stream at once";

  using Job = std::function<heddle_status(std::string& why)>;
  // `delay_seed`: 0, or the stream pauses now and then, the same for the same seed. `hold`: while there is a file of this name, the stream
  // begins nothing.
  Stream(const Memory& device_memory, uint64_t delay_seed, std::string hold)
      : memory(device_memory), random_(delay_seed), delays_(delay_seed != 0), hold_(std::move(hold)), worker_([this] { work(); }) {}
  ~Stream() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      closing_ = true;
      changed_.notify_all();
    }
    worker_.join();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const Memory& memory;
  void label(uint64_t number) { label_ = number; }
  uint64_t failed_label() const { return failed_label_; }
  // Left out once the stream has failed.
  void enqueue(Job job) {
    add([job = std::move(job), label = label_](Failure& state) {
      std::string why;
      if (state.status != HEDDLE_OK) return;
      if (const heddle_status status = job(why); status != HEDDLE_OK) state = {status, why, label};
    });
  }
  void record(Event& event) {
    add([&event, record = event.expect()](Failure& state) { event.reach(record, state); });
  }
  void wait(Event& event) {
    add([&event, record = event.last()](Failure& state) {
      const Failure before = event.wait_for(record);
      if (state.status == HEDDLE_OK) state = before;
    });
  }
  void notify(heddle_stream_callback callback, void* user) {
    add([callback, user](Failure& state) {
      callback(user, state.status, state.status == HEDDLE_OK ? nullptr : state.text.data(), state.text.size());
    });
  }
  Failure synchronize() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return queue_.empty() && !busy_; });
    Failure failure = std::exchange(state_, {});
    failed_label_ = failure.label;
    return failure;
  }

 private:
  using Work = std::function<void(Failure& state)>;
  void add(Work work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(work));
    changed_.notify_all();
  }
  void pause() {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    const uint64_t draw = random_ >> 33;
    if (draw % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(draw / 4 % 120));
  }
  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const Work next = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
      lock.unlock();
      if (delays_) pause();
      while (!hold_.empty() && ::access(hold_.c_str(), F_OK) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      next(state_);
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::atomic<bool> inside_{false}, overlapped_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  bool busy_ = false, closing_ = false;
  Failure state_;  // of the worker; others read it when it is idle
  uint64_t label_ = UINT64_MAX, failed_label_ = UINT64_MAX;
  uint64_t random_;
  const bool delays_;
  const std::string hold_;
  std::thread worker_;  // last: it uses everything above
};

}  // namespace proto
