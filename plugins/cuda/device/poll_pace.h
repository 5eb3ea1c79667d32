// PollPace decides when to check whether a stream has passed an event. Checking continuously costs a processor, and a sleep ends late:
// Linux rounds 20 µs up to 50 or more. Runs of one net take about the same time each, so the pace checks without sleeping at the beginning,
// and around the times that the stream's last waits took, and sleeps in between.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace heddle::cuda {

// The pace of one stream. The caller passes the time, so that a test can supply its own. Not thread-safe.
class PollPace {
 public:
  using Time = std::chrono::nanoseconds;  // since any fixed moment

  static constexpr Time eager_begin = std::chrono::microseconds(20);  // of each wait; most short runs end within it
  static constexpr Time nap = std::chrono::microseconds(20);

  // Starts the wait for the stream's next event.
  void begin(Time now) { began_ = now; }
  // The event has passed: the next waits are expected to take as long as this one.
  void end(Time now) {
    lasted_[next_] = now - began_;
    next_ = (next_ + 1) % kept;
  }
  // Returns how long to sleep before the next check; zero: check again at once.
  Time pause(Time now) const {
    const Time waited = now - began_;
    if (waited < eager_begin) return Time::zero();
    Time until = nap;
    for (const Time lasted : lasted_) {
      if (lasted == Time::zero()) continue;
      // The margin is a tenth to either side; in long waits more would not be worth a processor.
      const Time margin = std::min<Time>(lasted / 10, std::chrono::microseconds(200));
      const Time earliest = lasted - margin - oversleep, latest = lasted + margin + eager_begin;
      if (waited >= earliest && waited < latest) return Time::zero();
      if (waited < earliest) until = std::min(until, earliest - waited);
    }
    return until;
  }

 private:
  static constexpr size_t kept = 4;                                 // a run may wait for its stream more than once
  static constexpr Time oversleep = std::chrono::microseconds(60);  // how much longer than requested a sleep may take

  Time began_{0};
  Time lasted_[kept] = {};
  size_t next_ = 0;
};

}  // namespace heddle::cuda
