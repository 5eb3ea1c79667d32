// Streams, events, and the one thread that does the work of all devices. Work of a stream is done in order; which stream goes next is drawn
// by the seed, or they take turns.
//
// An event is the place of a stream that it was last recorded at: "Captures in event the contents of stream at the time of this call"
// (Runtime API, cudaEventRecord). Who waits for it waits until the stream has passed that place, and takes the place that it had at the
// time of that call. One that was never recorded is no place: "an event represents an empty set of work".
//
// All under the lock of the process (process.h), but for the work itself.
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

// Behind the so-manieth piece of work of a stream.
struct Place {
  uint64_t stream = 0, sequence = 0;
};

// Places of many streams: what is known to be done, or must be done before something may happen.
class Clock {
 public:
  void add(Place place);
  void merge(const Clock& other);
  bool covers(Place place) const;
  // Whether each of its places is covered by one of the two.
  bool within(const Clock& one, const Clock& other) const;

 private:
  std::map<uint64_t, uint64_t> last_;  // sequence by stream
};

struct Stream;

struct Job {
  enum class Kind : uint8_t { work, transfer, memory, wait };  // memory: begins though work is held
  Kind kind = Kind::work;
  uint64_t sequence = 0;
  std::function<cudaError_t()> work;  // an error ends the process's use of CUDA
  std::shared_ptr<const Stream> awaited;
  uint64_t until = 0;
};

struct Stream {
  uint64_t id = 0;
  int device = 0;
  bool blocking = false;  // waits for the legacy default stream, and it for this
  bool is_default = false;
  bool destroyed = false;
  std::deque<Job> jobs;
  uint64_t enqueued = 0, done = 0;  // sequences
  Clock before;                     // what has happened before whatever is enqueued next
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
  // What is enqueued on it is still done.
  void let_go(const std::shared_ptr<Stream>& stream);
  Place enqueue(Stream& stream, Job::Kind kind, std::function<cudaError_t()> work);
  void wait(Stream& stream, const std::shared_ptr<const Stream>& awaited, uint64_t until, const Clock& before);
  void record(const std::shared_ptr<Stream>& stream, Event& event);
  // The host waits. The places are known to be done then.
  void wait_on_host(Lock& lock, const Stream& stream);
  // Until nothing is under way or may begin. The host knows no more than before.
  void settle(Lock& lock) {
    changed_.wait(lock, [&] { return !working_ && (held() || !any_jobs()); });
  }
  void known(const Clock& before) { known_.merge(before); }
  void known(Place place) { known_.add(place); }
  const Clock& known_to_host() const { return known_; }

  // What ended the use of CUDA; cudaSuccess: nothing did.
  cudaError_t lost() const { return lost_; }
  void lose(cudaError_t error);
  void set_order(uint64_t seed, const std::string& hold);
  // Work that comes is done without doing it.
  void set_idle(bool idle) { idle_ = idle; }
  // Copies do not begin while this holds, as if the device's copy engine were busy; functions of the host's and kernels do.
  void hold_transfers(bool hold) {
    transfers_held_ = hold;
    changed_.notify_all();
  }
  // For tests: as if nothing had ever been enqueued. Streams that are there stay.
  void reset(Lock& lock);

 private:
  bool may_begin(const Stream& stream, bool held) const;
  std::shared_ptr<Stream> choose(bool held);
  bool held() const;
  bool any_jobs() const;
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
