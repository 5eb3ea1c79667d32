// Tests of FairSharedMutex: order of arrival, waits that end, and threads that would wait for themselves.
#include "base/threads/fair_shared_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/threads/clock.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

void until_waiting(const FairSharedMutex& turns, size_t count) {
  while (turns.waiting() != count) std::this_thread::yield();
}

TEST(FairSharedMutex, AreGivenInOrderOfArrival) {
  FairSharedMutex turns;
  std::mutex mutex;
  std::string order;
  std::vector<std::thread> threads;
  {
    FairSharedMutex::Hold first;
    ASSERT_EQ(first.enter(turns, FairSharedMutex::Use::alone), FairSharedMutex::Outcome::entered);
    const std::string arrivals = "rwrrwr";
    for (const char use : arrivals) {
      threads.emplace_back([&, use] {
        FairSharedMutex::Hold hold;
        EXPECT_EQ(hold.enter(turns, use == 'w' ? FairSharedMutex::Use::alone : FairSharedMutex::Use::shared),
                  FairSharedMutex::Outcome::entered);
        const std::lock_guard lock(mutex);
        order += use;
      });
      until_waiting(turns, threads.size());
    }
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(order, "rwrrwr");
}

// Readers come and go all the time, and never all at once: a writer is still admitted before readers that arrive after it.
TEST(FairSharedMutex, ReadersBehindAWriterDoNotOvertakeIt) {
  FairSharedMutex turns;
  FairSharedMutex::Hold early;
  ASSERT_EQ(early.enter(turns, FairSharedMutex::Use::shared), FairSharedMutex::Outcome::entered);
  std::atomic<int> readers_in{0}, readers_before{-1};
  std::thread writer([&] {
    FairSharedMutex::Hold hold;
    EXPECT_EQ(hold.enter(turns, FairSharedMutex::Use::alone), FairSharedMutex::Outcome::entered);
    readers_before = readers_in.load();
  });
  until_waiting(turns, 1);
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      FairSharedMutex::Hold hold;
      EXPECT_EQ(hold.enter(turns, FairSharedMutex::Use::shared), FairSharedMutex::Outcome::entered);
      ++readers_in;
    });
    while (turns.waiting() != 2 + static_cast<size_t>(i) && readers_in == 0) std::this_thread::yield();
  }
  EXPECT_EQ(readers_in, 0);
  early.leave();
  writer.join();
  for (std::thread& t : readers) t.join();
  EXPECT_EQ(readers_before, 0);
}

TEST(FairSharedMutex, WaitsEndWithDeadlineAndCancellation) {
  FairSharedMutex turns;
  FairSharedMutex::Hold first;
  ASSERT_EQ(first.enter(turns, FairSharedMutex::Use::shared), FairSharedMutex::Outcome::entered);
  std::atomic<bool> cancelled{false};
  std::thread other([&] {
    FairSharedMutex::Hold late;
    EXPECT_EQ(late.enter(turns, FairSharedMutex::Use::alone, Interruption(ticks() + 1)), FairSharedMutex::Outcome::late);
    EXPECT_EQ(late.enter(turns, FairSharedMutex::Use::alone, Interruption(1)), FairSharedMutex::Outcome::late);
    // A writer that gave up does not delay readers.
    EXPECT_EQ(late.enter(turns, FairSharedMutex::Use::shared), FairSharedMutex::Outcome::entered);
    late.leave();
    EXPECT_EQ(late.enter(turns, FairSharedMutex::Use::alone, Interruption(0, &cancelled)), FairSharedMutex::Outcome::cancelled);
  });
  until_waiting(turns, 1);  // the last of them
  cancelled = true;
  turns.wake();
  other.join();
}

TEST(FairSharedMutex, AThreadDoesNotWaitForItself) {
  FairSharedMutex turns, others;
  FairSharedMutex::Hold outer, inner, third;
  ASSERT_EQ(outer.enter(turns, FairSharedMutex::Use::shared), FairSharedMutex::Outcome::entered);
  ASSERT_EQ(inner.enter(others, FairSharedMutex::Use::alone), FairSharedMutex::Outcome::entered);
  EXPECT_EQ(third.enter(turns, FairSharedMutex::Use::shared), FairSharedMutex::Outcome::held);
  EXPECT_EQ(third.enter(others, FairSharedMutex::Use::alone), FairSharedMutex::Outcome::held);
  // A thread that helps this one does not wait for it either.
  FairSharedMutex::Hold* const holds = FairSharedMutex::held_here();
  std::thread helper([&] {
    const FairSharedMutex::Helping helping(holds);
    FairSharedMutex::Hold hold;
    EXPECT_EQ(hold.enter(turns, FairSharedMutex::Use::alone), FairSharedMutex::Outcome::held);
  });
  helper.join();
  outer.leave();  // out of order
  EXPECT_EQ(third.enter(turns, FairSharedMutex::Use::alone), FairSharedMutex::Outcome::entered);
}

TEST(FairSharedMutex, ErrorsNameWhatWasWaitedFor) {
  EXPECT_TRUE(turn_status(FairSharedMutex::Outcome::entered, "shared memory").ok());
  const Status late = turn_status(FairSharedMutex::Outcome::late, "shared memory");
  EXPECT_EQ(late.code(), Code::deadline_exceeded);
  EXPECT_NE(late.text().find("the deadline passed during the wait for shared memory"), std::string::npos) << late.text();
  const Status cancelled = turn_status(FairSharedMutex::Outcome::cancelled, "the session's variables");
  EXPECT_EQ(cancelled.code(), Code::cancelled);
  EXPECT_NE(cancelled.text().find("waited for the session's variables"), std::string::npos) << cancelled.text();
  const Status held = turn_status(FairSharedMutex::Outcome::held, "shared memory");
  EXPECT_EQ(held.code(), Code::busy);
  EXPECT_NE(held.text().find("holds shared memory"), std::string::npos) << held.text();
}

// Evaluators run without a pause; each write is still admitted.
TEST(VariableTurns, WritersAreNotStarvedByReaders) {
  const Runtime r = runtime();
  NetBuilder b("evaluate");
  const Shape shape{64, 64};
  ValueId y = b.variable("w", blob(shape, 0, 0.01f));
  for (int i = 0; i < 8; ++i) y = b.add1("MatMul", "m" + std::to_string(i), {y, y});
  b.output(y);
  Session session = open(r, b.finish());
  std::atomic<bool> done{false};
  std::atomic<int> failed{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i)
    readers.emplace_back([&] {
      auto context = session.prepare();
      while (!done) failed += context.ok() && context->run().ok() ? 0 : 1;
    });
  const auto value = blob(shape, 0, 0.02f);
  RunOptions patient;  // only so that starvation ends, and with a text
  patient.deadline_ns = 60'000'000'000;
  for (int i = 0; i < 100; ++i) {
    const Status status = session.write_variable("w", {DType::f32, shape, const_cast<std::byte*>(value->data)}, patient);
    EXPECT_TRUE(status.ok()) << status.text();
  }
  done = true;
  for (std::thread& t : readers) t.join();
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace heddle
