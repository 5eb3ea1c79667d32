// Alarm: a function that is called at a time, for what waits without a thread of its own. All alarms of the process share one thread, which
// prepare() makes, sleeps until the next is due, and stays.
#pragma once

#include <cstdint>

namespace heddle {

class Alarm {
 public:
  // `function` is called on the alarms' thread: it returns quickly, and neither sets nor cancels alarms.
  Alarm(void (*function)(void* user), void* user) : function_(function), user_(user) {}
  ~Alarm() { cancel(); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  // [before set] Makes the thread, unless it is there. False: the system gives no thread, and no alarm would ring.
  static bool prepare() noexcept;
  // Once, at `at` (base/threads/clock.h ticks), or soon when that is past; in place of the time it was set to before. Allocates nothing.
  void set(uint64_t at);
  // Afterwards the function is not called any more, and no call of it is under way.
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
