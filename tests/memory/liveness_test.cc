// Lifetimes from a partial order: against brute force on random nets, and by running random legal schedules on planned memory.
#include "memory/liveness/liveness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <span>

#include "bench/offsets_instances.h"
#include "memory/offsets/offsets_check.h"

namespace heddle {
namespace {

using offsets::draw;

// A net under construction: values with readers, edges from every definition to its uses.
struct Builder {
  LivenessProblem problem;
  std::vector<std::vector<uint32_t>> successors, uses;
  std::vector<std::vector<uint32_t>> inputs;  // values that each step reads

  explicit Builder(uint32_t steps) : successors(steps), inputs(steps) { problem.steps = steps; }
  uint32_t value(uint32_t definition, int64_t bytes) {
    LiveValue value;
    value.definition = definition;
    value.bytes = bytes;
    value.alignment = 1;
    problem.values.push_back(value);
    uses.emplace_back();
    return static_cast<uint32_t>(problem.values.size()) - 1;
  }
  void use(uint32_t value, uint32_t step) {
    uses[value].push_back(step);
    inputs[step].push_back(value);
    if (!problem.values[value].from_start) successors[problem.values[value].definition].push_back(step);
  }
  LivenessProblem build(uint32_t width) {
    const auto flatten = [](const std::vector<std::vector<uint32_t>>& rows, std::vector<uint32_t>* begin, std::vector<uint32_t>* list) {
      begin->assign(1, 0);
      list->clear();
      for (const std::vector<uint32_t>& row : rows) {
        list->insert(list->end(), row.begin(), row.end());
        begin->push_back(static_cast<uint32_t>(list->size()));
      }
    };
    flatten(successors, &problem.successor_begin, &problem.successors);
    flatten(uses, &problem.use_begin, &problem.uses);
    problem.width = width;
    return problem;
  }
};

// A random net: each step has one output and reads a few earlier values, mostly recent ones or the last of its own branch.
Builder random_net(uint32_t steps, uint32_t branches, uint64_t seed) {
  std::mt19937_64 random(seed);
  Builder net(steps);
  for (uint32_t s = 0; s < steps; ++s) {
    std::set<uint32_t> read;
    if (s >= branches) read.insert(s - branches);
    if (s > 0 && draw(random, 0, 3) == 0) read.insert(static_cast<uint32_t>(draw(random, std::max<int64_t>(0, int64_t{s} - 12), s - 1)));
    for (const uint32_t value : read) net.use(value, s);
    net.value(s, draw(random, 1, 64));
  }
  return net;
}

// reach[a][b]: a happens before b, added edges included.
std::vector<std::vector<char>> closure(const LivenessProblem& problem, const LivenessResult& result) {
  std::vector<std::vector<char>> reach(problem.steps, std::vector<char>(problem.steps, 0));
  const auto add = [&](uint32_t a, uint32_t b) {
    reach[a][b] = 1;
    for (uint32_t c = 0; c < problem.steps; ++c) reach[a][c] = static_cast<char>(reach[a][c] | reach[b][c]);
  };
  for (uint32_t s = problem.steps; s-- > 0;) {
    for (uint32_t i = problem.successor_begin[s]; i < problem.successor_begin[s + 1]; ++i) add(s, problem.successors[i]);
    for (const auto& [from, to] : result.added_edges)
      if (from == s) add(from, to);
    if (problem.width == 1 && s + 1 < problem.steps) add(s, s + 1);
  }
  return reach;
}

bool before(const LivenessProblem& problem, const LivenessResult& result, const std::vector<std::vector<char>>& reach, uint32_t a,
            uint32_t b) {
  for (uint32_t v = 0; v < problem.values.size(); ++v) {
    if (result.buffer_of[v] != a) continue;
    if (problem.values[v].to_end) return false;
    std::vector<uint32_t> uses(problem.uses.begin() + problem.use_begin[v], problem.uses.begin() + problem.use_begin[v + 1]);
    if (!problem.values[v].from_start) uses.push_back(problem.values[v].definition);
    for (uint32_t w = 0; w < problem.values.size(); ++w) {
      if (result.buffer_of[w] != b) continue;
      if (problem.values[w].from_start) return false;
      for (const uint32_t use : uses)
        if (reach[use][problem.values[w].definition] == 0) return false;
    }
  }
  return true;
}

LivenessResult lifetimes(const LivenessProblem& problem) {
  Result<LivenessResult> result = plan_lifetimes(problem);
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? std::move(result).value() : LivenessResult{};
}

offsets::Solution packed(const LivenessResult& result) {
  const Result<offsets::Solution> solution = offsets::pack(result.problem);
  EXPECT_TRUE(solution.ok());
  EXPECT_TRUE(offsets::check(result.problem, *solution).ok()) << offsets::check(result.problem, *solution).text();
  return *solution;
}

bool interfere(const offsets::Problem& problem, uint32_t a, uint32_t b) {
  if (problem.interference) return problem.interference->interferes(a, b);
  return problem.buffers[a].first < problem.buffers[b].last && problem.buffers[b].first < problem.buffers[a].last;
}

TEST(Liveness, InterferenceIsExactlyThePartialOrder) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 60; ++round) {
    Builder net = random_net(static_cast<uint32_t>(draw(random, 2, 40)), static_cast<uint32_t>(draw(random, 1, 8)), random());
    for (uint32_t v = 0; v < net.problem.values.size(); ++v) {
      if (draw(random, 0, 9) == 0) net.problem.values[v].to_end = true;
      if (draw(random, 0, 9) == 0) net.problem.aliases.emplace_back(v, draw(random, 0, v));
      if (draw(random, 0, 19) == 0) net.problem.values[v].bytes = 0;
    }
    const uint32_t given = net.value(0, 5);
    net.problem.values[given].from_start = true;
    net.use(given, static_cast<uint32_t>(draw(random, 0, net.problem.steps - 1)));
    const LivenessProblem problem = net.build(static_cast<uint32_t>(draw(random, 1, 6)));
    const LivenessResult result = lifetimes(problem);
    ASSERT_LE(result.chains, problem.width);
    const auto reach = closure(problem, result);
    const auto count = static_cast<uint32_t>(result.problem.buffers.size());
    for (uint32_t a = 0; a < count; ++a) {
      for (uint32_t b = 0; b < a; ++b) {
        const bool ordered = before(problem, result, reach, a, b) || before(problem, result, reach, b, a);
        ASSERT_EQ(interfere(result.problem, a, b), !ordered) << "round " << round << ", buffers " << a << " and " << b;
        if (!result.problem.interference || ordered) continue;
        const uint32_t later = result.problem.buffers[a].first < result.problem.buffers[b].first ? b : a;
        ASSERT_LT(result.problem.buffers[later].first, result.problem.interference->settled(later == a ? b : a));
      }
    }
  }
}

