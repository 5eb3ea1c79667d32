// Streams and events of the simulated devices, their clock, and the one thread that does their work: work that ends first by the clock is
// done first; of work that ends at the same time, that of the higher priority, then that enqueued first. With a seed, durations are drawn
// from it, so that any order that streams and events allow may happen.
//
// Nothing is allocated while at most 128 pieces of work a stream are in flight.
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

#include "heddle/device_plugin.h"
#include "launch.h"
#include "memory.h"
#include "native.h"
#include "settings.h"

namespace sim {

// The first failure on a stream.
struct Failure {
  heddle_status status = HEDDLE_OK;
  std::string text;
  uint64_t label = UINT64_MAX;
};

class Event {
 private:
  friend class Engine;
  uint64_t expected_ = 0, reached_ = 0;  // records enqueued, and passed
  uint64_t time_ = 0;                    // of the last record that was passed
  Failure failure_;                      // of the stream before it
};

// The work that a kernel written for the device enqueues.
using Call = heddle_status (*)(void* arguments, const Memory& memory, std::string* why);

class Stream;
struct Job;

// Launches that are done together, one on each of several streams. They are enqueued one after the other: until the last one is, a device
// that has its own waits for the others.
struct Group {
  std::vector<Stream*> streams;
  std::vector<Job*> jobs;  // null: it is not enqueued (Faults::Kind::missing)
  size_t left = 0;         // jobs that have not ended, and one until the last is enqueued
  bool launched = false;   // all are enqueued
  bool broken = false;     // a stream has left it: the others wait until they are late, or aborted
  Group* next = nullptr;
  // The devices' thread alone uses these:
  std::vector<Launch*> launches;
  std::vector<const heddle_run_context*> contexts;
  std::vector<char> ended;
};

// A unit of enqueued work.
struct Job {
  enum class Kind { copy, launch, call, record, wait, notify, group };
  Kind kind = Kind::copy;
  Job* next = nullptr;
  uint64_t ticket = 0;  // by order of enqueueing
  uint64_t label = UINT64_MAX;
  uint64_t enqueued = 0, takes = 0;  // ns by the clock
  int32_t copy_kind = 0;
  void* destination = nullptr;
  const void* source = nullptr;
  const Memory* source_memory = nullptr;
  uint64_t bytes = 0;
  Event* event = nullptr;
  uint64_t record = 0;  // number of the event's record
  heddle_stream_callback callback = nullptr;
  void* user = nullptr;
  Launch launch;  // also of a group
  Group* group = nullptr;
  bool awaits_next = false;  // of a group: it changes places with that of the stream's next group (Faults::Kind::swapped)
  Call call = nullptr;
  std::shared_ptr<void> arguments;
  char value[64] = {};  // of HEDDLE_COPY_VALUE_TO_DEVICE

  bool launches() const { return kind == Kind::launch || kind == Kind::group; }
  const char* name() const { return launches() ? launch.operator_name() : kind == Kind::copy ? "copy" : "call"; }
};

class Stream {
 public:
  Stream(const Memory& of, Settings& its, int32_t what_for, int32_t how_urgent)
      : memory(of), settings(its), stream_class(what_for), priority(how_urgent) {}
  const Memory& memory;
  Settings& settings;
  const int32_t stream_class, priority;

  // A call for a stream, by any thread: the host promises that no two overlap. A call that overlaps another is refused, and so are all
  // later ones.
  class Inside {
   public:
    explicit Inside(Stream& stream) : stream_(stream), first_(!stream.inside_.exchange(true)) {
      if (!first_) stream.overlapped_ = true;
    }
    ~Inside() {
      if (first_) stream_.inside_ = false;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    bool alone() const { return !stream_.overlapped_; }

   private:
    Stream& stream_;
    const bool first_;
  };
  static constexpr const char* overlap = "two threads were in calls for one stream at once";

  uint64_t label = UINT64_MAX;         // of the work that is enqueued now
  uint64_t failed_label = UINT64_MAX;  // set by the last synchronize

 private:
  friend class Engine;
  std::atomic<bool> inside_{false}, overlapped_{false};
  // Guarded by the engine's lock:
  Job *first_job_ = nullptr, *last_job_ = nullptr;
  uint64_t number_ = 0;
  uint64_t time_ = 0;  // when its last work ended
  bool busy_ = false;
  bool silent_ = false;  // its work never ends, unless it is aborted
  bool deaf_ = false;    // not even then
  bool aborted_ = false;
  uint64_t silent_label_ = UINT64_MAX;
  uint64_t waiting_ticket_ = 0;                          // the part of a group that it waits with
  std::chrono::steady_clock::time_point waiting_since_;  // for the others
  Failure failure_;
};

class Engine {
 public:
  // Returns the process's engine, made with the first device and destroyed with the last; it has the seed of the device that was opened
  // last. Seed 0: work takes only the time that its settings give.
  static std::shared_ptr<Engine> shared(uint64_t seed);
  // Null: there is none now.
  static std::shared_ptr<Engine> current();
  Engine();
  void set_seed(uint64_t seed);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Stream* add_stream(const Memory& memory, Settings& settings, int32_t stream_class, int32_t priority);
  // Removes a stream when it is idle; one that will never be idle is removed at once.
  void remove(Stream* stream);

