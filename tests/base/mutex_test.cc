// Mutex, MutexLock and Condition: they lock, and wait with and without a limit. What clang finds with them: tests/repository/locks_test.cc.
#include "base/threads/mutex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace heddle {
namespace {

using std::chrono::milliseconds;

static_assert(sizeof(Mutex) == sizeof(std::mutex) && sizeof(Condition) == sizeof(std::condition_variable));

struct Counter {
  Mutex mutex;
  Condition changed;
  int count HEDDLE_GUARDED_BY(mutex) = 0;
};

TEST(Mutex, IsHeldByOneThreadAtATime) {
  Counter counter;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const MutexLock lock(counter.mutex);
        ++counter.count;
      }
    });
  for (std::thread& thread : threads) thread.join();
  const MutexLock lock(counter.mutex);
  EXPECT_EQ(counter.count, 4000);
}

TEST(Mutex, ALockCanBeReleasedAndTakenAgain) {
  Counter counter;
  const auto add_elsewhere = [&] {
    std::thread([&] {
      const MutexLock lock(counter.mutex);
      ++counter.count;
    }).join();
  };
  {
    MutexLock lock(counter.mutex);
    lock.unlock();
    add_elsewhere();
    lock.lock();
    EXPECT_EQ(counter.count, 1);
    lock.unlock();
  }  // an object whose lock is released releases nothing
  add_elsewhere();
  const MutexLock lock(counter.mutex);
  EXPECT_EQ(counter.count, 2);
}

TEST(Condition, WakesAThreadThatThenHoldsTheMutex) {
  Counter counter;
  std::thread other([&] {
    const MutexLock lock(counter.mutex);
    counter.count = 1;
    counter.changed.notify_all();
    while (counter.count != 2) counter.changed.wait(counter.mutex);
    counter.count = 3;
    counter.changed.notify_one();
  });
  {
    MutexLock lock(counter.mutex);
    while (counter.count != 1) counter.changed.wait(counter.mutex);
    counter.count = 2;
    counter.changed.notify_all();
    const auto is_three = [&]() HEDDLE_REQUIRES(counter.mutex) { return counter.count == 3; };
    EXPECT_TRUE(counter.changed.wait_for(counter.mutex, std::chrono::seconds(60), is_three));
  }
  other.join();
}

TEST(Condition, WaitsAreLimited) {
  Counter counter;
  const MutexLock lock(counter.mutex);
  EXPECT_FALSE(counter.changed.wait_for(counter.mutex, milliseconds(0)));
  EXPECT_FALSE(counter.changed.wait_for(counter.mutex, milliseconds(1), [] { return false; }));
  EXPECT_TRUE(counter.changed.wait_for(counter.mutex, milliseconds(0), [] { return true; }));
  counter.count = 1;  // the mutex is held after a wait
}

}  // namespace
}  // namespace heddle
