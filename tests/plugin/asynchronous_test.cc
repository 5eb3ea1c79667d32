// Steps that their kernels only start (tests/plugins/started.cc): completed by other threads, early, late, twice, never, in any order.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "heddle/session.h"
#include "plugins.h"
#include "small_nets.h"
#include "started_crew.h"

namespace heddle {
namespace {

using testing_nets::blob;
using testing_nets::view;

constexpr int64_t elements = 40'000;  // several tiles

// Up to 24 operators, each on earlier values: asynchronous ones, numbered, among plain and tiled ones.
Net random_net(uint64_t seed, Crew& crew, int64_t* asynchronous) {
  std::mt19937_64 random(seed);
  NetBuilder b("random");
  std::vector<ValueId> values = {b.input("x", DType::f32, Shape{elements})};
  std::vector<bool> read = {true};
  *asynchronous = 0;
  const auto any = [&] {
    const size_t i = values.size() - 1 - random() % std::min<size_t>(values.size(), 6);
    read[i] = true;
    return values[i];
  };
  const uint64_t count = 4 + random() % 20;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string name = "n" + std::to_string(i);
    const ValueId first = any();
    ValueId made;
    if (const uint64_t kind = random() % 3; kind == 0 || i == 1)
      made =
          started(b, name, random() % 2 == 0 ? std::vector<ValueId>{first} : std::vector<ValueId>{first, any()}, crew, (*asynchronous)++);
    else if (kind == 1)
      made = b.add1("Neg", name, {first});
    else
      made = b.add1("Softmax", name, {b.add1("Add", name + "sum", {first, any()})});
    values.push_back(made);
    read.push_back(false);
  }
  for (size_t i = 0; i < values.size(); ++i)
    if (!read[i]) b.output(values[i]);
  return b.finish();
}

TEST(Asynchronous, AThousandGraphsGiveTheResultsOfTheSerialRun) {
  const Runtime serial = runtime_on(nullptr, 1), parallel = runtime_on(nullptr, 2);
  std::vector<float> x(elements);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) - 8;
  const std::vector<TensorView> inputs = {view(x.data(), DType::f32, Shape{elements})};
  int failed = 0, stopped = 0, twice = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Crew crew(seed);
    int64_t asynchronous = 0;
    const Net net = random_net(seed, crew, &asynchronous);
    crew.fate = [](int64_t) { return Fate::early; };
    Session one = testing_nets::open(serial, net), both = testing_nets::open(parallel, net);
    const auto expected = one.run(inputs);
    ASSERT_TRUE(expected.ok()) << expected.status().text();
    auto context = both.prepare();
    ASSERT_TRUE(context.ok()) << context.status().text();
    ASSERT_TRUE(context->bind_input(0, x.data()).ok());
    const auto good = [&](int64_t number) { return static_cast<Fate>((static_cast<uint64_t>(number) * 7 + seed) % 3); };
    if (asynchronous > 0 && seed % 5 < 3) {
      const int64_t bad = static_cast<int64_t>(seed % static_cast<uint64_t>(asynchronous));
      const Fate fate = seed % 5 == 0 ? Fate::fails : seed % 5 == 1 ? Fate::refused : Fate::aborted;
      crew.fate = [&](int64_t number) { return number == bad ? fate : good(number); };
      RunOptions options;
      if (fate == Fate::aborted) options.deadline_ns = 3'000'000;
      const Status status = context->run(options);
      ASSERT_FALSE(status.ok());
      if (fate == Fate::aborted)
        EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.text();
      else
        EXPECT_NE(status.text().find("as it was told to"), std::string::npos) << status.text();
      EXPECT_EQ(crew.under_way, 0) << "the run is over, and a step is not";
      ++(fate == Fate::aborted ? stopped : failed);
    }
    crew.fate = good;
    const Status status = context->run();
    ASSERT_TRUE(status.ok()) << status.text();
    for (size_t i = 0; i < context->output_count(); ++i) {
      const TensorView y = context->output(i);
      ASSERT_EQ(std::memcmp(y.data, (*expected)[i].data(), static_cast<size_t>(y.byte_size())), 0) << "output " << i;
    }
    twice += crew.refused_twice;
  }
  EXPECT_GT(failed, 100);
  EXPECT_GT(stopped, 100);
  EXPECT_GT(twice, 100);
}

