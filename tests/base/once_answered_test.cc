// Waiting for what a run has left.
#include "base/threads/once_answered.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(OnceAnswered, AsksAgainWhileVariablesAreBusy) {
  int calls = 0;
  const Status status = once_answered([&] { return ++calls < 3 ? Status(Code::busy, "left") : Status(Code::numerics, "an answer"); });
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(status.code(), Code::numerics) << "an error is an answer";
}

}  // namespace
}  // namespace heddle
