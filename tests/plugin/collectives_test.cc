// Collectives where they are hard to see: inside an operator, late, in several communicators, in another place on each rank. A peer that is
// lost ends the run with the operator that waits for it, and ranks that do not agree are told before the first step.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "learning_ranks.h"
#include "peers_world.h"
#include "small_nets.h"

namespace heddle {
namespace {

constexpr int64_t patience_ns = 3'000'000'000;  // only so that a hang ends

// y = a branch that sums x over the ranks, or -x
Net branching(int64_t count) {
  NetBuilder sums("then"), negates("else"), b("branching");
  sums.output(sum(sums, "inner", sums.input("x", DType::f32, Shape{count})));
  negates.output(negates.add1("Neg", "neg", {negates.input("x", DType::f32, Shape{count})}));
  const ValueId x = b.input("x", DType::f32, Shape{count});
  b.output(b.add1("If", "either", {testing_nets::yes(b), x},
                  {{"then_branch", testing_nets::subnet(sums)}, {"else_branch", testing_nets::subnet(negates)}}));
  return b.finish();
}

// y = the sum of the numbers of x that are not 0: only the run knows how many there are
Net late() {
  NetBuilder b("late");
  const ValueId x = b.input("x", DType::f32, Shape{2, 2});
  const ValueId each = b.add1("Transpose", "each", {b.add1("NonZero", "where", {x})});
  b.output(sum(b, "inner", b.add1("GatherND", "numbers", {x, each})));
  return b.finish();
}

Net two_in_a_row() {
  NetBuilder b("two");
  const ValueId first = sum(b, "first", b.input("x", DType::f32, Shape{4}));
  b.output(b.add1("Abs", "abs", {sum(b, "second", b.add1("Neg", "neg", {first}))}));
  return b.finish();
}

// Runs a net of two ranks, whose peer is lost once `waits_in` operations have begun, of which all but the last are done.
Status run_and_lose_peer(Net net, const std::string& device, int threads, int waits_in) {
  World world;
  SessionOptions options;
  options.communicators = {world.communicator(0, 2)};
  options.device = device;
  options.copies = Copies::automatic;
  Session session = testing_nets::open(runtime_with_peers(threads), std::move(net), options);
  auto context = session.prepare();
  EXPECT_TRUE(context.ok()) << context.status().text();
  std::vector<float> x = {1, 2, 3, 4};
  EXPECT_TRUE(context->bind_input(0, x.data()).ok());
  world.complete(waits_in - 1);
  std::thread peer([&] {
    world.wait_for_begun(waits_in);
    world.lose_peers(true);
  });
  RunOptions how;
  how.deadline_ns = patience_ns;
  Status status = context->run(how);
  peer.join();
  return status;
}

TEST(Collectives, ThatWaitForALostPeerAreNamed) {
  for (const int threads : {1, 2})
    for (const std::string device : {"cpu:0", "sim:0"}) {
      SCOPED_TRACE(device + " on " + std::to_string(threads) + " threads");
      const auto expect = [](const Status& status, const std::string& node) {
        EXPECT_EQ(status.code(), Code::device_failed) << status.text();
        EXPECT_NE(status.text().find("is broken: a peer is lost"), std::string::npos) << status.text();
        EXPECT_EQ(status.diagnostic().node, node) << status.text();
      };
      const bool on_host = device == "cpu:0";
      expect(run_and_lose_peer(branching(4), device, threads, 1), on_host ? "either/inner" : "either");
      expect(run_and_lose_peer(late(), device, threads, 1), "inner");
      expect(run_and_lose_peer(two_in_a_row(), device, threads, 2), "second");
    }
}

// The branch's net is planned with its net, so its types are known.
TEST(Collectives, InsideAnOperatorAreComparedByTheirTypes) {
  const Runtime runtime = runtime_with_peers(1);
  std::vector<uint64_t> hashes;
  for (const int64_t count : {4, 8}) {
    const auto plan = testing_nets::open(runtime, branching(count), {}).plan();
    ASSERT_TRUE(plan.ok()) << plan.status().text();
    ASSERT_EQ((*plan)->collectives.size(), 1u);
    EXPECT_EQ((*plan)->collectives[0].name, "either/inner");
    hashes.push_back((*plan)->communicators[0].hash);
  }
  EXPECT_NE(hashes[0], hashes[1]);
}

// Runs one net on each rank.
std::vector<Status> run_ranks(const std::vector<std::pair<RanksKind, Net>>& nets) {
  RanksWorld world(static_cast<int>(nets.size()));
  std::vector<Rank> ranks;
  for (size_t r = 0; r < nets.size(); ++r) {
    ranks.push_back(make_rank(nets[r].first, world, r, nets[r].second));
    ranks.back().prepare();
  }
  std::vector<std::thread> threads;
  for (Rank& rank : ranks)
    threads.emplace_back([&rank] {
      RunOptions options;
      options.deadline_ns = patience_ns;
      rank.status = rank.context->run(options);
    });
  for (std::thread& t : threads) t.join();
  std::vector<Status> statuses;
  for (Rank& rank : ranks) statuses.push_back(std::move(rank.status));
  return statuses;
}

// Each communicator has one collective on each rank. They wait for each other for ever if the ranks begin with different ones.
TEST(Collectives, OfSeveralCommunicatorsAreComparedInTheirOrder) {
  const RanksKind host = {2, "cpu"};
  const auto net = [](const char* first, const char* second) {
    NetBuilder b("two");
    const ValueId x = b.input("x", DType::f32, Shape{16});
    for (const char* name : {first, second}) b.output(sum(b, std::string("of_") + name, x, name));
    return b.finish();
  };
  for (const Status& status : run_ranks({{host, net("a", "b")}, {host, net("a", "b")}})) EXPECT_TRUE(status.ok()) << status.text();
  for (const Status& status : run_ranks({{host, net("a", "b")}, {host, net("b", "a")}})) {
    EXPECT_EQ(status.code(), Code::invalid_argument) << status.text();
    EXPECT_NE(status.text().find("runs other collectives"), std::string::npos) << status.text();
  }
}

// The order in which the plan has its steps differs; the order in which communicators are made must not.
TEST(Collectives, MayLieElsewhereOnEachRank) {
  std::vector<std::pair<RanksKind, Net>> nets;
  for (const RanksKind& kind : {RanksKind{2, "sim"}, RanksKind{2, "cpu"}}) {
    NetBuilder b("net");
    const ValueId x = b.input("x", DType::f32, Shape{16});
    b.output(sum_over_ranks(b, kind.device_name(), "p", b.add1("Neg", "h", {x}), "a"));
    b.output(sum_over_ranks(b, "cpu:0", "q", x, "b"));
    nets.emplace_back(kind, b.finish());
  }
  for (const Status& status : run_ranks(nets)) EXPECT_TRUE(status.ok()) << status.text();
}

// An operator that updates a variable and works with peers inside would wait for them when nothing can be undone any more.
TEST(Collectives, InsideAnOperatorThatUpdatesAreRefused) {
  NetBuilder updates("then"), keeps("else"), b("accumulates");
  for (NetBuilder* n : {&updates, &keeps}) {
    const ValueId w = n->input("w", DType::f32, Shape{4}), g = n->input("g", DType::f32, Shape{4});
    n->output(n == &updates ? n->add1("AccumulateAdd", "step", {w, sum(*n, "inner", g)}, {}, "heddle")
                            : n->add1("Add", "same", {w, n->add1("Sub", "zero", {g, g})}));
  }
  const ValueId w = b.variable("w", testing_nets::blob(Shape{4}, 1, 0.25F), true), x = b.input("x", DType::f32, Shape{4});
  b.updates(b.add1("If", "every_nth", {testing_nets::yes(b), w, x},
                   {{"then_branch", testing_nets::subnet(updates)}, {"else_branch", testing_nets::subnet(keeps)}}),
            w);
  const Runtime runtime = runtime_with_peers();
  Session session = testing_nets::open(runtime, b.finish(), {});
  const std::vector<Diagnostic> findings = session.check();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].code, Code::hazard);
  EXPECT_EQ(findings[0].node, "every_nth");
  EXPECT_NE(findings[0].message.find("updates a variable and works with peers inside"), std::string::npos) << findings[0].message;
  EXPECT_EQ(session.prepare().status().code(), Code::hazard);
}

