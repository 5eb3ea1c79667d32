// One rank goes wrong, at each step of a net that trains: every rank ends, with one error that names operator and rank, without
// waiting for a time-out unless a rank only stays away; variables are equal on all ranks or as they were; and the next run is right.
//
// Every seventh step; HEDDLE_LONG_TESTS=1 takes all (tools/soak.sh --peers).
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "learning_ranks.h"

namespace heddle {
namespace {

enum class Wrong : uint8_t { stall, kill, late, error };
constexpr const char* name_of(Wrong wrong) {
  return wrong == Wrong::stall ? "stall" : wrong == Wrong::kill ? "kill" : wrong == Wrong::late ? "late" : "error";
}

class PeersMatrix : public ::testing::TestWithParam<RanksKind> {
 protected:
  // Runs the ranks with that step of rank 0 gone wrong, and then once more.
  static void try_step(const RanksKind& how, uint32_t step, Wrong wrong) {
    LearningRanks w(how);
    Plan& planned = w.ranks[0].plan();
    const PlanStep& at = planned.steps[step];
    const bool tail = step >= planned.graph.tail_begin;
    SCOPED_TRACE(std::string(name_of(wrong)) + " at " + std::to_string(step) + ", \"" + at.name + "\" (" + at.type.text() + ")");
    std::atomic<bool> released{false};
    Injection in(planned.steps[step], [&](const heddle_run_context& context, const std::function<heddle_status()>& original) {
      if (wrong == Wrong::kill) w.world.kill(0);
      if (wrong == Wrong::kill || wrong == Wrong::error) return Injection::fail(context);
      do std::this_thread::sleep_for(std::chrono::milliseconds(wrong == Wrong::late ? 5 : 1));
      while (wrong == Wrong::stall && !released);
      return original();
    });
    w.ranks[0].prepare();
    const auto before = w.variables();
    in.arm();
    w.run([&] {
      if (wrong != Wrong::stall) return;
      while (!in.reached()) std::this_thread::yield();
      if (w.world.wait_until_missed(0, [&] { return w.over == how.size - 1; })) w.world.expire();
      released = true;
    });
    ASSERT_TRUE(in.reached());
    const std::string fault = at.name;
    EXPECT_EQ(w.world.expired(), wrong == Wrong::stall && !tail ? 1 : 0);
    const auto after = w.variables();
    const bool fails = wrong != Wrong::late && !(tail && wrong == Wrong::stall);
    for (size_t r = 0; r < w.ranks.size(); ++r) {
      const Status& status = w.ranks[r].status;
      EXPECT_NE(status.code(), Code::deadline_exceeded) << status.text();
      const bool is_victim = r > 0 && fails && !tail;
      EXPECT_EQ(status.ok(), !(is_victim || (r == 0 && fails))) << "rank " << r << ": " << status.text();
      if (is_victim) {
        EXPECT_NE(status.text().find("rank 0"), std::string::npos) << status.text();
        EXPECT_EQ(status.diagnostic().type.substr(0, 10), "peers::Sum") << status.text();
        EXPECT_TRUE(status.diagnostic().attached.empty()) << status.text();
        EXPECT_EQ(after[r], before[r]);
      }
      if (r > 1) {
        EXPECT_EQ(after[r], after[1]);
      }
    }
    if (wrong == Wrong::error) {  // nobody hears what a rank that is gone says
      EXPECT_EQ(w.ranks[0].status.diagnostic().node, fault) << w.ranks[0].status.text();
    }
    if (!fails) {
      EXPECT_EQ(after[0], after[1]);
      EXPECT_NE(after[0], before[0]);
    }
    if (fails && !tail) {
      EXPECT_EQ(after[0], before[0]);
    }
    // In the update phase one rank's variables are torn, and it says so until they are written.
    if (fails && tail) {
      w.run();
      EXPECT_NE(w.ranks[0].status.text().find("half-updated"), std::string::npos) << w.ranks[0].status.text();
      for (const char* name : {"w1", "w2"}) {
        auto value = w.ranks[1].session->read_variable(name);
        ASSERT_TRUE(value.ok());
        ASSERT_TRUE(w.ranks[0].session->write_variable(name, value->view()).ok());
      }
    }
    w.run();
    const auto next = w.variables();
    for (size_t r = 0; r < w.ranks.size(); ++r) {
      EXPECT_TRUE(w.ranks[r].status.ok()) << "rank " << r << ", the next run: " << w.ranks[r].status.text();
      EXPECT_EQ(next[r], next[0]);
    }
    EXPECT_NE(next[0], before[0]);
  }
};
HEDDLE_RANKS_SUITE(PeersMatrix);

TEST_P(PeersMatrix, EachFaultAtEachStepEndsEveryRankAndTheNextRunIsRight) {
  const bool all = std::getenv("HEDDLE_LONG_TESTS") != nullptr;
  std::vector<uint32_t> steps;
  {
    LearningRanks w(GetParam());
    const Plan& plan = w.ranks[0].plan();
    steps = working_steps(plan);
    for (const uint32_t step : steps) EXPECT_EQ(plan.steps[step].on_device != nullptr, GetParam().on_sim()) << plan.steps[step].name;
  }
  ASSERT_GE(steps.size(), 12u);
  size_t runs = 0;
  for (size_t i = 0; i < steps.size(); ++i)
    for (const Wrong wrong : {Wrong::stall, Wrong::kill, Wrong::late, Wrong::error}) {
      if (!all && (i * 4 + static_cast<size_t>(wrong)) % 7 != 0) continue;
      try_step(GetParam(), steps[i], wrong);
      ++runs;
      if (HasFatalFailure()) return;
    }
  std::printf("%s: %zu faults at %zu steps\n", GetParam().text().c_str(), runs, steps.size());
}

// One rank has its collectives in another order: all refuse before their first step.
TEST_P(PeersMatrix, AnotherOrderIsRefusedByAll) {
  const auto summing = [](bool small_first) {
    NetBuilder b("summing");
    const ValueId x = b.input("x", DType::f32, Shape{4, 4}), small = b.add1("ReduceSum", "small", {x});
    for (const bool first : {true, false}) {
      const bool takes_small = first == small_first;
      b.output(sum_over_ranks(b, "", takes_small ? "of_small" : "of_x", takes_small ? small : x));
    }
    return b.finish();
  };
  LearningRanks w(GetParam());
  for (size_t r = 0; r < w.ranks.size(); ++r) {
    w.ranks[r] = make_rank(GetParam(), w.world, r, summing(r == 0));
    w.ranks[r].prepare();
  }
  w.run();
  for (const Rank& rank : w.ranks) {
    EXPECT_FALSE(rank.status.ok());
    EXPECT_NE(rank.status.text().find("runs other collectives"), std::string::npos) << rank.status.text();
  }
}

}  // namespace
}  // namespace heddle
