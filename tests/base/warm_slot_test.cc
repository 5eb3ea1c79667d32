// One object in front of a pool, for any number of threads.
#include "base/threads/warm_slot.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace heddle {
namespace {

TEST(WarmSlot, KeepsTheLastAndReturnsTheOneBefore) {
  WarmSlot<std::unique_ptr<int>> slot;
  EXPECT_EQ(slot.exchange(), nullptr);
  EXPECT_EQ(slot.exchange(std::make_unique<int>(1)), nullptr);
  EXPECT_EQ(*slot.exchange(std::make_unique<int>(2)), 1);
  EXPECT_EQ(*slot.exchange(), 2);
  EXPECT_EQ(slot.exchange(), nullptr);
}

// Each object is in one place at any time: threads that hold one write it, and in the end none is lost or there twice.
TEST(WarmSlot, ThreadsNeitherLoseNorShareAnObject) {
  constexpr int threads = 4, rounds = 20'000;
  WarmSlot<std::unique_ptr<int>> slot;
  std::vector<std::unique_ptr<int>> held(threads);
  std::atomic<int> added{0};
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&slot, &added, &mine = held[static_cast<size_t>(t)]] {
      mine = std::make_unique<int>(0);
      for (int i = 0; i < rounds; ++i) {
        if (mine) {
          ++*mine;
          ++added;
        }
        mine = slot.exchange(std::move(mine));
      }
    });
  for (std::thread& thread : running) thread.join();
  held.push_back(slot.exchange());
  int objects = 0, sum = 0;
  for (const auto& object : held)
    if (object) ++objects, sum += *object;
  EXPECT_EQ(objects, threads);
  EXPECT_EQ(sum, added);
}

}  // namespace
}  // namespace heddle
