// Memory that contexts share: its size is the maximum of their needs, it serves one run at a time, also runs of the pool.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

struct Prepared {
  Session session;
  std::vector<float> input;
  std::vector<float> expected;
};

Prepared prepared(const Runtime& r, int64_t batch) {
  Prepared p = {open(r, convolution_net(batch)), std::vector<float>(static_cast<size_t>(batch * 8 * 14 * 14)), {}};
  for (size_t i = 0; i < p.input.size(); ++i) p.input[i] = static_cast<float>(i % 13) * 0.1f;
  auto result = p.session.run({{DType::f32, Shape{batch, 8, 14, 14}, p.input.data()}});
  EXPECT_TRUE(result.ok()) << result.status().text();
  const auto* data = static_cast<const float*>((*result)[0].data());
  p.expected.assign(data, data + batch * 5);
  return p;
}

bool right(Context& context, const Prepared& p) {
  EXPECT_TRUE(context.bind_input(0, p.input.data()).ok());
  const Status status = context.run();
  EXPECT_TRUE(status.ok()) << status.text();
  const TensorView out = context.output(0);
  return std::memcmp(out.data, p.expected.data(), p.expected.size() * sizeof(float)) == 0;
}

TEST(SharedMemory, HoldsTheMaximumOfItsContextsNotTheSum) {
  const Runtime r = runtime(2);
  Prepared small = prepared(r, 1), large = prepared(r, 4);
  const SharedMemory memory;
  EXPECT_EQ(memory.bytes(), 0);
  auto first = small.session.prepare_on(memory);
  ASSERT_TRUE(first.ok()) << first.status().text();
  EXPECT_EQ(memory.bytes(), first->planned_bytes());
  ASSERT_TRUE(right(*first, small));
  // The memory grows and moves; the first context follows.
  auto second = large.session.prepare_on(memory);
  ASSERT_TRUE(second.ok()) << second.status().text();
  EXPECT_GT(second->planned_bytes(), first->planned_bytes());
  EXPECT_EQ(memory.bytes(), second->planned_bytes());
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(right(*first, small));
    EXPECT_TRUE(right(*second, large));
  }
}

TEST(SharedMemory, BoundOutputsStayWhereTheyAreWhenTheMemoryMoves) {
  const Runtime r = runtime(1);
  Prepared small = prepared(r, 1), large = prepared(r, 4);
  const SharedMemory memory;
  auto first = small.session.prepare_on(memory);
  ASSERT_TRUE(first.ok());
  std::vector<float> mine(5, -1);
  ASSERT_TRUE(first->bind_output(0, mine.data()).ok());
  auto second = large.session.prepare_on(memory);
  ASSERT_TRUE(second.ok());
  ASSERT_TRUE(first->bind_input(0, small.input.data()).ok());
  ASSERT_TRUE(first->run().ok());
  EXPECT_EQ(mine, small.expected);
  EXPECT_EQ(first->output(0).data, mine.data());
}