// The heaviest set of buffers that interfere pairwise, by trying all.
int64_t heaviest_clique(const offsets::Problem& problem, uint32_t from, std::vector<uint32_t>* clique, int64_t bytes) {
  int64_t best = bytes;
  for (uint32_t i = from; i < problem.buffers.size(); ++i) {
    if (!std::all_of(clique->begin(), clique->end(), [&](uint32_t other) { return interfere(problem, i, other); })) continue;
    clique->push_back(i);
    best = std::max(best, heaviest_clique(problem, i + 1, clique, bytes + problem.buffers[i].bytes));
    clique->pop_back();
  }
  return best;
}

TEST(Liveness, LowerBoundIsTheHeaviestAntichain) {
  std::mt19937_64 random(2);
  int partial = 0;
  for (int round = 0; round < 100; ++round) {
    const LivenessProblem problem = random_net(static_cast<uint32_t>(draw(random, 2, 16)), 4, random()).build(4);
    const LivenessResult result = lifetimes(problem);
    if (!result.problem.interference) continue;
    ++partial;
    std::vector<uint32_t> clique;
    ASSERT_EQ(result.problem.known_lower_bound, heaviest_clique(result.problem, 0, &clique, 0)) << "round " << round;
    const offsets::Solution solution = packed(result);
    ASSERT_GE(solution.height, solution.lower_bound);
    ASSERT_EQ(solution.lower_bound_kind, offsets::LowerBoundKind::antichain);
  }
  EXPECT_GT(partial, 50);
}