// x -> Started -> Neg
Net held_net(Crew& crew) {
  NetBuilder b("held");
  b.output(b.add1("Neg", "y", {started(b, "held", {b.input("x", DType::f32, Shape{8})}, crew, 0)}));
  return b.finish();
}

TEST(Asynchronous, AHundredRunsAreInFlightOnTwoThreadsAndHoldNone) {
  CountingExecutor executor(2);
  Crew crew(7);
  crew.fate = [&](int64_t) { return Fate::held; };
  {
    const Runtime runtime = runtime_on(&executor, 3);
    Session session = testing_nets::open(runtime, held_net(crew));
    const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
    std::vector<Context> contexts = contexts_of(session, 100, x.data());
    std::atomic<int> done{0}, good{0};
    for (int round = 0; round < 3; ++round) {
      done = good = 0;
      for (Context& context : contexts)
        ASSERT_TRUE(context
                        .run_async([&](const Status& status) {
                          good += status.ok() ? 1 : 0;
                          ++done;
                        })
                        .ok());
      wait_until([&] { return crew.under_way == 100; });
      wait_until([&] { return executor.at_work() == 0; });  // no thread waits
      EXPECT_EQ(done, 0);
      crew.release();
      wait_until([&] { return done == 100; });
      EXPECT_EQ(good, 100);
      for (const Context& context : contexts) EXPECT_EQ(static_cast<const float*>(context.output(0).data)[2], -3);
    }
    // Deadlines and cancellations end runs that occupy no thread.
    done = good = 0;
    std::atomic<int> late{0}, cancelled{0};
    for (size_t i = 0; i < contexts.size(); ++i) {
      RunOptions options;
      if (i % 2 == 0) options.deadline_ns = 20'000'000;
      ASSERT_TRUE(contexts[i]
                      .run_async(
                          [&](const Status& status) {
                            late += status.code() == Code::deadline_exceeded ? 1 : 0;
                            cancelled += status.code() == Code::cancelled ? 1 : 0;
                            ++done;
                          },
                          options)
                      .ok());
    }
    wait_until([&] { return done == 50; });
    for (Context& context : contexts) context.cancel();
    wait_until([&] { return done == 100; });
    EXPECT_EQ(late, 50);
    EXPECT_EQ(cancelled, 50);
    EXPECT_GE(crew.aborted, 100);
  }
}

// Keeps the tokens of all steps that it was started for, and completes with each of them from two threads while the next step runs.
class Hoarder : public Starter {
 public:
  Hoarder() : Starter{begin, [](Starter*, const heddle_run_context*, int64_t) {}} {}
  int accepted = 0, refused = 0;

 private:
  static heddle_status begin(Starter* self, const heddle_run_context* context, int64_t) {
    auto& hoarder = *static_cast<Hoarder*>(self);
    const auto complete_old = [&](int* accepted) {
      for (const heddle_call* old : hoarder.tokens_)
        *accepted += context->host->complete(old, HEDDLE_ERROR_INTERNAL, "of another run", 14) == HEDDLE_OK ? 1 : 0;
    };
    int here = 0, there = 0;
    std::thread other([&] { complete_old(&there); });
    complete_old(&here);
    other.join();
    hoarder.accepted += here + there;
    hoarder.refused += 2 * static_cast<int>(hoarder.tokens_.size()) - here - there;
    hoarder.tokens_.push_back(context->call);
    for (int64_t i = 0; i < context->outputs[0]->element_count; ++i)
      static_cast<float*>(context->outputs[0]->data)[i] = static_cast<const float*>(context->inputs[0]->data)[i];
    EXPECT_EQ(context->host->complete(context->call, HEDDLE_OK, nullptr, 0), HEDDLE_OK) << "the step was complete already";
    return HEDDLE_OK;
  }
  std::vector<const heddle_call*> tokens_;
};

