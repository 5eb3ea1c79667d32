// Streams and events of the simulated devices, and the one thread that does their work: of the streams that could go on it takes one after
// the other, in the order of enqueueing, or, with a seed, in any order that streams and events allow, with pauses.
//
// Nothing is allocated while at most 64 pieces of work a stream are in flight.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "faults.h"
#include "heddle/device_plugin.h"
#include "launch.h"
#include "memory.h"

namespace sim {

// The first thing that went wrong on a stream.
struct Failure {
  heddle_status status = HEDDLE_OK;
  std::string text;
  uint64_t label = UINT64_MAX;
};

class Event {
 private:
  friend class Engine;
  uint64_t expected_ = 0, reached_ = 0;  // records enqueued, and passed
  Failure failure_;                      // before the last that was passed
};

class Stream;

// What is enqueued.
struct Job {
  enum class Kind { copy, fill, launch, record, wait, notify };
  Kind kind = Kind::copy;
  Job* next = nullptr;
  uint64_t ticket = 0;  // by order of enqueueing
  uint64_t label = UINT64_MAX;
  void* destination = nullptr;
  const void* source = nullptr;
  uint64_t bytes = 0;
  int32_t value = 0;  // of a fill
  Event* event = nullptr;
  uint64_t record = 0;  // of that event
  heddle_stream_callback callback = nullptr;
  void* user = nullptr;
  Launch launch;
};

// How a device is to behave.
struct Manners {
  std::string hold;   // while there is a file of this name, nothing begins
  std::string wrong;  // the operator whose kernels compute something else; empty: none
  Faults faults;
  std::atomic<bool> lost{false};
};

class Stream {
 public:
  Stream(const Memory& of, Manners& its) : memory(of), manners(its) {}
  const Memory& memory;
  Manners& manners;

  // One call for a stream, by whichever thread: the host promises that no two overlap. One that does is refused, and so is everything
  // after it.
  class Call {
   public:
    explicit Call(Stream& stream) : stream_(stream), first_(!stream.inside_.exchange(true)) {
      if (!first_) stream.overlapped_ = true;
    }
    ~Call() {
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

  void label(uint64_t number) { label_ = number; }
  uint64_t label() const { return label_; }
  uint64_t failed_label() const { return failed_label_; }

 private:
  friend class Engine;
  std::atomic<bool> inside_{false}, overlapped_{false};
  uint64_t label_ = UINT64_MAX, failed_label_ = UINT64_MAX;  // of the host's threads
  // Under the engine's lock:
  Job *first_job_ = nullptr, *last_job_ = nullptr;
  bool busy_ = false;
  bool silent_ = false;  // it never comes to an end
  Failure failure_;
};

class Engine {
 public:
  // That of the process, made with the first device and gone with the last; it has the seed of the device that was opened last. Seed 0: no
  // pauses, and the order of enqueueing.
  static std::shared_ptr<Engine> shared(uint64_t seed);
  Engine();
  void set_seed(uint64_t seed);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Stream* add_stream(const Memory& memory, Manners& manners);
  // Once it is idle; one that never will be goes as it is.
  void remove(Stream* stream);

  // A job to be filled and enqueued, or given back.
  Job* take_job();
  void give_back(Job* job);
  void enqueue(Stream& stream, Job* job);
  void record(Stream& stream, Event& event);
  void wait(Stream& stream, Event& event);
  Failure synchronize(Stream& stream);

 private:
  bool may_begin(const Stream& stream) const;
  Stream* choose(bool* held);
  std::chrono::microseconds pause();
  void lag(std::unique_lock<std::mutex>& lock);
  void work();
  bool execute(Stream& stream, Job& job);
  static heddle_status move(const Stream& stream, const Job& job, std::string* why);
  static heddle_status perform(Stream& stream, Job& job, std::string* why);
  void add(Stream& stream, Job* job);
  uint64_t draw() {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return random_ >> 33;
  }

  std::mutex mutex_;
  std::condition_variable changed_;  // there is work, or none
  std::vector<Stream*> streams_, able_;
  std::vector<std::unique_ptr<Job>> jobs_;
  Job* idle_jobs_ = nullptr;
  uint64_t tickets_ = 0;
  uint64_t seed_ = 0, random_ = 0;
  bool closing_ = false;
  std::thread worker_;  // last: it uses everything above
};

}  // namespace sim
