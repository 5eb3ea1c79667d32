#include "run/device/stream_state.h"

#include <gtest/gtest.h>

#include <array>

namespace heddle {
namespace {

constexpr std::array all = {StreamState::idle, StreamState::worked, StreamState::asked, StreamState::given};

AtomicStreamState& bring(AtomicStreamState& state, StreamState to) {
  for (size_t s = 1; s <= static_cast<size_t>(to); ++s) state.change_to(all[s]);
  return state;
}

TEST(StreamState, AStreamThatWaitsForItsCallbackChangesOnlyByAnAnswer) {
  for (const StreamState to : all) EXPECT_EQ(stream_state_may_change[2][static_cast<size_t>(to)], to == StreamState::given);
}

TEST(StreamState, ChangesAreThoseOfTheTable) {
  for (const StreamState from : all)
    for (const StreamState to : all) {
      if (!stream_state_may_change[static_cast<size_t>(from)][static_cast<size_t>(to)]) continue;
      AtomicStreamState state;
      bring(state, from).change_to(to);
      EXPECT_EQ(state.now(), to);
      EXPECT_EQ(state.has_callback(), to == StreamState::asked || to == StreamState::given);
    }
}

TEST(StreamStateDeathTest, OtherChangesAbortABuildWithAssertions) {
#ifdef NDEBUG
  GTEST_SKIP() << "a build without assertions";
#else
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const StreamState from : all)
    for (const StreamState to : all) {
      if (stream_state_may_change[static_cast<size_t>(from)][static_cast<size_t>(to)]) continue;
      AtomicStreamState state;
      bring(state, from);
      EXPECT_DEATH(state.change_to(to), "stream_state_may_change");
    }
#endif
}

}  // namespace
}  // namespace heddle