TEST(Liveness, BoundWithoutEffortIsMaxLive) {
  LivenessProblem problem = random_net(200, 4, 3).build(4);
  problem.bound_effort = 100;
  const LivenessResult result = lifetimes(problem);
  EXPECT_EQ(result.problem.known_lower_bound, 0);
  EXPECT_EQ(packed(result).lower_bound_kind, offsets::LowerBoundKind::max_live);
}

// Runs the steps in a random legal order, several at a time, on real bytes: a step first checks that each input still holds its
// definition's mark, then marks its outputs; a running step's inputs and outputs may not be touched by another. Returns what went wrong.
std::string run_schedule(const Builder& net, const LivenessProblem& problem, const LivenessResult& result,
                         const std::vector<int64_t>& offsets, int64_t height, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint32_t> pending(problem.steps, 0), ready, running;
  std::vector<std::vector<uint32_t>> next = net.successors, outputs(problem.steps);
  for (const auto& [from, to] : result.added_edges) next[from].push_back(to);
  if (problem.width == 1)
    for (uint32_t s = 0; s + 1 < problem.steps; ++s) next[s].push_back(s + 1);
  for (const std::vector<uint32_t>& list : next)
    for (const uint32_t to : list) ++pending[to];
  for (uint32_t v = 0; v < problem.values.size(); ++v) outputs[problem.values[v].definition].push_back(v);
  for (uint32_t s = 0; s < problem.steps; ++s)
    if (pending[s] == 0) ready.push_back(s);
  std::vector<uint32_t> memory(static_cast<size_t>(height), UINT32_MAX);
  const auto bytes = [&](uint32_t value) {
    const int64_t offset = offsets[result.buffer_of[value]];
    return std::span(memory).subspan(static_cast<size_t>(offset), static_cast<size_t>(problem.values[value].bytes));
  };
  const auto intact = [&](uint32_t value) {
    const auto range = bytes(value);
    return std::all_of(range.begin(), range.end(), [&](uint32_t mark) { return mark == value; });
  };
  while (!ready.empty() || !running.empty()) {
    if (!ready.empty() && (running.empty() || (running.size() < 4 && random() % 2 == 0))) {  // start one: writes begin at once
      const size_t pick = random() % ready.size();
      const uint32_t step = ready[pick];
      ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
      for (const uint32_t v : outputs[step]) std::fill(bytes(v).begin(), bytes(v).end(), v);
      running.push_back(step);
    } else {  // finish one: it has been reading until now
      const size_t pick = random() % running.size();
      const uint32_t step = running[pick];
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(pick));
      for (const uint32_t v : net.inputs[step])
        if (!intact(v)) return "input " + std::to_string(v) + " of step " + std::to_string(step);
      for (const uint32_t v : outputs[step])
        if (!intact(v)) return "output " + std::to_string(v) + " of step " + std::to_string(step);
      for (const uint32_t to : next[step])
        if (--pending[to] == 0) ready.push_back(to);
    }
  }
  return {};
}

TEST(Liveness, ThousandRandomSchedulesSeeTheirOwnBytes) {
  std::mt19937_64 random(3);
  int shared = 0;
  for (int round = 0; round < 100; ++round) {
    const Builder net = random_net(static_cast<uint32_t>(draw(random, 5, 80)), static_cast<uint32_t>(draw(random, 1, 6)), random());
    const LivenessProblem problem = Builder(net).build(static_cast<uint32_t>(draw(random, 1, 5)));
    const LivenessResult result = lifetimes(problem);
    const offsets::Solution solution = packed(result);
    int64_t sum = 0;
    for (const LiveValue& value : problem.values) sum += value.bytes;
    shared += solution.height < sum ? 1 : 0;
    for (int schedule = 0; schedule < 12; ++schedule)
      ASSERT_EQ(run_schedule(net, problem, result, solution.offsets, solution.height, random()), "") << "round " << round;
  }
  EXPECT_GT(shared, 90);
}

// Tests the simulator itself: a plan that is right for plan order alone is caught when branches run side by side.
TEST(Liveness, SerialPlansFailUnderParallelSchedules) {
  int caught = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Builder net = random_net(60, 4, seed);
    LivenessResult serial = lifetimes(Builder(net).build(1));
    const offsets::Solution solution = packed(serial);
    const LivenessProblem parallel = Builder(net).build(8);
    caught += run_schedule(net, parallel, serial, solution.offsets, solution.height, seed).empty() ? 0 : 1;
  }
  EXPECT_GT(caught, 40);
}

