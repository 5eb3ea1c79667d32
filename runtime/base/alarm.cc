#include "base/alarm.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/clock.h"

namespace heddle {

// Never destroyed: alarms may be set until the process ends.
class AlarmThread {
 public:
  static AlarmThread& instance() {
    static auto* const one = new AlarmThread();
    return *one;
  }

  void set(Alarm& alarm, uint64_t at) {
    const std::lock_guard lock(mutex_);
    if (!running_) {
      std::thread([this] { work(); }).detach();
      running_ = true;
    }
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
    std::unique_lock lock(mutex_);
    remove(alarm);
    changed_.wait(lock, [&] { return !alarm.ringing_; });
  }

 private:
  void remove(Alarm& alarm) {
    if (!alarm.set_) return;
    Alarm** place = &first_;
    while (*place != &alarm) place = &(*place)->next_;
    *place = alarm.next_;
    alarm.set_ = false;
  }

  [[noreturn]] void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (!first_) {
        changed_.wait(lock);
        continue;
      }
      if (const auto left = left_until(first_->at_); left.count() > 0) {
        changed_.wait_for(lock, left);
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

  std::mutex mutex_;
  std::condition_variable changed_;
  Alarm* first_ = nullptr;  // by time
  bool running_ = false;
};

void Alarm::set(uint64_t at) {
  AlarmThread::instance().set(*this, at);
}

void Alarm::cancel() {
  AlarmThread::instance().cancel(*this);
}

}  // namespace heddle