// A run that has its turn with one communicator, and waits for another in vain, aborts the first: peers may wait in it.
TEST(Collectives, OfARunThatCannotBeginAreAborted) {
  World world;
  const Runtime runtime = runtime_with_peers(1);
  NetBuilder both("both"), second("second");
  const ValueId x = both.input("x", DType::f32, Shape{4});
  for (const char* name : {"a", "b"}) both.output(sum(both, std::string("of_") + name, x, name));
  second.output(sum(second, "alone", second.input("x", DType::f32, Shape{4}), "b"));
  auto nets = Nets::of({both.finish(), second.finish()});
  ASSERT_TRUE(nets.ok()) << nets.status().text();
  SessionOptions options;
  options.communicators = {world.communicator(0, 2)};
  auto session = runtime.open(*nets, options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  std::vector<float> data = {1, 2, 3, 4};
  auto run_both = session->prepare();
  auto run_second = session->net("second")->prepare();
  ASSERT_TRUE(run_both.ok() && run_second.ok());
  for (Context* context : {&*run_both, &*run_second}) ASSERT_TRUE(context->bind_input(0, data.data()).ok());
  world.complete(2);
  ASSERT_EQ(run_both->run().text(), Status().text());
  std::thread holds([&] { EXPECT_EQ(run_second->run().code(), Code::cancelled); });
  world.wait_for_begun(3);
  RunOptions hurry;
  hurry.deadline_ns = 20'000'000;
  EXPECT_EQ(run_both->run(hurry).code(), Code::deadline_exceeded);
  EXPECT_EQ(world.aborts(), 1) << "the object of \"a\"";
  run_second->cancel();
  holds.join();
}

}  // namespace
}  // namespace heddle