  // Called in a call for a stream: with a seed some calls sleep, so that calls without an order overlap.
  void linger();
  // Returns a job to be filled and enqueued, or given back.
  Job* take_job();
  void give_back(Job* job);
  void enqueue(Stream& stream, Job* job);
  // Returns an empty group. Its parts are enqueued one after the other; a null job is one that is missing. With `last` it is launched.
  Group* take_group();
  void enqueue(Group& group, Stream& stream, Job* job, bool last);
  void record(Stream& stream, Event& event);
  void wait(Stream& stream, Event& event);
  Failure synchronize(Stream& stream);
  // Waits as a driver does that allocates or frees memory: until the device with that memory has done all work enqueued so far, or can do
  // nothing more before another event. A device that has a part of a group whose others are still to be launched is not idle. Returns true
  // if it had one when this was called.
  bool wait_until_idle(const Memory& memory);
  // Returns HEDDLE_PENDING, or the status with which the stream has ended.
  heddle_status query(Stream& stream);
  void abort(Stream& stream);

  // The clock: while it is held, no work that ends later than now is done; advance returns when all work that ends until then is done.
  void hold();
  void advance(uint64_t ns);
  void let_go();
  uint64_t now();
  // Gives the work done so far, oldest first, as many as fit; returns the number of all.
  uint64_t spans(sim_span* spans, uint64_t capacity);
  void forget_spans();

 private:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr Time no_time = Time::max();
  static bool leaves_group(const Stream& stream);
  static bool have_come(const Group& group);
  static bool is_half(const Job* job);
  static bool has_half(const Stream& stream);
  static void change_places(Stream& stream);
  static std::string missing_in(const Group& group, const Stream& of);
  Time fail_late_groups();
  static bool may_begin(const Stream& stream);
  uint64_t end_of(const Stream& stream) const;
  Stream* choose(bool* held);
  void stop();
  void lag(std::unique_lock<std::mutex>& lock);
  void work();
  void call_back();
  void work_on(Stream& stream, std::unique_lock<std::mutex>& lock);
  void work_on_group(Group& group, std::unique_lock<std::mutex>& lock);
  static void fall_silent(Stream& stream, const Job& job);
  void end(Stream& stream, Job* job);
  void note_span(const Stream& stream, const Job& job, uint64_t begin, uint64_t end);
  static bool execute(Stream& stream, Job& job);
  static void execute(Group& group);
  void put_away(Group* group);
  static heddle_status move(const Stream& stream, const Job& job, std::string* why);
  static heddle_status strike(Stream& stream, const Job& job, std::string* why);
  static heddle_status perform(Stream& stream, Job& job, std::string* why);
  static bool settle(Stream& stream, const Job& job, heddle_status status, std::string why);
  void add(Stream& stream, Job* job);
  uint64_t draw() {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return random_ >> 33;
  }

  std::mutex mutex_;
  std::condition_variable changed_;  // there is work, or none
  std::vector<Stream*> streams_;
  std::vector<std::unique_ptr<Job>> jobs_;
  Job* idle_jobs_ = nullptr;
  std::vector<std::unique_ptr<Group>> groups_;
  Group* idle_groups_ = nullptr;
  size_t groups_in_use_ = 0;
  uint64_t tickets_ = 0, streams_made_ = 0;
  uint64_t clock_ = 0, horizon_ = UINT64_MAX;  // ns
  uint64_t seed_ = 0, random_ = 0;
  bool settled_ = false;  // no work can be done before more is enqueued or the clock advances
  bool resting_ = false;  // the devices' thread has found nothing to do
  bool closing_ = false;
  std::vector<sim_span> spans_;  // of the last ones, after the first request
  uint64_t spans_seen_ = 0;
  bool notes_spans_ = false;
  Stream* calling_ = nullptr;  // the stream whose callback the second thread calls, for CUDA-like devices
  Job* called_job_ = nullptr;
  std::vector<std::pair<Stream*, Job*>> callbacks_;
  std::thread worker_, caller_;  // last: they use everything above
};

}  // namespace sim
