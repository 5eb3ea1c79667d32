// How stages see a deadline and the flag that cancels them.
#include "base/threads/interruption.h"

#include <gtest/gtest.h>

#include "base/threads/clock.h"

namespace heddle {
namespace {

TEST(Interruption, EndsWithItsFlagAndItsDeadline) {
  EXPECT_TRUE(Interruption().status().ok());
  std::atomic<bool> cancelled{false};
  const Interruption later(ticks() + ns_to_ticks(1e15), &cancelled);
  EXPECT_TRUE(later.status().ok());
  cancelled = true;
  EXPECT_EQ(later.status().code(), Code::cancelled);
  EXPECT_EQ(Interruption(1).status().code(), Code::deadline_exceeded);
}

TEST(Interruption, WhatIsLeftIsRoundedUp) {
  EXPECT_EQ(left_until(1).count(), 0);
  EXPECT_GT(left_until(ticks() + ns_to_ticks(1e12)).count(), 0);
}

}  // namespace
}  // namespace heddle