TEST(Liveness, SiblingBranchesDoNotShareUntilTheyJoin) {
  // 0 forks to 1-2 and 3-4, 5 joins.
  Builder net(6);
  for (uint32_t s = 0; s < 6; ++s) net.value(s, 10);
  for (const auto& [value, step] : {std::pair{0, 1}, {0, 3}, {1, 2}, {3, 4}, {2, 5}, {4, 5}}) net.use(value, step);
  const LivenessResult result = lifetimes(net.build(2));
  EXPECT_TRUE(result.added_edges.empty()) << "two chains cover it as it is";
  for (const uint32_t left : {1, 2})
    for (const uint32_t right : {3, 4}) EXPECT_TRUE(interfere(result.problem, left, right));
  EXPECT_FALSE(interfere(result.problem, 1, 5));
  EXPECT_FALSE(interfere(result.problem, 0, 5));
  EXPECT_TRUE(interfere(result.problem, 0, 2)) << "the other branch may still read 0";
  const offsets::Solution solution = packed(result);
  EXPECT_EQ(solution.lower_bound, 50) << "0 to 4 interfere pairwise, though no one execution has all five at once";
  EXPECT_EQ(solution.height, 50);
  EXPECT_EQ(packed(lifetimes(net.build(1))).height, 30);
}

TEST(Liveness, OutputsTakeNoInputsBytesUnlessAliased) {
  // Sum(x, x) and a chain: planning may make nothing in-place.
  Builder net(3);
  for (uint32_t s = 0; s < 3; ++s) net.value(s, 10);
  net.use(0, 1);
  net.use(0, 1);
  net.use(1, 2);
  for (const uint32_t width : {1, 4}) {
    const LivenessResult result = lifetimes(net.build(width));
    const offsets::Solution solution = packed(result);
    EXPECT_EQ(solution.height, 20) << "0 and 2 share, 1 is between them";
    EXPECT_TRUE(interfere(result.problem, 0, 1));
    EXPECT_TRUE(interfere(result.problem, 1, 2));
  }
  net.problem.aliases = {{0, 1}, {1, 2}};
  const LivenessResult aliased = lifetimes(net.build(4));
  EXPECT_EQ(aliased.problem.buffers.size(), 1u);
  EXPECT_EQ(packed(aliased).height, 10);
}

TEST(Liveness, InputsAndOutputsOfTheNetKeepTheirBytes) {
  Builder net(4);
  for (uint32_t s = 0; s < 4; ++s) net.value(s, 10);
  for (uint32_t s = 0; s + 1 < 4; ++s) net.use(s, s + 1);
  net.problem.values[0].to_end = true;
  const uint32_t given = net.value(0, 10);
  net.problem.values[given].from_start = true;
  net.use(given, 1);
  for (const uint32_t width : {1, 3}) {
    const LivenessResult result = lifetimes(net.build(width));
    for (const uint32_t other : {1, 2, 3}) EXPECT_TRUE(interfere(result.problem, 0, other)) << "0 is read after the last step";
    EXPECT_TRUE(interfere(result.problem, given, 0));
    EXPECT_FALSE(interfere(result.problem, given, 2));
  }
}

