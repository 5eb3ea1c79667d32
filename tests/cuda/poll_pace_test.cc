// When the poller checks, by a clock that the test moves: how late the end of a stream's work is seen, and how many checks that takes.
#include "device/poll_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace heddle::cuda {
namespace {

using std::chrono::microseconds;
using Time = PollPace::Time;

// A machine on which a check takes 300 ns and a sleep 32 µs longer than requested, as on Linux with a timer slack of 1 ns.
class Machine {
 public:
  struct Seen {
    Time late;
    int looks = 0, sleeps = 0;
  };
  Seen wait(Time work) {
    pace_.begin(now_);
    const Time ends = now_ + work;
    Seen seen = {};
    for (;;) {
      now_ += std::chrono::nanoseconds(300);
      ++seen.looks;
      if (now_ >= ends) break;
      const Time pause = pace_.pause(now_);
      if (pause == Time::zero()) continue;
      now_ += pause + microseconds(32);
      ++seen.sleeps;
    }
    pace_.end(now_);
    seen.late = now_ - ends;
    return seen;
  }

 private:
  PollPace pace_;
  Time now_{0};
};

Time median(std::vector<Time> all) {
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
  return all[all.size() / 2];
}

TEST(PollPace, WorkThatLastsAsLongAsBeforeIsSeenAtOnceAndSleptThrough) {
  std::mt19937 dice(1);
  for (const int lasts : {300, 2000, 20000}) {
    Machine machine;
    machine.wait(microseconds(lasts));
    std::vector<Time> late;
    for (int run = 0; run < 101; ++run) {
      const Time work = microseconds(lasts) + microseconds(static_cast<int>(dice() % 40) - 20);
      const Machine::Seen seen = machine.wait(work);
      late.push_back(seen.late);
      EXPECT_GE(seen.sleeps, 1) << lasts;
      // A processor is kept busy for the first 20 µs and, at most, for 500 µs around the expected end.
      EXPECT_LE(seen.looks, (20 + 500) * 1000 / 300 + seen.sleeps) << lasts;
    }
    EXPECT_LE(median(late), microseconds(1)) << lasts;
  }
}

// A run with a fence in its middle waits twice on its stream, for different times.
TEST(PollPace, AStreamMayHaveWaitsOfSeveralLengths) {
  Machine machine;
  std::vector<Time> late;
  for (int run = 0; run < 101; ++run) {
    const Time one = machine.wait(microseconds(250)).late, other = machine.wait(microseconds(900)).late;
    if (run > 0) late.insert(late.end(), {one, other});
  }
  EXPECT_LE(*std::max_element(late.begin(), late.end()), microseconds(1));
}

// Waits of unknown length are slept through in short naps: late by one of them at most.
TEST(PollPace, WorkOfAnUnknownLengthIsLateByANap) {
  Machine machine;
  EXPECT_EQ(machine.wait(microseconds(15)).sleeps, 0);
  const Machine::Seen seen = Machine().wait(microseconds(5000));
  EXPECT_LE(seen.late, PollPace::nap + microseconds(33));
  EXPECT_LE(seen.looks, 200);
}

}  // namespace
}  // namespace heddle::cuda
