// Runs that break one rule of communicators: ranks that go through their collectives in different orders, an abort that does not come,
// an object that two runs use at once. Each shows: in the results, or in peers that wait for a rank that has left. The ranks are made to
// break it from outside: by their plan, or by the world that they meet in.
//
// A part of the places where it can happen; HEDDLE_LONG_TESTS=1 takes all (tools/soak.sh --mutants).
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "compile/plan_check/plan_check.h"
#include "device/device_support.h"
#include "device/plan_mutants.h"
#include "learning_ranks.h"
#include "mutant_tally.h"

namespace heddle {
namespace {

using testing::all_mutants;
using testing::max_seeds;
using testing::MutantFate;
using testing_devices::CompletionOrder;
using testing_devices::drop_edge;

// Sums that need nothing of each other: of x, 2 x, 3 x and so on.
Net summing_net(const std::string& device, int sums, const std::string& communicator) {
  NetBuilder b("summing");
  const ValueId x = b.input("x", DType::f32, Shape{4, 4});
  for (int k = 0; k < sums; ++k) {
    const std::string number = std::to_string(k);
    const ValueId factor = b.constant_float("factor" + number, static_cast<float>(k + 1));
    const ValueId scaled = placed(b, device, b.add1("Mul", "scaled" + number, {x, factor}));
    b.output(sum_over_ranks(b, device, "sum" + number, scaled, communicator));
  }
  return b.finish();
}

// The outputs of all contexts; empty: a run failed.
using Outputs = std::vector<std::vector<char>>;

// Runs all contexts side by side, the ranks in turn.
Outputs run_together(const std::vector<Context*>& contexts) {
  std::vector<Status> statuses(contexts.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < contexts.size(); ++i)
    threads.emplace_back([&, i] {
      RunOptions options;
      options.deadline_ns = 5'000'000'000;  // for a run that does not end
      statuses[i] = contexts[i]->run(options);
    });
  for (std::thread& t : threads) t.join();
  Outputs all;
  for (size_t i = 0; i < contexts.size(); ++i) {
    if (!statuses[i].ok()) return {};
    for (size_t k = 0; k < contexts[i]->output_count(); ++k) {
      const TensorView output = contexts[i]->output(k);
      const auto* const data = static_cast<const char*>(output.data);
      all.emplace_back(data, data + output.byte_size());
    }
  }
  return all;
}

// Ranks that run summing_net().
struct SummingRanks {
  SummingRanks(const RanksKind& kind, int sums) : kind(kind), sums(sums), world(kind.size) {
    for (size_t r = 0; r < static_cast<size_t>(kind.size); ++r) ranks.push_back(make(r, "world"));
  }
  // Simulated devices draw how long their work takes, each rank's from a seed of its own: else the ranks of two runs that are to be in
  // disorder would all choose the same order.
  Rank make(size_t r, const std::string& communicator) const {
    const testing_devices::Setting seed("HEDDLE_SIM_SEED", std::to_string(r + 1));
    SessionOptions how;
    how.streams = 3;
    how.communicators = {world.communicator(static_cast<int>(r), communicator)};
    return make_rank(kind, world, r, net(communicator), how);
  }
  Net net(const std::string& communicator) const { return summing_net(kind.device_name(), sums, communicator); }
  void prepare(uint64_t seed) {
    for (Rank& rank : ranks) {
      Internals::of(*rank.session).scheduler.shuffle_seed = seed;
      rank.prepare();
    }
  }
  Outputs run() {
    std::vector<Context*> contexts;
    for (Rank& rank : ranks) contexts.push_back(&*rank.context);
    return run_together(contexts);
  }
  const RanksKind kind;
  const int sums;
  RanksWorld world;
  std::vector<Rank> ranks;
};

// Returns true for those that are tried: one of `of`, unless all are.
bool is_drawn(unsigned of) {
  static std::mt19937_64 random(45);
  return random() % of == 0 || all_mutants;
}

// Drops an edge between two collectives of rank 0.
void drop_edges(testing::MutantTally& tally) {
  for (const RanksKind& kind : ranks_kinds())
    for (int edge = 0; edge < 3; ++edge) {
      SummingRanks w(kind, 4);
      w.prepare(0);
      const Outputs right = w.run();
      ASSERT_FALSE(right.empty());
      for (uint64_t seed = 1; seed <= 10; ++seed) {
        w.prepare(seed);
        ASSERT_EQ(w.run(), right) << "as it was made, seed " << seed;
      }
      Plan& plan = w.ranks[0].plan();
      std::vector<uint32_t> collectives;
      for (uint32_t i = 0; i < plan.graph.count; ++i)
        if (plan.steps[i].collective) collectives.push_back(i);
      ASSERT_EQ(collectives.size(), 4u);
      const uint32_t from = collectives[static_cast<size_t>(edge)], to = collectives[static_cast<size_t>(edge) + 1];
      uint32_t at = plan.graph.successor_begin[from];
      while (plan.graph.successors[at] != to && at < plan.graph.successor_begin[from + 1]) ++at;
      ASSERT_LT(at, plan.graph.successor_begin[from + 1]);
      drop_edge(plan.graph, from, at);
      const std::string complaint = compiling::check(plan).text();
      EXPECT_NE(complaint.find("are collectives of one device in no order"), std::string::npos) << complaint;
      const CompletionOrder order(plan);
      const bool equivalent = order.step_is_before(from, to);
      uint64_t seed = 0;
      Outputs outputs = right;
      while (seed < max_seeds && outputs == right) {
        w.prepare(++seed);
        outputs = w.run();
      }
      if (equivalent) {
        ASSERT_EQ(outputs, right);
      }
      tally.add("collective edge dropped",
                equivalent         ? MutantFate::equivalent
                : outputs == right ? MutantFate::survived
                                   : MutantFate::found,
                kind.text() + ", \"" + plan.steps[from].name + "\" -> \"" + plan.steps[to].name + "\"");
    }
}

// Ends rank 0 early at a step, without an abort of its communicator.
void leave_aborts_out(testing::MutantTally& tally) {
  for (const RanksKind& kind : ranks_kinds()) {
    std::vector<uint32_t> steps;
    {
      LearningRanks w(kind);
      const Plan& plan = w.ranks[0].plan();
      for (const uint32_t step : working_steps(plan))
        if (step < plan.graph.tail_begin) steps.push_back(step);
    }
    for (const uint32_t step : steps)
      for (const bool cancels : {false, true}) {
        if (!is_drawn(3)) continue;
        LearningRanks w(kind);
        PlanStep& at = w.ranks[0].plan().steps[step];
        const std::string what = kind.text() + ", " + (cancels ? "cancelled" : "failed") + " at \"" + at.name + "\"";
        SCOPED_TRACE(what);
        Injection in(at, [&](const heddle_run_context& context, const std::function<heddle_status()>&) {
          if (cancels) w.ranks[0].context->cancel();
          return Injection::fail(context);
        });
        w.ranks[0].prepare();
        // Returns whether the others wait for a rank that has left.
        const auto waits = [&] {
          bool missed = false;
          in.arm();
          w.run([&] {
            while (!w.ended[0]) std::this_thread::yield();
            missed = w.world.wait_until_missed(0, [&] { return w.over == kind.size; });
            if (missed) w.world.expire();
          });
          return missed;
        };
        ASSERT_FALSE(waits()) << "as it was made";
        ASSERT_TRUE(in.reached());
        w.world.lose_aborts(0);
        tally.add("abort left out", waits() ? MutantFate::found : MutantFate::survived, what);
      }
  }
}

// Gives two runs of each rank the same communicator at once: each has a turn with it, but under another name.
void share_communicators(testing::MutantTally& tally) {
  for (const RanksKind& kind : ranks_kinds())
    for (int sums = 2; sums <= 5; ++sums) {
      if (sums > 3 && !is_drawn(2)) continue;
      SummingRanks w(kind, sums);
      w.prepare(0);
      w.world.delay(45);
      std::vector<Context*> contexts;
      std::vector<Context> second;
      for (Rank& rank : w.ranks) {
        auto made = rank.session->prepare();
        ASSERT_TRUE(made.ok()) << made.status().text();
        ASSERT_TRUE(made->bind_input(0, rank.x.data()).ok());
        second.push_back(std::move(*made));
      }
      for (size_t r = 0; r < w.ranks.size(); ++r) contexts.insert(contexts.end(), {&*w.ranks[r].context, &second[r]});
      const Outputs right = run_together(contexts);
      ASSERT_FALSE(right.empty());
      for (int i = 0; i < 10; ++i) ASSERT_EQ(run_together(contexts), right) << "as it was made";

      SummingRanks mutant(kind, sums);
      mutant.world.delay(45);
      mutant.world.confuse_names();
      std::vector<Rank> others;
      contexts.clear();
      mutant.prepare(0);
      for (size_t r = 0; r < mutant.ranks.size(); ++r) {
        others.push_back(mutant.make(r, "other"));
        others.back().x = mutant.ranks[r].x;
        others.back().prepare();
      }
      for (size_t r = 0; r < mutant.ranks.size(); ++r) contexts.insert(contexts.end(), {&*mutant.ranks[r].context, &*others[r].context});
      // The order of four or six threads decides, which is no seed's.
      constexpr uint64_t max_tries = 10 * max_seeds;
      uint64_t tries = 0;
      while (tries < max_tries && run_together(contexts) == right) ++tries;
      tally.add("communicator of two runs", tries < max_tries ? MutantFate::found : MutantFate::survived,
                kind.text() + ", " + std::to_string(sums) + " sums");
    }
}

TEST(RunMutants, Show) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "mutants race";
#endif
  testing::MutantTally tally;
  drop_edges(tally);
  leave_aborts_out(tally);
  share_communicators(tally);
  tally.print();
  EXPECT_GE(tally.wrong(), 40u);
  EXPECT_GE(100 * tally.found(), 97 * tally.wrong());
}

}  // namespace
}  // namespace heddle
