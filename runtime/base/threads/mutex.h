// Mutex, MutexLock and Condition: std::mutex and std::condition_variable with clang's thread safety annotations, which libstdc++'s have
// not. A member says which mutex protects it, a function which mutex its caller must hold, and clang refuses code that does otherwise
// (tools/check_locks.sh). Other compilers see no annotations. Everything is inline and costs what the wrapped objects cost.
//
//   Mutex mutex_;
//   Condition changed_;
//   int count_ HEDDLE_GUARDED_BY(mutex_) = 0;
//   void drop() HEDDLE_REQUIRES(mutex_);
//   ...
//   MutexLock lock(mutex_);
//   while (count_ == 0) changed_.wait(mutex_);
//   drop();
//
// A wait is a loop because clang examines a lambda by itself, without the locks of the function around it: a predicate has to be declared
// with HEDDLE_REQUIRES too.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#if defined(__clang__)
#define HEDDLE_THREAD_ANNOTATION(attribute) __attribute__((attribute))
#else
#define HEDDLE_THREAD_ANNOTATION(attribute)
#endif

// On a class: its objects are locks; `name` is what messages call them.
#define HEDDLE_CAPABILITY(name) HEDDLE_THREAD_ANNOTATION(capability(name))
// On a class: its objects hold a lock until they are destroyed.
#define HEDDLE_SCOPED_CAPABILITY HEDDLE_THREAD_ANNOTATION(scoped_lockable)
// On a member or variable: it is read and written only while the mutex is held.
#define HEDDLE_GUARDED_BY(mutex) HEDDLE_THREAD_ANNOTATION(guarded_by(mutex))
// On a function: the caller must hold the mutexes, or must not hold them.
#define HEDDLE_REQUIRES(...) HEDDLE_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define HEDDLE_EXCLUDES(...) HEDDLE_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
// On a function: it returns with the mutexes held, or no longer held. Without arguments: the object itself.
#define HEDDLE_ACQUIRE(...) HEDDLE_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define HEDDLE_RELEASE(...) HEDDLE_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
// On a function whose locks clang can not follow. A comment beside it says why it is right.
#define HEDDLE_NO_THREAD_SAFETY_ANALYSIS HEDDLE_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace heddle {

// A mutex that is held by one thread at a time and not entered twice by it.
class HEDDLE_CAPABILITY("mutex") Mutex {
 public:
  constexpr Mutex() noexcept = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void lock() HEDDLE_ACQUIRE() { mutex_.lock(); }
  void unlock() HEDDLE_RELEASE() { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

// Holds a mutex from its construction to its destruction, except between unlock() and lock(). The mutex must outlive it.
class HEDDLE_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) HEDDLE_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() HEDDLE_RELEASE() {
    if (held_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  // REQUIRES: the mutex is held.
  void unlock() HEDDLE_RELEASE() {
    mutex_.unlock();
    held_ = false;
  }
  // REQUIRES: unlock() was called.
  void lock() HEDDLE_ACQUIRE() {
    mutex_.lock();
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

// A condition that threads wait for; all of them must wait with the same mutex. Waits may end without a notification: callers check what
// they wait for in a loop. Thread-safe.
class Condition {
 public:
  Condition() = default;
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;
  // Releases the mutex, waits for a notification, and takes the mutex again. The caller holds it, by a MutexLock of its own or of a caller.
  void wait(Mutex& mutex) HEDDLE_REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    condition_.wait(held);
    held.release();
  }
  // Like wait(), for at most `time`. Returns false if the time passed.
  bool wait_for(Mutex& mutex, std::chrono::nanoseconds time) HEDDLE_REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    const std::cv_status status = condition_.wait_for(held, time);
    held.release();
    return status == std::cv_status::no_timeout;
  }
  // Waits until `predicate()` is true, for at most `time`, and returns its last result. It is called with the mutex held, and must not
  // throw.
  template <class Predicate>
  bool wait_for(Mutex& mutex, std::chrono::nanoseconds time, Predicate predicate) HEDDLE_REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    const bool result = condition_.wait_for(held, time, std::move(predicate));
    held.release();
    return result;
  }
  // [any thread] Wake one waiting thread, or all. The caller may hold the mutex, and must if the waiting thread may destroy the condition.
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace heddle
