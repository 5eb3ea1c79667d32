// Communicators: objects of runs. Plans and checks make none, a run makes one within its deadline, one at a time uses it, a run that ends
// early aborts it, and the next one has another.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "heddle/session.h"
#include "peers_world.h"
#include "plugins.h"
#include "small_nets.h"

namespace heddle {
namespace {

// y = the sum over ranks of x
Net sums(const std::string& communicator = "world") {
  NetBuilder b("sums");
  b.output(sum(b, "sum", b.input("x", DType::f32, Shape{4}), communicator));
  return b.finish();
}

SessionOptions options_of(std::vector<CommunicatorOptions> communicators, const std::string& device = "cpu:0") {
  SessionOptions options;
  options.communicators = std::move(communicators);
  options.device = device;
  return options;
}

// A context and its input.
struct Runner {
  explicit Runner(Session& session) : context(*session.prepare()) { EXPECT_TRUE(context.bind_input(0, x.data()).ok()); }
  Status run(double seconds = 0) {
    RunOptions options;
    options.deadline_ns = static_cast<int64_t>(seconds * 1e9);
    return context.run(options);
  }
  std::vector<float> x = {1, 2, 3, 4};
  Context context;
};

bool says(const Status& status, const std::string& text) {
  return status.text().find(text) != std::string::npos;
}

class Communicator : public ::testing::TestWithParam<const char*> {
 protected:
  Session open(Net net = sums(), int size = 1) {
    return testing_nets::open(runtime, std::move(net), options_of({world.communicator(0, size)}, GetParam()));
  }
  World world;
  const Runtime runtime = runtime_with_peers();
};
INSTANTIATE_TEST_SUITE_P(Devices, Communicator, ::testing::Values("cpu:0", "sim:0"));

TEST_P(Communicator, IsMadeByTheFirstRunAndKept) {
  {
    Session session = open();
    EXPECT_TRUE(session.check().empty());
    Runner one(session), other(session);
    EXPECT_TRUE(world.joined().empty()) << "plans and contexts make none";
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(one.run().text(), Status().text());
      EXPECT_EQ(other.run().text(), Status().text());
    }
    EXPECT_EQ(world.joined().size(), 1u);
    EXPECT_EQ(world.begun(), 6);
    EXPECT_EQ(world.aborts(), 0);
    EXPECT_EQ(world.gone(), 0);
  }
  EXPECT_EQ(world.gone(), 1);
}

// Its create does not heed the host: the run ends at its deadline, and what create makes after that is aborted and destroyed.
TEST_P(Communicator, ThatIsNotMadeInTimeEndsTheRun) {
  world.set(World::Join::slow, 200);
  Session session = open();
  Runner runner(session);
  const Status status = runner.run(0.02);
  EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.text();
  EXPECT_TRUE(says(status, "while communicator \"world\" was being made")) << status.text();
  EXPECT_EQ(runner.run().text(), Status().text());
  ASSERT_EQ(world.joined().size(), 2u);
  EXPECT_EQ(world.joined()[1].attempt, 1u);
  EXPECT_EQ(world.aborts(), 1);
  EXPECT_EQ(world.gone(), 1);
}

TEST_P(Communicator, IsToldWhenNobodyWaitsForItAnyMore) {
  world.set(World::Join::until_cancelled);
  Session session = open();
  Runner runner(session);
  const Status status = runner.run(0.02);
  EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.text();
  std::thread canceller([&] {
    world.wait_for_joining(2);
    runner.context.cancel();
  });
  const Status cancelled = runner.run();
  canceller.join();
  EXPECT_EQ(cancelled.code(), Code::cancelled) << cancelled.text();
  world.set(World::Join::quick);
  EXPECT_EQ(runner.run().text(), Status().text());
  EXPECT_EQ(world.joined().back().attempt, 2u);
}

TEST_P(Communicator, ThatCannotBeMadeIsTriedAgain) {
  world.set(World::Join::fails);
  Session session = open();
  Runner runner(session);
  const Status status = runner.run();
  EXPECT_EQ(status.code(), Code::missing_resource) << status.text();
  EXPECT_TRUE(says(status, "resource \"peers.comm\" of plugin \"peers\" could not be made: exception: nobody is there")) << status.text();
  world.set(World::Join::quick);
  EXPECT_EQ(runner.run().text(), Status().text());
  EXPECT_EQ(world.joined().back().attempt, 1u);
}

// A peer is lost while a step waits for it: the run ends without its deadline, and names the operator. The next run has another object.
TEST_P(Communicator, ThatBreaksEndsTheRunAndIsMadeAnew) {
  Session session = open(sums(), 2);
  Runner runner(session), other(session);
  std::thread peer([&] {
    world.wait_for_begun(1);
    world.lose_peers(true);
  });
  const Status status = runner.run();
  peer.join();
  EXPECT_EQ(status.code(), Code::device_failed) << status.text();
  EXPECT_TRUE(says(status, "resource \"peers.comm\" is broken: a peer is lost")) << status.text();
  EXPECT_EQ(status.diagnostic().node, "sum") << status.text();
  EXPECT_EQ(world.aborts(), 1);
  EXPECT_EQ(world.gone(), 1) << "it goes with the last run that uses it";
  world.lose_peers(false);
  for (Runner* next : {&runner, &other}) {
    const Status late = next->run(0.02);  // its peers never come
    EXPECT_EQ(late.code(), Code::deadline_exceeded) << late.text();
    EXPECT_FALSE(says(late, "has not completed")) << late.text();
  }
  ASSERT_EQ(world.joined().size(), 3u);
  EXPECT_EQ(world.joined()[1].attempt, 1u);
  EXPECT_EQ(world.joined()[2].attempt, 2u);
  EXPECT_EQ(world.aborts(), 3);
  EXPECT_EQ(world.gone(), 3);
}

TEST_P(Communicator, ThatBreaksEndsAnObservedRunToo) {
  const StepObserver observer = [](StepView&) { return Status(); };
  Session session = open(sums(), 2);
  Runner runner(session);
  std::thread peer([&] {
    world.wait_for_begun(1);
    world.lose_peers(true);
  });
  RunOptions options;
  options.observer = &observer;
  const Status status = runner.context.run(options);
  peer.join();
  EXPECT_EQ(status.code(), Code::device_failed) << status.text();
  EXPECT_TRUE(says(status, "resource \"peers.comm\" is broken: a peer is lost")) << status.text();
  EXPECT_EQ(world.aborts(), 1);
}

// None of the collectives is under way, and the peers learn of the failure all the same.
TEST_P(Communicator, IsAbortedByARunThatFailsElsewhere) {
  NetBuilder b("fails");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  b.output(sum(b, "sum", b.add1("Fails", "fails", {x}, {}, "peers")));
  Session session = open(b.finish());
  Runner runner(session);
  const Status status = runner.run();
  EXPECT_EQ(status.diagnostic().node, "fails") << status.text();
  EXPECT_EQ(world.begun(), 0);
  EXPECT_EQ(world.aborts(), 1);
  EXPECT_EQ(world.gone(), 1);
}

TEST_P(Communicator, IsAbortedByARunThatIsCancelled) {
  Session session = open(sums(), 2);
  Runner runner(session);
  std::thread canceller([&] {
    world.wait_for_begun(1);
    runner.context.cancel();
  });
  const Status status = runner.run();
  canceller.join();
  EXPECT_EQ(status.code(), Code::cancelled) << status.text();
  EXPECT_EQ(world.aborts(), 1);
  EXPECT_EQ(world.gone(), 1);
}

TEST_P(Communicator, IsUsedByOneRunAtATime) {
  Session session = open();
  std::vector<std::thread> threads;
  std::vector<Status> statuses(4);
  for (Status& status : statuses)
    threads.emplace_back([&] {
      Runner runner(session);
      for (int i = 0; i < 50 && status.ok(); ++i) status = runner.run();
    });
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : statuses) EXPECT_EQ(status.text(), Status().text());
  EXPECT_EQ(world.begun(), 200);
  EXPECT_EQ(world.max_users(), 1);
  EXPECT_EQ(world.joined().size(), 1u);
}