// This holds also for contexts and sessions that were destroyed.
TEST(Asynchronous, ATokenOfAnEarlierRunCompletesNothing) {
  const Runtime runtime = runtime_on(nullptr, 2);
  Hoarder hoarder;
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
  int runs = 0;
  for (int round = 0; round < 5; ++round) {
    NetBuilder b("hoards");
    const ValueId held =
        b.add1("Started", "held", {b.input("x", DType::f32, Shape{8})},
               {{"starter", reinterpret_cast<int64_t>(static_cast<Starter*>(&hoarder))}, {"number", int64_t{0}}}, "started");
    b.output(b.add1("Neg", "y", {held}));
    Session session = testing_nets::open(runtime, b.finish());
    auto context = session.prepare();
    ASSERT_TRUE(context.ok()) << context.status().text();
    ASSERT_TRUE(context->bind_input(0, x.data()).ok());
    for (int run = 0; run < 20; ++run, ++runs) {
      const Status status = context->run();
      ASSERT_TRUE(status.ok()) << status.text();
      ASSERT_EQ(static_cast<const float*>(context->output(0).data)[2], -3);
    }
  }
  EXPECT_EQ(hoarder.accepted, 0);
  EXPECT_EQ(hoarder.refused, runs * (runs - 1));
}

// Runs with a turn keep their thread: runs that wait for the turn hold all other threads, and no run could continue.
TEST(Asynchronous, RunsThatTakeTurnsEnd) {
  CountingExecutor executor(1);
  Crew crew(11);
  {
    const Runtime runtime = runtime_on(&executor, 2);
    NetBuilder b("updates");
    const ValueId w = b.variable("w", blob(Shape{8}, 0, 0));
    const ValueId g = started(b, "g", {b.input("x", DType::f32, Shape{8})}, crew, 0);
    const ValueId next = b.add1("AccumulateAdd", "next", {w, g}, {}, "heddle");
    b.updates(next, w);
    b.output(next);
    Session session = testing_nets::open(runtime, b.finish());
    const std::vector<float> x(8, 1);
    run_by_turns(session, x.data());
    EXPECT_EQ(static_cast<const float*>(session.read_variable("w")->data())[1], 80);
  }
}

// An asynchronous step in a subnet is stopped when the run around it is.
TEST(Asynchronous, StepsOfSubnetsEndWithTheRunAroundThem) {
  const Runtime runtime = runtime_on(nullptr, 2);
  Crew crew(13);
  NetBuilder then_branch("then"), else_branch("else"), b("outer");
  then_branch.output(started(then_branch, "inside", {then_branch.input("x", DType::f32, Shape{8})}, crew, 0));
  else_branch.output(else_branch.add1("Neg", "neg", {else_branch.input("x", DType::f32, Shape{8})}));
  const ValueId c = b.input("c", DType::boolean, Shape{}), x = b.input("x", DType::f32, Shape{8});
  b.output(
      b.add1("If", "if", {c, x}, {{"then_branch", testing_nets::subnet(then_branch)}, {"else_branch", testing_nets::subnet(else_branch)}}));
  Session session = testing_nets::open(runtime, b.finish());
  auto context = session.prepare();
  ASSERT_TRUE(context.ok()) << context.status().text();
  const bool yes = true;
  const std::vector<float> numbers(8, 2);
  ASSERT_TRUE(context->bind_input(0, &yes).ok() && context->bind_input(1, numbers.data()).ok());
  ASSERT_TRUE(context->run().ok());
  EXPECT_EQ(static_cast<const float*>(context->output(0).data)[0], 3);
  crew.fate = [](int64_t) { return Fate::aborted; };
  RunOptions options;
  options.deadline_ns = 10'000'000;
  Status status = context->run(options);
  EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.text();
  std::thread canceller([&] {
    wait_until([&] { return crew.under_way == 1; });
    context->cancel();
  });
  status = context->run();
  canceller.join();
  EXPECT_EQ(status.code(), Code::cancelled) << status.text();
  EXPECT_EQ(crew.under_way, 0);
  // A step that does not complete when it is requested to end is abandoned, and the context is busy until it completes.
  crew.fate = [](int64_t) { return Fate::held; };
  crew.abort = [](Starter*, const heddle_run_context*, int64_t) {};
  status = context->run(options);
  EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.text();
  EXPECT_EQ(context->run().code(), Code::busy);
  crew.release();
  crew.fate = [](int64_t) { return Fate::late; };
  wait_until([&] { return context->run().ok(); });
}

