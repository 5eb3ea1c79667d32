#include "base/threads/alarm.h"

#include <unistd.h>

#include <atomic>
#include <system_error>
#include <thread>

#include "base/threads/clock.h"
#include "base/threads/mutex.h"

namespace heddle {

// Never destroyed: alarms may be set until the process ends. A forked child makes one of its own: the parent's has no thread in the child.
class AlarmThread {
 public:
  static AlarmThread& instance() {
    static std::atomic<AlarmThread*> one{nullptr};
    AlarmThread* now = one.load(std::memory_order_acquire);
    if (now && now->process_ == ::getpid()) return *now;
    auto* const fresh = new AlarmThread();
    if (one.compare_exchange_strong(now, fresh)) return *fresh;
    delete fresh;
    return *now;
  }

  bool prepare() noexcept {
    const MutexLock lock(mutex_);
    if (running_) return true;
    try {
      std::thread([this] { work(); }).detach();
    } catch (...) {  // no thread, or no memory to start one with
      return false;
    }
    return running_ = true;
  }

  void set(Alarm& alarm, uint64_t at) {
    const MutexLock lock(mutex_);
    remove(alarm);
    Alarm** place = &first_;
    while (*place && (*place)->at_ <= at) place = &(*place)->next_;
    alarm.at_ = at;
    alarm.next_ = *place;
    alarm.set_ = true;
    *place = &alarm;
    if (first_ == &alarm) changed_.notify_all();
  }

  void cancel(Alarm& alarm) {
    const MutexLock lock(mutex_);
    remove(alarm);
    while (alarm.ringing_) changed_.wait(mutex_);
  }

 private:
  void remove(Alarm& alarm) HEDDLE_REQUIRES(mutex_) {
    if (!alarm.set_) return;
    Alarm** place = &first_;
    while (*place && *place != &alarm) place = &(*place)->next_;  // not in the list: it was set in the process that forked this one
    if (*place) *place = alarm.next_;
    alarm.set_ = false;
  }

  [[noreturn]] void work() {
    MutexLock lock(mutex_);
    for (;;) {
      if (!first_) {
        changed_.wait(mutex_);
        continue;
      }
      if (const auto left = left_until(first_->at_); left.count() > 0) {
        changed_.wait_for(mutex_, left);
        continue;
      }
      Alarm& due = *first_;
      remove(due);
      due.ringing_ = true;
      lock.unlock();
      due.function_(due.user_);
      lock.lock();
      due.ringing_ = false;
      changed_.notify_all();
    }
  }

  const pid_t process_ = ::getpid();
  Mutex mutex_;  // also guards the lists and states in the alarms themselves
  Condition changed_;
  Alarm* first_ HEDDLE_GUARDED_BY(mutex_) = nullptr;  // ascending by time
  bool running_ HEDDLE_GUARDED_BY(mutex_) = false;
};

bool Alarm::prepare() noexcept {
  try {
    return AlarmThread::instance().prepare();
  } catch (...) {
    return false;
  }
}

void Alarm::set(uint64_t at) {
  AlarmThread::instance().set(*this, at);
}

void Alarm::cancel() {
  AlarmThread::instance().cancel(*this);
}

}  // namespace heddle