TEST_P(Communicator, IsWaitedForUntilTheDeadline) {
  Session session = open(sums(), 2);
  Runner holds(session), waits(session);
  std::thread holder([&] { EXPECT_EQ(holds.run().code(), Code::cancelled); });
  world.wait_for_begun(1);
  const Status status = waits.run(0.02);
  EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.text();
  EXPECT_TRUE(says(status, "the deadline passed during the wait for communicator \"world\"")) << status.text();
  EXPECT_EQ(world.aborts(), 0) << "a run that never had it does not abort it";
  holds.context.cancel();
  holder.join();
}

TEST(Communicators, AreWhatTheSessionSays) {
  World world;
  const Runtime runtime = runtime_with_peers();
  CommunicatorOptions named = world.communicator(2, 3);
  named.name = "b";
  named.devices = {"sim:1"};
  named.timeout_ns = 5'000'000'000;
  NetBuilder b("two");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  b.output(sum(b, "of_a", x, "a"));
  b.output(sum(b, "of_b", x, "b"));
  Session session = testing_nets::open(runtime, b.finish(), options_of({named, world.communicator()}));
  Runner runner(session);
  std::thread canceller([&] {  // b has peers
    world.wait_for_begun(2);
    runner.context.cancel();
  });
  EXPECT_EQ(runner.run(60).code(), Code::cancelled);
  canceller.join();
  const auto joined = world.joined();
  ASSERT_EQ(joined.size(), 2u);
  EXPECT_EQ(joined[0].communicator, "a");
  EXPECT_EQ(joined[0].rank, 0);
  EXPECT_EQ(joined[0].size, 1);
  EXPECT_EQ(joined[0].members, std::vector<std::string>{"cpu:0"});
  EXPECT_EQ(joined[0].timeout_ns, 30'000'000'000);
  EXPECT_EQ(joined[1].communicator, "b");
  EXPECT_EQ(joined[1].rank, 2);
  EXPECT_EQ(joined[1].size, 3);
  EXPECT_EQ(joined[1].members, named.devices);
  EXPECT_EQ(joined[1].timeout_ns, 5'000'000'000);
  EXPECT_GT(joined[1].deadline_ns, 0);
}

TEST(Communicators, ThatTheSessionHasNotAreRefused) {
  World world;
  const Runtime runtime = runtime_with_peers();
  CommunicatorOptions other = world.communicator();
  other.name = "other";
  Session session = testing_nets::open(runtime, sums(), options_of({other}));
  Runner runner(session);
  const Status status = runner.run();
  EXPECT_EQ(status.code(), Code::missing_resource) << status.text();
  EXPECT_TRUE(says(status, "the session has no communicator \"world\"")) << status.text();
  EXPECT_TRUE(says(status, "SessionOptions::communicators")) << status.text();
}

// Two collectives that nothing else orders, with another order of inputs and the same one of operators.
Net two_sums(bool swapped_types = false) {
  NetBuilder b("two_sums");
  const ValueId x = b.input("x", DType::f32, Shape{4}), y = b.input("y", DType::f32, Shape{8});
  b.output(sum(b, "first", swapped_types ? y : x, "a"));
  b.output(sum(b, "second", swapped_types ? x : y, "b"));
  b.output(sum(b, "third", x, "a"));
  return b.finish();
}

std::shared_ptr<const PlanInfo> plan_of(const Runtime& runtime, Net net, const std::string& device, int streams = 1) {
  SessionOptions options;
  options.device = device;
  options.streams = streams;
  Session session = testing_nets::open(runtime, std::move(net), options);
  const auto plan = session.plan();
  EXPECT_TRUE(plan.ok()) << plan.status().text();
  return *plan;
}

TEST(Collectives, AreOneChainOnEachDeviceInTheNetsOrder) {
  for (const int threads : {1, 4}) {
    const Runtime runtime = runtime_with_peers(threads);
    for (const char* device : {"cpu:0", "sim:0"})
      for (const int streams : {1, 3}) {
        const auto plan = plan_of(runtime, two_sums(), device, streams);
        std::vector<size_t> at;
        for (const char* name : {"first", "second", "third"})
          for (size_t i = 0; i < plan->steps.size(); ++i)
            if (plan->steps[i].name == name) at.push_back(i);
        ASSERT_EQ(at.size(), 3u);
        for (size_t i = 0; i + 1 < at.size(); ++i) {
          const std::vector<size_t>& next = plan->steps[at[i]].successors;
          EXPECT_NE(std::find(next.begin(), next.end(), at[i + 1]), next.end()) << device << ", " << streams << " streams, after " << i;
        }
        std::vector<std::string> names;
        for (const PlanInfo::Collective& c : plan->collectives) names.push_back(c.name + " " + c.communicator + " " + c.signature);
        EXPECT_EQ(names, (std::vector<std::string>{"first a peers::Sum(f32[4]) communicator=\"a\" create_ms=0",
                                                   "second b peers::Sum(f32[8]) communicator=\"b\" create_ms=0",
                                                   "third a peers::Sum(f32[4]) communicator=\"a\" create_ms=0"}));
      }
  }
}

TEST(Collectives, HaveAHashThatDependsOnWhatTheyAreAlone) {
  const Runtime runtime = runtime_with_peers();
  const auto host = plan_of(runtime, two_sums(), "cpu:0"), sim = plan_of(runtime, two_sums(), "sim:0"),
             swapped = plan_of(runtime, two_sums(true), "cpu:0");
  ASSERT_EQ(host->communicators.size(), 2u);
  ASSERT_EQ(swapped->communicators.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(host->communicators[i].name, i == 0 ? "a" : "b");
    EXPECT_EQ(host->communicators[i].hash, sim->communicators[i].hash);
    EXPECT_NE(host->communicators[i].hash, swapped->communicators[i].hash);
  }
}

TEST(Collectives, AreComparedOncePerObjectAndSequence) {
  World world;
  const Runtime runtime = runtime_with_peers();
  Session session = testing_nets::open(runtime, sums(), options_of({world.communicator(0, 2)}));
  Runner one(session), other(session);
  std::thread canceller([&] {
    world.wait_for_begun(1);
    one.context.cancel();
  });
  EXPECT_EQ(one.run().code(), Code::cancelled);
  canceller.join();
  EXPECT_EQ(world.exchanges(), 1);
  world.set_other_hash(0x1234);
  const Status status = other.run();
  EXPECT_EQ(status.code(), Code::invalid_argument) << status.text();
  EXPECT_TRUE(
      says(status,
           "communicator \"world\": rank 1 runs other collectives than this one, which is rank 0: it has the collectives of several "
           "communicators in another order"))
      << status.text();
  EXPECT_EQ(world.begun(), 1) << "no step was taken";
  EXPECT_EQ(world.aborts(), 2);
  world.set_other_hash(0);
  world.complete(100);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(one.run().text(), Status().text());
  EXPECT_EQ(other.run().text(), Status().text());
  EXPECT_EQ(world.exchanges(), 5) << "one object, and the same collectives; three to find out how they differ";
}

TEST(Collectives, AloneAreNotCompared) {
  World world;
  const Runtime runtime = runtime_with_peers();
  Session session = testing_nets::open(runtime, sums(), options_of({world.communicator()}));
  Runner one(session);
  EXPECT_EQ(one.run().text(), Status().text());
  EXPECT_EQ(world.exchanges(), 0);
}

TEST(Collectives, AfterAnUpdateAreRefused) {
  const Runtime runtime = runtime_with_peers();
  NetBuilder b("late");
  const ValueId w = b.variable("w", floats(Shape{4}, {1, 2, 3, 4})), x = b.input("x", DType::f32, Shape{4});
  const ValueId updated = b.add1("Assign", "set", {w, x}, {}, "heddle");
  b.updates(updated, w);
  b.output(sum(b, "sum", updated));
  Session session = testing_nets::open(runtime, b.finish());
  const auto findings = session.check();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].code, Code::hazard);
  EXPECT_EQ(findings[0].node, "sum");
  EXPECT_NE(findings[0].message.find("works with peers after \"set\" (heddle::Assign) has updated a variable"), std::string::npos)
      << findings[0].message;
}

TEST(Communicators, ThatMakeNoSenseAreRefused) {
  const Runtime runtime = runtime_with_peers();
  const auto refusal = [&](std::vector<CommunicatorOptions> communicators) {
    const auto session = runtime.open(sums(), options_of(std::move(communicators)));
    EXPECT_EQ(session.status().code(), Code::invalid_argument) << session.status().text();
    return session.status().diagnostic().message;
  };
  CommunicatorOptions c;
  c.name = "c";
  EXPECT_EQ(refusal({c, c}), "communicator \"c\" is declared twice");
  c.rank = 2, c.size = 2;
  EXPECT_EQ(refusal({c}), "communicator \"c\" is rank 2 of 2");
  c.rank = 0, c.size = 0;
  EXPECT_EQ(refusal({c}), "communicator \"c\" is rank 0 of 0");
  c.size = 1, c.timeout_ns = 0;
  EXPECT_EQ(refusal({c}), "communicator \"c\" has a timeout of 0 ns");
  c.timeout_ns = 1, c.devices = {"sim:0", "sim:0"};
  EXPECT_EQ(refusal({c}), "communicator \"c\" has device \"sim:0\" twice");
}

}  // namespace
}  // namespace heddle