// No step begins before the one that many places before it is done, in any order that the edges allow.
TEST(Liveness, ALagBoundsHowFarStepsRunAhead) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 40; ++round) {
    Builder net = random_net(static_cast<uint32_t>(draw(random, 2, 40)), static_cast<uint32_t>(draw(random, 1, 8)), random());
    LivenessProblem problem = net.build(static_cast<uint32_t>(draw(random, 1, 6)));
    problem.lag = static_cast<uint32_t>(draw(random, 1, 9));
    const LivenessResult result = lifetimes(problem);
    const auto reach = closure(problem, result);
    for (uint32_t s = problem.lag; s < problem.steps; ++s) ASSERT_TRUE(reach[s - problem.lag][s]) << "round " << round << ", step " << s;
    packed(result);
  }
  // A chain whose every value is also read by a step of its own, which nothing waits for: as gradients of weights are.
  constexpr uint32_t blocks = 20;
  Builder net(2 * blocks);
  for (uint32_t b = 0; b < blocks; ++b) {
    net.value(2 * b, 100);
    net.value(2 * b + 1, 1);
    net.use(b * 2, 2 * b + 1);
    if (b + 1 < blocks) net.use(b * 2, 2 * b + 2);
  }
  LivenessProblem problem = net.build(8);
  const int64_t free = packed(lifetimes(problem)).height;
  for (const uint32_t lag : {3, 5, 7}) {
    problem.lag = lag;
    EXPECT_LE(packed(lifetimes(problem)).height, 100 * (lag + 2)) << lag;
  }
  EXPECT_GT(free, 0);
}

TEST(Liveness, WideNetsKeepSharing) {
  // 64 independent branches of 50 steps under 8 chains: each branch needs two buffers at a time, and eight branches run at once.
  constexpr uint32_t branches = 64, depth = 50;
  Builder net(branches * depth);
  for (uint32_t s = 0; s < branches * depth; ++s) {
    if (s >= branches) net.use(s - branches, s);
    net.value(s, 100);
  }
  const LivenessResult result = lifetimes(net.build(8));
  EXPECT_EQ(result.chains, 8u);
  const offsets::Solution solution = packed(result);
  EXPECT_LE(solution.height, 2 * 100 * branches) << "of " << 100 * branches * depth << " without sharing";
  for (const auto& [from, to] : result.added_edges) ASSERT_LT(from, to);
}

TEST(Liveness, LongChainsNeedNoRecursionAndNoEdges) {
  constexpr uint32_t steps = 100'000;
  Builder net(steps);
  for (uint32_t s = 0; s < steps; ++s) {
    if (s > 0) net.use(s - 1, s);
    net.value(s, 8);
  }
  const LivenessResult result = lifetimes(net.build(16));
  EXPECT_TRUE(result.added_edges.empty());
  EXPECT_EQ(result.chains, 1u);
  const Result<offsets::Solution> solution = offsets::pack(result.problem);
  ASSERT_TRUE(solution.ok());
  EXPECT_EQ(solution->height, 16);
  EXPECT_TRUE(solution->optimal);
}

TEST(Liveness, BrokenProblemsAreRefused) {
  const LivenessProblem good = random_net(5, 2, 1).build(2);
  ASSERT_TRUE(plan_lifetimes(good).ok());
  const auto code = [&](auto spoil) {
    LivenessProblem bad = good;
    spoil(bad);
    return plan_lifetimes(bad).status().code();
  };
  EXPECT_EQ(code([](LivenessProblem& p) { p.width = 0; }), Code::invalid_argument);
  EXPECT_EQ(code([](LivenessProblem& p) { p.successors[0] = 0; }), Code::invalid_argument) << "an edge to itself";
  EXPECT_EQ(code([](LivenessProblem& p) { p.successors[0] = 99; }), Code::invalid_argument);
  EXPECT_EQ(code([](LivenessProblem& p) { p.successor_begin.pop_back(); }), Code::invalid_argument);
  EXPECT_EQ(code([](LivenessProblem& p) { p.successor_begin.back() = 1000; }), Code::invalid_argument);
  EXPECT_EQ(code([](LivenessProblem& p) {
              std::swap(p.use_begin[1], p.use_begin[3]);
              p.use_begin[2] = 99;
            }),
            Code::invalid_argument);
  EXPECT_EQ(code([](LivenessProblem& p) { p.uses[0] = 99; }), Code::invalid_argument);
  EXPECT_EQ(code([](LivenessProblem& p) { p.values[4].definition = 99; }), Code::invalid_argument);
  EXPECT_EQ(code([](LivenessProblem& p) { p.values[0].definition = 4; }), Code::invalid_argument) << "used before it is defined";
  EXPECT_EQ(code([](LivenessProblem& p) { p.aliases = {{0, 99}}; }), Code::invalid_argument);
  EXPECT_EQ(code([](LivenessProblem& p) { p.cost = {1}; }), Code::invalid_argument);
}

}  // namespace
}  // namespace heddle