TEST(SharedMemory, RunsOfManyThreadsTakeTurns) {
  const Runtime r = runtime(1);
  const SharedMemory memory;
  std::vector<Prepared> nets;
  std::vector<Context> contexts;
  for (int64_t batch = 1; batch <= 4; ++batch) {
    nets.push_back(prepared(r, batch));
    auto context = nets.back().session.prepare_on(memory);
    ASSERT_TRUE(context.ok()) << context.status().text();
    ASSERT_TRUE(context->bind_input(0, nets.back().input.data()).ok());
    contexts.push_back(std::move(*context));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < contexts.size(); ++t)
    threads.emplace_back([&, t] {
      std::vector<float> out(nets[t].expected.size());
      if (!contexts[t].bind_output(0, out.data()).ok()) ++wrong;
      for (int i = 0; i < 50; ++i)
        if (!contexts[t].run().ok() || out != nets[t].expected) ++wrong;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

// Runs that wait for memory in use are cancelled like running ones.
TEST(SharedMemory, WaitingRunsMeetTheirDeadlineAndAreCancelled) {
  const Runtime r = runtime(1);
  const SharedMemory memory;
  Prepared p = prepared(r, 1);
  auto context = p.session.prepare_on(memory);
  ASSERT_TRUE(context.ok()) << context.status().text();
  ASSERT_TRUE(context->bind_input(0, p.input.data()).ok());
  // Another thread holds the memory: this one would get the error that it holds the memory itself.
  std::atomic<bool> in_use{false}, go{false};
  std::thread holder([&] {
    FairSharedMutex::Hold turn;
    EXPECT_EQ(turn.enter(Internals::workspace(memory)->turns(), FairSharedMutex::Use::alone), FairSharedMutex::Outcome::entered);
    in_use = true;
    while (!go) std::this_thread::yield();
  });
  while (!in_use) std::this_thread::yield();
  RunOptions hurry;
  hurry.deadline_ns = 1'000'000;
  EXPECT_EQ(context->run(hurry).code(), Code::deadline_exceeded);
  hurry.deadline_ns = 1;
  EXPECT_EQ(context->run(hurry).code(), Code::deadline_exceeded);
  std::atomic<bool> done{false};
  std::thread waiting([&] {
    EXPECT_EQ(context->run().code(), Code::cancelled);
    done = true;
  });
  while (!done) context->cancel();  // until the other thread waits
  waiting.join();
  go = true;
  holder.join();
  EXPECT_TRUE(right(*context, p));
}

TEST(SharedMemory, RunsOneAfterTheOtherUseOneMemoryOfTheRuntime) {
  const Runtime r = runtime(1);
  const Session open_all_along = open(r, convolution_net());  // idle memory is freed with the last session
  int64_t largest = 0;
  for (int64_t batch = 1; batch <= 4; ++batch) {
    Prepared p = prepared(r, batch);
    auto context = p.session.prepare();
    ASSERT_TRUE(context.ok());
    largest = std::max(largest, context->planned_bytes());
  }
  EXPECT_EQ(Internals::of(r).workspaces.idle_bytes(), largest);
  Session last = open(r, convolution_net());
  last.trim();
  EXPECT_EQ(Internals::of(r).workspaces.idle_bytes(), 0);
}

// A context of 17 kB once took all the idle memory of one of 2.2 MB: a context holds what was planned for it, or at most twice that.
TEST(SharedMemory, ASmallContextLeavesTheMemoryOfALargeOneToOthers) {
  const Runtime r = runtime(1);
  const Session open_all_along = open(r, convolution_net());
  int64_t large = 0;
  {
    Prepared p = prepared(r, 200);
    auto context = p.session.prepare();
    ASSERT_TRUE(context.ok());
    EXPECT_EQ(context->held_bytes(), context->planned_bytes());
    large = context->planned_bytes();
  }
  Prepared p = prepared(r, 1);
  auto small = p.session.prepare();
  ASSERT_TRUE(small.ok());
  ASSERT_GT(large, 20 * small->planned_bytes());
  EXPECT_EQ(small->held_bytes(), small->planned_bytes());
  EXPECT_EQ(Internals::of(r).workspaces.idle_bytes(), large) << "it is there for the next large one";
  Prepared q = prepared(r, 180);
  auto next = q.session.prepare();
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(next->held_bytes(), large) << "at most twice as large: it fits";
  EXPECT_EQ(Internals::of(r).workspaces.idle_bytes(), 0);
  EXPECT_TRUE(right(*small, p));
  EXPECT_TRUE(right(*next, q));
}

// Sizes that follow one another do not add up: of those within a factor of two one is kept.
TEST(SharedMemory, IdleMemoryOfManySizesIsAtMostTwiceTheLargest) {
  const Runtime r = runtime(1);
  const Session open_all_along = open(r, convolution_net());
  int64_t largest = 0;
  for (int64_t batch = 1; batch <= 48; batch += batch < 8 ? 1 : 4) {
    Prepared p = prepared(r, batch);
    auto context = p.session.prepare();
    ASSERT_TRUE(context.ok());
    EXPECT_LE(context->held_bytes(), 2 * context->planned_bytes());
    largest = std::max(largest, context->planned_bytes());
  }
  for (int64_t batch = 47; batch > 0; batch -= 3) {
    Prepared p = prepared(r, batch);
    auto context = p.session.prepare();
    ASSERT_TRUE(context.ok());
    EXPECT_LE(context->held_bytes(), 2 * context->planned_bytes());
  }
  EXPECT_LE(Internals::of(r).workspaces.idle_bytes(), 2 * largest);
}

}  // namespace
}  // namespace heddle
