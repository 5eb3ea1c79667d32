// A process that forks: the child has none of its parent's threads, and every call of it returns.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

// Returns the result of `child` in a forked child; -1 if it did not end by itself within a minute.
template <class Child>
int forked(const Child& child) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(60);
    ::_exit(child());
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Fork, TheChildIsToldAndReturns) {
  const auto x = blob(Shape{4, 8, 14, 14}, -1, 0.01f);
  auto runtime = std::make_unique<Runtime>(testing_nets::runtime(2));
  auto session = std::make_unique<Session>(open(*runtime, convolution_net(4)));
  Internals::of(*session).scheduler.mode = ScheduleMode::parallel;
  auto context = std::make_unique<Context>(std::move(*session->prepare()));
  ASSERT_TRUE(context->bind_input(0, x->data).ok());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(context->run().ok());
  std::atomic<bool> done{false};
  ASSERT_TRUE(context->run_async([&](const Status&) { done = true; }).ok());
#ifdef __SANITIZE_ADDRESS__
  // GCC 12's allocator for it does not survive a fork in the middle of another thread's allocation: the child waits for its locks.
  while (!done) std::this_thread::yield();
#endif
  const int result = forked([&] {
    const TensorView view = {DType::f32, Shape{4, 8, 14, 14}, const_cast<std::byte*>(x->data)};
    if (context->run().code() != Code::forked) return 1;
    if (context->run_async([](const Status&) {}).code() != Code::forked) return 2;
    if (session->prepare().status().code() != Code::forked) return 3;
    if (session->run({view}).status().code() != Code::forked) return 4;
    if (runtime->open("net.heddle").status().code() != Code::forked) return 5;
    RuntimeOptions threads;
    threads.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so"};
    threads.default_plugins = false;
    threads.threads = 2;
    if (Runtime::create(threads).status().code() != Code::forked) return 6;
    context.reset();
    session.reset();
    runtime.reset();
    // A runtime of one thread needs none of the missing threads.
    Session own = open(testing_nets::runtime(1), convolution_net(4));
    return own.run({view}).ok() ? 0 : 7;
  });
  EXPECT_EQ(result, 0);
  while (!done) std::this_thread::yield();
  EXPECT_TRUE(context->run().ok());
}

TEST(Fork, ARuntimeOfTheChildsOwnWorks) {
  const auto run_in_child = [] {
    return forked([] {
      const auto x = blob(Shape{1, 8, 14, 14}, -1, 0.01f);
      Session session = open(runtime(2), convolution_net());
      return session.run({{DType::f32, Shape{1, 8, 14, 14}, const_cast<std::byte*>(x->data)}}).ok() ? 0 : 1;
    });
  };
  // It runs in a process of its own, whose parent's threads were never made.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(::_exit(run_in_child()), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace heddle
