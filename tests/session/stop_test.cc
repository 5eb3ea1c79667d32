// How runs end early: deadlines and cancellation between tiles and after the last step, and who may use the context meanwhile.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "plugins/probe.h"
#include "session_plan.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

Runtime probe_runtime(int threads) {
  RuntimeOptions options;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/test/probe.so"};
  options.default_plugins = false;
  options.threads = threads;
  auto made = Runtime::create(options);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return *made;
}

// Calls `function` from each tile of the net's operator.
struct Watcher : Probe {
  explicit Watcher(std::function<void(int64_t)> f) : function(std::move(f)) {
    at = [](Probe* self, int64_t tile) {
      ++static_cast<Watcher*>(self)->tiles;
      static_cast<Watcher*>(self)->function(tile);
    };
  }
  std::function<void(int64_t)> function;
  std::atomic<int> tiles{0};
};

void a_while() {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// x [tiles] -> Probe -> y
Net probe_net(Watcher& watcher, int64_t tiles) {
  NetBuilder b("probe");
  Probe* const probe = &watcher;
  b.output(b.add1("Probe", "p", {b.input("x", DType::f32, Shape{tiles})}, {{"probe", reinterpret_cast<int64_t>(probe)}}, "probe"));
  return b.finish();
}

const std::vector<float> zeros(1000, 0);

constexpr int many = 192;

TEST(Stop, CancellationIsHeededBetweenTiles) {
  for (const int threads : {1, 2}) {
    const Runtime r = probe_runtime(threads);
    Context* running = nullptr;
    Watcher watcher([&](int64_t) {
      a_while();
      if (watcher.tiles >= 4) running->cancel();
    });
    Session session = open(r, probe_net(watcher, many));
    auto context = session.prepare();
    ASSERT_TRUE(context.ok()) << context.status().text();
    running = &*context;
    ASSERT_TRUE(context->bind_input(0, zeros.data()).ok());
    EXPECT_EQ(context->run().code(), Code::cancelled);
    EXPECT_LT(watcher.tiles, many / 2) << threads << " threads";
  }
}

TEST(Stop, ADeadlineIsHeededBetweenTiles) {
  for (const int threads : {1, 2}) {
    const Runtime r = probe_runtime(threads);
    Watcher watcher([](int64_t) { a_while(); });
    Session session = open(r, probe_net(watcher, many));
    auto context = session.prepare();
    ASSERT_TRUE(context.ok());
    ASSERT_TRUE(context->bind_input(0, zeros.data()).ok());
    RunOptions hurry;
    hurry.deadline_ns = 1'000'000;
    const Status status = context->run(hurry);
    EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.text();
    EXPECT_LT(watcher.tiles, many / 2) << threads << " threads";
  }
}

// With a single step of a single tile, the only check is the one after it.
TEST(Stop, ResultsThatComeTooLateAreNone) {
  const Runtime r = probe_runtime(1);
  std::atomic<bool> slow{true};
  Watcher watcher([&](int64_t) {
    if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(250));
  });
  Session session = open(r, probe_net(watcher, 1));
  auto context = session.prepare();
  ASSERT_TRUE(context.ok());
  ASSERT_TRUE(context->bind_input(0, zeros.data()).ok());
  RunOptions hurry;
  hurry.deadline_ns = 200'000'000;
  EXPECT_EQ(context->run(hurry).code(), Code::deadline_exceeded);
  EXPECT_EQ(watcher.tiles, 1);
  slow = false;
  EXPECT_TRUE(context->run().ok());
}

TEST(Stop, ANegativeDeadlineHasPassed) {
  for (const int threads : {1, 2}) {
    const Runtime r = probe_runtime(threads);
    Watcher watcher([](int64_t) {});
    Session session = open(r, probe_net(watcher, 8));
    auto context = session.prepare();
    ASSERT_TRUE(context.ok());
    ASSERT_TRUE(context->bind_input(0, zeros.data()).ok());
    for (const int64_t passed : {int64_t{-1}, INT64_MIN}) {
      RunOptions hurry;
      hurry.deadline_ns = passed;
      EXPECT_EQ(context->run(hurry).code(), Code::deadline_exceeded);
      const TensorView x = {DType::f32, Shape{8}, const_cast<float*>(zeros.data())};
      EXPECT_EQ(session.run({x}, hurry).status().code(), Code::deadline_exceeded);
    }
    EXPECT_EQ(watcher.tiles, 0);
    EXPECT_TRUE(context->run().ok());
  }
}

