#include "base/threads/patience.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

constexpr Patience::Limits limits = {1e6, 2e6};

uint64_t after_ns(double ns) {
  return ns_to_ticks(ns);
}

TEST(Patience, WaitsAsLongAsNothingRequestsAnEnd) {
  Patience patience;
  EXPECT_EQ(patience.look(0, false, limits), Patience::Act::wait);
  EXPECT_EQ(patience.look(after_ns(1e12), false, limits), Patience::Act::wait);
  EXPECT_FALSE(patience.told());
  EXPECT_EQ(patience.until(), 0u);
}

TEST(Patience, TellsThenTellsAllThenGivesUp) {
  Patience patience;
  const uint64_t begin = after_ns(5e6);
  EXPECT_EQ(patience.look(begin, true, limits), Patience::Act::tell);
  EXPECT_TRUE(patience.told());
  EXPECT_EQ(patience.until(), begin + after_ns(1e6));
  EXPECT_EQ(patience.look(patience.until() - 1, true, limits), Patience::Act::wait);
  const uint64_t second = patience.until();
  EXPECT_EQ(patience.look(second, true, limits), Patience::Act::tell_all);
  EXPECT_EQ(patience.until(), second + after_ns(2e6));
  EXPECT_EQ(patience.look(patience.until() - 1, true, limits), Patience::Act::wait);
  EXPECT_EQ(patience.look(patience.until(), true, limits), Patience::Act::give_up);
  EXPECT_EQ(patience.look(patience.until(), true, limits), Patience::Act::give_up);
}

TEST(Patience, WithWorkThatCannotBeSignalledEndsAtItsLimit) {
  Patience patience;
  EXPECT_FALSE(patience.is_over(1, false, 1e6));
  EXPECT_FALSE(patience.is_over(2, true, 1e6));
  EXPECT_FALSE(patience.is_over(1 + after_ns(1e6), true, 1e6));
  EXPECT_TRUE(patience.is_over(2 + after_ns(1e6), true, 1e6));
}

// A request that is taken back, or whose limits change, does not begin the wait anew.
TEST(Patience, KeepsTheLimitOfItsSignal) {
  Patience patience;
  EXPECT_EQ(patience.look(1, true, limits), Patience::Act::tell);
  EXPECT_EQ(patience.look(1 + after_ns(0.5e6), false, {9e9, 9e9}), Patience::Act::wait);
  EXPECT_EQ(patience.look(1 + after_ns(1e6), false, {9e9, 0}), Patience::Act::tell_all);
  EXPECT_EQ(patience.look(1 + after_ns(1e6), true, limits), Patience::Act::give_up);
  patience.begin();
  EXPECT_FALSE(patience.told());
  EXPECT_EQ(patience.look(2, false, limits), Patience::Act::wait);
}

}  // namespace
}  // namespace heddle
