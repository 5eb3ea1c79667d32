// PollPace: when to look whether a stream has passed an event. A look at once costs a processor, a sleep ends late: Linux rounds 20 µs up
// to 50 or more. Runs of one net take about as long each time, so the pace looks without sleeping at the beginning, and around the times
// that the stream's last waits took, and sleeps in between.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace heddle::cuda {

// Of one stream; the time is the caller's, so that a test can have one of its own. Not thread-safe.
class PollPace {
 public:
  using Time = std::chrono::nanoseconds;  // since any one moment

  static constexpr Time eager_begin = std::chrono::microseconds(20);  // of each wait, which most short runs end within
  static constexpr Time nap = std::chrono::microseconds(20);

  // The stream's next event is waited for from now on.
  void begin(Time now) { began_ = now; }
  // The event has passed: what the wait took is expected of the next ones.
  void end(Time now) {
    lasted_[next_] = now - began_;
    next_ = (next_ + 1) % kept;
  }
  // How long to sleep before the next look; zero: look again at once.
  Time pause(Time now) const {
    const Time waited = now - began_;
    if (waited < eager_begin) return Time::zero();
    Time until = nap;
    for (const Time lasted : lasted_) {
      if (lasted == Time::zero()) continue;
      // A tenth to either side, which in long waits is no gain worth a processor.
      const Time margin = std::min<Time>(lasted / 10, std::chrono::microseconds(200));
      const Time earliest = lasted - margin - oversleep, latest = lasted + margin + eager_begin;
      if (waited >= earliest && waited < latest) return Time::zero();
      if (waited < earliest) until = std::min(until, earliest - waited);
    }
    return until;
  }

 private:
  static constexpr size_t kept = 4;                                 // a run may wait for its stream more than once
  static constexpr Time oversleep = std::chrono::microseconds(60);  // what a nap may take beyond what was asked

  Time began_{0};
  Time lasted_[kept] = {};
  size_t next_ = 0;
};

}  // namespace heddle::cuda
