// Allocations and launches of groups exclude each other.
#include "device/driver_turn.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace heddle {
namespace {

// Returns whether a turn for `second`, asked for while another thread has one for `first`, begins after that has ended.
bool waits(DriverTurn::For first, DriverTurn::For second) {
  std::atomic<bool> has_turn{false}, ended{false};
  std::thread holder([&] {
    const DriverTurn turn(first);
    has_turn = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    ended = true;
  });
  while (!has_turn) std::this_thread::yield();
  bool after = false;
  {
    const DriverTurn turn(second);
    after = ended;
  }
  holder.join();
  return after;
}

TEST(DriverTurn, KeepsAllocationsOutOfGroups) {
  EXPECT_TRUE(waits(DriverTurn::For::group, DriverTurn::For::allocation));
  EXPECT_TRUE(waits(DriverTurn::For::allocation, DriverTurn::For::group));
  EXPECT_TRUE(waits(DriverTurn::For::group, DriverTurn::For::group));
}

TEST(DriverTurn, OfAThreadThatHasOneGoesOn) {
  const DriverTurn turn(DriverTurn::For::group);
  const DriverTurn inner(DriverTurn::For::allocation);
}

}  // namespace
}  // namespace heddle
