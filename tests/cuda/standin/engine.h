// Streams, events, and the one thread that does the work of all devices. Work of a stream is done in order; the next stream is drawn by the
// seed, or they take turns.
//
// An event is the place of a stream that it was last recorded at: "Captures in event the contents of stream at the time of this call"
// (Runtime API, cudaEventRecord). A wait for it ends when the stream has passed the place that the event had at the time of the wait's
// call. An event that was never recorded has no place: "an event represents an empty set of work".
//
// Everything is guarded by the lock of the process (process.h), except the work itself.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "exports.h"

namespace heddle::cuda::standin {

using Lock = std::unique_lock<std::mutex>;

// The place after a given piece of work of a stream, counted from its first.
struct Place {
  uint64_t stream = 0, sequence = 0;
};

// Places of many streams: which are known to be done, or must be done before something may happen.
class Clock {
 public:
  void add(Place place);
  void merge(const Clock& other);
  bool covers(Place place) const;
  // Returns true if each of its places is covered by one of the two.
  bool within(const Clock& one, const Clock& other) const;

 private:
  std::map<uint64_t, uint64_t> last_;  // sequence by stream
};

struct Stream;

struct Job {
  // memory: begins even while work is held; meeting: begins once others have come
  enum class Kind : uint8_t { work, transfer, memory, wait, meeting };
  Kind kind = Kind::work;
  uint64_t sequence = 0;
  std::function<cudaError_t()> work;  // an error ends the process's use of CUDA
  std::shared_ptr<const Stream> awaited;
  uint64_t until = 0;
  std::function<bool()> ready;  // of a meeting; called with the lock
};

struct Stream {
  uint64_t id = 0;
  int device = 0;
  bool blocking = false;  // waits for the legacy default stream, and that one for this
  bool is_default = false;
  bool destroyed = false;
  std::deque<Job> jobs;
  uint64_t enqueued = 0, done = 0;  // sequences
  Clock before;                     // what has happened before the next piece of work
  int nccl_calls = 0;               // of NCCL, in progress: until they are not, no one may use the stream
  Place place() const { return {id, enqueued}; }
};

struct Event {
  int device = 0;
  std::shared_ptr<const Stream> stream;  // null: never recorded
  uint64_t sequence = 0;
  Clock before;
  bool passed() const { return !stream || stream->done >= sequence; }
};

class Engine {
 public:
  explicit Engine(std::mutex& mutex) : mutex_(mutex) {}

  std::shared_ptr<Stream> make_stream(int device, bool blocking, bool is_default);
  // Releases a stream. Work that is enqueued on it is still done.
  void let_go(const std::shared_ptr<Stream>& stream);
  Place enqueue(Stream& stream, Job::Kind kind, std::function<cudaError_t()> work);
  // Enqueues work that begins once `ready` returns true, which other processes may bring about.
  void enqueue_when(Stream& stream, std::function<bool()> ready, std::function<cudaError_t()> work);
  // This is what is waited for may have changed.
  void look_again() { changed_.notify_all(); }
  void wait(Stream& stream, const std::shared_ptr<const Stream>& awaited, uint64_t until, const Clock& before);
  void record(const std::shared_ptr<Stream>& stream, Event& event);
  // The host waits for the stream's places, which are known to be done afterwards.
  void wait_on_host(Lock& lock, const Stream& stream);
  // Waits until no work is in progress or may begin. The host's knowledge does not change.
  void settle(Lock& lock) {
    changed_.wait(lock, [&] { return !working_ && (held() || !any_jobs()); });
  }
  void known(const Clock& before) { known_.merge(before); }
  void known(Place place) { known_.add(place); }
  const Clock& known_to_host() const { return known_; }

  // Returns the error that ended the use of CUDA; cudaSuccess: there was none.
  cudaError_t lost() const { return lost_; }
  void lose(cudaError_t error);
  void set_order(uint64_t seed, const std::string& hold);
  // While idle, new work completes without being done.
  void set_idle(bool idle) { idle_ = idle; }
  // While held, copies do not begin, as if the device's copy engine were busy; host functions and kernels do.
  void hold_transfers(bool hold) {
    transfers_held_ = hold;
    changed_.notify_all();
  }
  // For tests: resets to the state before anything was enqueued. Existing streams are kept.
  void reset(Lock& lock);

 private:
  bool may_begin(const Stream& stream, bool held) const;
  std::shared_ptr<Stream> choose(bool held);
  bool held() const;
  bool any_jobs() const;
  bool any_meetings() const;
  void pause(Lock& lock, uint64_t max_us);
  void work();
  void add(Stream& stream, Job job);
  uint64_t draw();

  std::mutex& mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Stream>> streams_;
  size_t turn_ = 0;
  uint64_t made_ = 0;
  bool working_ = false;
  bool started_ = false;
  Clock known_;
  cudaError_t lost_ = cudaSuccess;
  uint64_t seed_ = 0, random_ = 0;
  std::string hold_;
  bool idle_ = false;
  bool transfers_held_ = false;
};

}  // namespace heddle::cuda::standin