// A step that does not complete and ignores abort: the run ends without it, and the context is busy until it completes.
TEST(Asynchronous, OneThatNeverCompletesIsGivenUp) {
  const Runtime runtime = runtime_on(nullptr, 2);
  Crew crew(3);
  crew.fate = [](int64_t) { return Fate::held; };
  crew.abort = [](Starter*, const heddle_run_context*, int64_t) {};
  Session session = testing_nets::open(runtime, held_net(crew));
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
  auto context = session.prepare();
  ASSERT_TRUE(context.ok()) << context.status().text();
  ASSERT_TRUE(context->bind_input(0, x.data()).ok());
  RunOptions options;
  options.deadline_ns = 100'000'000;
  Status status = context->run(options);
  EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.text();
  ASSERT_EQ(crew.under_way, 1) << "the deadline passed before the step began: the next run would wait for it for ever";
  EXPECT_NE(status.text().find("operator \"held\" (started::Started) has not completed"), std::string::npos) << status.text();
  status = context->run();
  EXPECT_EQ(status.code(), Code::busy) << status.text();
  crew.release();
  wait_until([&] { return crew.under_way == 0; });
  crew.fate = [](int64_t) { return Fate::late; };
  wait_until([&] { return context->run().ok(); });
  EXPECT_EQ(static_cast<const float*>(context->output(0).data)[0], -2);
}

TEST(Asynchronous, OutputsOfUnknownExtentsAreAllocatedWhenTheyAreFound) {
  const Runtime runtime = runtime_on(nullptr, 2);
  NetBuilder b("found");
  const ValueId found = b.add1("Found", "found", {b.input("x", DType::f32, Shape{6})}, {}, "started");
  b.output(b.add1("Found", "again", {b.add1("Neg", "neg", {b.add1("Neg", "turned", {found})})}, {}, "started"));
  Session session = testing_nets::open(runtime, b.finish());
  for (const auto& [x, y] : {std::pair<std::vector<float>, std::vector<float>>{{1, -2, 3, -4, 5, -6}, {1, 3, 5}},
                             {{-1, -1, -1, -1, -1, -1}, {}},
                             {{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}},
                             {{-1, 7, -1, -1, -1, -1}, {7}}}) {
    const auto out = session.run({view(x.data(), DType::f32, Shape{6})});
    ASSERT_TRUE(out.ok()) << out.status().text();
    EXPECT_EQ(numbers(*out)[0], y);
  }
}