TEST(Stop, ReadingAndWritingVariablesMeetTheirDeadline) {
  NetBuilder b("v");
  b.output(b.add1("Neg", "y", {b.variable("w", blob(Shape{2}, 0, 1))}));
  Session session = open(runtime(), b.finish());
  FairSharedMutex::Hold in_use;
  ASSERT_EQ(in_use.enter(Internals::of(session).variables->turns(), FairSharedMutex::Use::alone), FairSharedMutex::Outcome::entered);
  RunOptions hurry;
  hurry.deadline_ns = 1'000'000;
  std::vector<float> two = {1, 2};
  auto context = session.prepare();
  ASSERT_TRUE(context.ok());
  // In this thread they would wait for themselves.
  EXPECT_EQ(session.read_variable("w").status().code(), Code::busy);
  EXPECT_EQ(session.write_variable("w", {DType::f32, Shape{2}, two.data()}).code(), Code::busy);
  EXPECT_EQ(context->run().code(), Code::busy);
  std::thread other([&] {
    EXPECT_EQ(session.read_variable("w", hurry).status().code(), Code::deadline_exceeded);
    EXPECT_EQ(session.write_variable("w", {DType::f32, Shape{2}, two.data()}, hurry).code(), Code::deadline_exceeded);
    EXPECT_EQ(context->run(hurry).code(), Code::deadline_exceeded);
    std::atomic<bool> done{false};
    std::thread canceller([&] {
      while (!done) context->cancel();  // until the run waits
    });
    EXPECT_EQ(context->run().code(), Code::cancelled);
    done = true;
    canceller.join();
  });
  other.join();
  in_use.leave();
  EXPECT_TRUE(context->run().ok());
}

// The probe calls from inside a run, on the thread that runs and on those that help it.
TEST(Stop, ARunThatAsksForWhatItHoldsIsToldSo) {
  for (const int threads : {1, 2}) {
    const Runtime r = probe_runtime(threads);
    Session* session_of_net = nullptr;
    std::atomic<int> busy{0};
    Watcher watcher([&](int64_t) {
      a_while();
      busy += session_of_net->read_variable("w").status().code() == Code::busy ? 1 : 0;
    });
    NetBuilder b("inside");
    const ValueId w = b.variable("w", blob(Shape{32}, 0, 1));
    Probe* const probe = &watcher;
    b.output(b.add1("Probe", "p", {w}, {{"probe", reinterpret_cast<int64_t>(probe)}}, "probe"));
    Session session = open(r, b.finish());
    session_of_net = &session;
    auto context = session.prepare();
    ASSERT_TRUE(context.ok());
    EXPECT_TRUE(context->run().ok());
    EXPECT_EQ(busy, 32);
  }
}

TEST(Reservation, IsOfWhoCameFirst) {
  const Runtime r = probe_runtime(2);
  std::atomic<bool> begun{false}, go_on{false};
  Watcher watcher([&](int64_t) {
    begun = true;
    while (!go_on) std::this_thread::yield();
  });
  Session session = open(r, probe_net(watcher, 1));
  auto context = session.prepare();
  ASSERT_TRUE(context.ok());
  ASSERT_TRUE(context->bind_input(0, zeros.data()).ok());
  for (int i = 0; i < 20; ++i) {
    begun = go_on = false;
    std::atomic<int> ended{0};
    Status asynchronous;
    ASSERT_TRUE(context
                    ->run_async([&](const Status& status) {
                      asynchronous = status;
                      ++ended;
                    })
                    .ok());
    // The context is reserved from the moment that the call returned, not only when the run has begun.
    EXPECT_EQ(context->run().code(), Code::busy);
    EXPECT_EQ(context->run_async([&](const Status&) { ended += 100; }).code(), Code::busy);
    go_on = true;
    while (ended == 0) std::this_thread::yield();
    EXPECT_TRUE(asynchronous.ok()) << asynchronous.text();
    EXPECT_EQ(ended, 1);
  }
  begun = go_on = false;
  std::thread runner([&] { EXPECT_TRUE(context->run().ok()); });
  while (!begun) std::this_thread::yield();
  EXPECT_EQ(context->run_async({}).code(), Code::busy);
  go_on = true;
  runner.join();
}

TEST(IdleMemory, GoesWithTheLastSession) {
  const Runtime r = runtime();
  {
    Session one = open(r, convolution_net());
    {
      Session other = open(r, convolution_net(4));
      ASSERT_TRUE(other.prepare().ok());
    }
    EXPECT_GT(Internals::of(r).workspaces.idle_bytes(), 0);
  }
  EXPECT_EQ(Internals::of(r).workspaces.idle_bytes(), 0);
  // A context also keeps it, since it holds its session.
  auto context = open(r, convolution_net()).prepare();
  ASSERT_TRUE(context.ok());
  {
    Session passing = open(r, convolution_net());
    ASSERT_TRUE(passing.prepare().ok());
  }
  EXPECT_GT(Internals::of(r).workspaces.idle_bytes(), 0);
  Runtime(r).trim();
  EXPECT_EQ(Internals::of(r).workspaces.idle_bytes(), 0);
}

TEST(IdleExecutions, AreBounded) {
  const Runtime r = runtime();
  SessionOptions options;
  options.idle_contexts = 3;
  Session session = open(r, convolution_net(), options);
  {
    std::vector<Context> burst;
    for (int i = 0; i < 10; ++i) burst.push_back(std::move(*session.prepare()));
  }
  const auto entry = last_plan_entry(session);
  {
    const MutexLock lock(entry->mutex);
    const bool has_last = entry->last_idle.exchange() != nullptr;
    EXPECT_EQ(entry->idle.size() + (has_last ? 1 : 0), 3u);
  }
  options.idle_contexts = -1;
  EXPECT_EQ(r.open(convolution_net(), options).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace heddle
