// Alarm: a function that is called at a given time, for code that waits without a thread of its own. All alarms of the process share one
// thread, which prepare() makes, which sleeps until the next alarm is due, and which lasts until the process ends.
#pragma once

#include <cstdint>

namespace heddle {

class Alarm {
 public:
  // `function` is called on the alarms' thread: it must return quickly, and neither set nor cancel alarms.
  Alarm(void (*function)(void* user), void* user) : function_(function), user_(user) {}
  ~Alarm() { cancel(); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  // [before set] Makes the thread, unless it exists. Returns false if the system gives no thread: then no alarm would ring.
  static bool prepare() noexcept;
  // Sets the alarm to ring once, at `at` (base/threads/clock.h ticks), or soon when that is past; replaces the time set before. Allocates
  // nothing.
  void set(uint64_t at);
  // After this returns the function is not called any more, and no call of it is in progress.
  void cancel();

 private:
  friend class AlarmThread;
  void (*const function_)(void* user);
  void* const user_;
  uint64_t at_ = 0;
  bool set_ = false;      // it is in the list
  bool ringing_ = false;  // its function is being called
  Alarm* next_ = nullptr;
};

}  // namespace heddle