// A step that found nothing to do completes without having been started; it is not requested to end when the run fails later.
TEST(Asynchronous, AStepWithoutTilesIsNotToldToEnd) {
  for (const int threads : {1, 2}) {
    const Runtime runtime = runtime_on(nullptr, threads);
    Crew crew(17);
    NetBuilder b("nothing");
    const ValueId x = b.input("x", DType::f32, Shape{6});
    const ValueId idle = started(b, "idle", {b.add1("Found", "found", {x}, {}, "started")}, crew, 0);
    const ValueId both = b.add1("Concat", "both", {idle, x}, {{"axis", int64_t{0}}});
    b.output(started(b, "fails", {both}, crew, 1));
    Session session = testing_nets::open(runtime, b.finish());
    auto context = session.prepare();
    ASSERT_TRUE(context.ok()) << context.status().text();
    const std::vector<float> none(6, -1), some = {1, -1, -1, -1, -1, -1};
    for (const bool fails : {true, false, true, false}) {
      crew.fate = [&](int64_t number) { return number == 1 && fails ? Fate::fails : Fate::late; };
      ASSERT_TRUE(context->bind_input(0, none.data()).ok());
      const Status status = context->run();
      EXPECT_EQ(status.ok(), !fails) << status.text();
      EXPECT_EQ(fails, status.text().find("failed, as it was told to") != std::string::npos) << status.text();
      EXPECT_EQ(crew.aborted, 0);
      ASSERT_TRUE(context->bind_input(0, some.data()).ok());
      crew.fate = [](int64_t) { return Fate::late; };
      const Status next = context->run();
      ASSERT_TRUE(next.ok()) << next.text();
      EXPECT_EQ(*static_cast<const float*>(context->output(0).data), 3);  // finish adds one in each of both
    }
  }
}

// This is the example of docs/operator_guide.md.
TEST(Asynchronous, AStepWaitsForASocket) {
  const Runtime runtime = runtime_on(nullptr, 2);
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  NetBuilder b("received");
  b.output(b.add1("Received", "received", {b.input("like", DType::f32, Shape{4})}, {{"socket", int64_t{ends[0]}}}, "started"));
  Session session = testing_nets::open(runtime, b.finish());
  const float like[4] = {}, sent[4] = {1, 2, 3, 4};
  const std::vector<TensorView> inputs = {view(like, DType::f32, Shape{4})};
  std::thread peer([&] {
    for (size_t i = 0; i < sizeof(sent); ++i) EXPECT_EQ(::write(ends[1], reinterpret_cast<const char*>(sent) + i, 1), 1);
  });
  auto out = session.run(inputs);
  peer.join();
  ASSERT_TRUE(out.ok()) << out.status().text();
  EXPECT_EQ(numbers(*out)[0], (std::vector<float>{1, 2, 3, 4}));
  RunOptions options;
  options.deadline_ns = 5'000'000;
  out = session.run(inputs, options);
  EXPECT_EQ(out.status().code(), Code::deadline_exceeded) << out.status().text();
  EXPECT_EQ(::write(ends[1], sent, 6), 6);
  ::close(ends[1]);
  out = session.run(inputs);
  EXPECT_EQ(out.status().code(), Code::kernel_failed);
  EXPECT_NE(out.status().text().find("the peer closed the socket with 10 bytes to come"), std::string::npos) << out.status().text();
  ::close(ends[0]);
}

// Traced runs wait for each step, so that the observer sees its results.
TEST(Asynchronous, ObservedRunsSeeEachStepWhenItIsDone) {
  const Runtime runtime = runtime_on(nullptr, 2);
  Crew crew(5);
  Session session = testing_nets::open(runtime, held_net(crew));
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> seen;
  const StepObserver observer = [&](StepView& step) {
    const auto y = step.read_output(0);
    if (y.ok()) seen.push_back(*static_cast<const float*>(y->data));
    return Status();
  };
  RunOptions options;
  options.observer = &observer;
  auto out = session.run({view(x.data(), DType::f32, Shape{8})}, options);
  ASSERT_TRUE(out.ok()) << out.status().text();
  EXPECT_EQ(seen, (std::vector<float>{2, -2}));
  EXPECT_EQ(numbers(*out)[0][0], -2);
  crew.fate = [](int64_t) { return Fate::aborted; };
  options.deadline_ns = 5'000'000;
  out = session.run({view(x.data(), DType::f32, Shape{8})}, options);
  EXPECT_EQ(out.status().code(), Code::deadline_exceeded) << out.status().text();
}

}  // namespace
}  // namespace heddle
