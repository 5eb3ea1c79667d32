// Predictions count messages as the CPU plugin sends them: both have the numbers by which it decides how an all-reduce goes.
#include <gtest/gtest.h>

#include <bit>

#include "collective/message_sizes.h"
#include "heddle/plan_info.h"

namespace heddle {
namespace {

// The messages of an all-reduce, one after another.
int64_t messages(int64_t bytes, int ranks) {
  return all_reduce_ns(bytes, RankLink{ranks, 0, 1, 0});
}

TEST(PredictedCollectives, HaveTheLimitsOfThePlugin) {
  constexpr int64_t longest = cpu::short_bytes, chunk = cpu::min_chunk_bytes;
  constexpr int tree = cpu::tree_from, before = tree - 1;
  EXPECT_EQ(messages(longest, before), before - 1) << "from all to all";
  EXPECT_EQ(messages(longest, tree), 2 * std::bit_width(static_cast<unsigned>(tree - 1))) << "along a tree";
  EXPECT_EQ(messages(longest + 1, before), 2 * (before - 1)) << "in one chunk";
  EXPECT_EQ(messages(chunk, before), 2 * (before - 1));
  EXPECT_EQ(messages(chunk + 1, before), 4 * (before - 1)) << "in two";
  constexpr int many = 4 * static_cast<int>(chunk / cpu::part_bytes);  // so many that a chunk has four times the bytes
  EXPECT_EQ(messages(4 * chunk, many), 2 * (many - 1));
  EXPECT_EQ(messages(4 * chunk + 1, many), 4 * (many - 1));
}

}  // namespace
}  // namespace heddle
