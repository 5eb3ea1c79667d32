// The offset planner against exhaustive answers, planted optima and first fit, and its checker against corrupted plans.
#include "memory/offsets/offsets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "bench/offsets_instances.h"
#include "memory/offsets/offsets_check.h"

namespace heddle::offsets {
namespace {

Problem of(std::vector<Buffer> buffers) {
  Problem problem;
  problem.buffers = std::move(buffers);
  return problem;
}

Solution packed(const Problem& problem, const PackOptions& options = {}) {
  Result<Solution> solution = pack(problem, options);
  EXPECT_TRUE(solution.ok()) << solution.status().text();
  if (!solution.ok()) return {};
  EXPECT_TRUE(check(problem, *solution).ok()) << check(problem, *solution).text();
  return std::move(solution).value();
}

bool overlap(const Buffer& a, const Buffer& b) {
  return a.first < b.last && b.first < a.last;
}

// Places each buffer at the lowest gap, in the given order: every planner should at least reach this.
int64_t first_fit(const Problem& problem, const std::vector<size_t>& order, std::vector<int64_t>* offsets = nullptr) {
  std::vector<int64_t> at(problem.buffers.size(), -1);
  int64_t height = 0;
  for (const size_t i : order) {
    const Buffer& buffer = problem.buffers[i];
    int64_t offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t j = 0; j < at.size(); ++j) {
        const Buffer& other = problem.buffers[j];
        if (at[j] < 0 || !overlap(buffer, other) || offset >= at[j] + other.bytes || at[j] >= offset + buffer.bytes) continue;
        offset = (at[j] + other.bytes + buffer.alignment - 1) / buffer.alignment * buffer.alignment;
        moved = true;
      }
    }
    at[i] = offset;
    height = std::max(height, offset + buffer.bytes);
  }
  if (offsets != nullptr) *offsets = at;
  return height;
}

// Returns the optimum: some order of placing at the lowest gap yields it.
int64_t exhaustive(const Problem& problem) {
  std::vector<size_t> order(problem.buffers.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t best = INT64_MAX;
  do best = std::min(best, first_fit(problem, order));
  while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(Offsets, ReferenceCaseOfInterferenceColouring) {
  // Closed ranges 1-3, 3-4, 5-6, 5-7: b1 and b2 meet in step 3, so that in half-open lives they overlap.
  const Problem problem = of({{1, 4, 10, 1}, {3, 5, 1, 1}, {5, 7, 1, 1}, {5, 8, 10, 1}});
  const Solution solution = packed(problem);
  EXPECT_EQ(solution.height, 11);
  EXPECT_EQ(solution.lower_bound, 11);
  EXPECT_EQ(solution.lower_bound_kind, LowerBoundKind::max_live);
  EXPECT_TRUE(solution.optimal);
}

TEST(Offsets, NothingToPackIsZeroBytes) {
  EXPECT_EQ(packed({}).height, 0);
  const Solution empty = packed(of({{0, 5, 0, 64}, {0, 5, 0, 1}}));
  EXPECT_EQ(empty.height, 0);
  EXPECT_TRUE(empty.optimal);
}

TEST(Offsets, LivesThatOnlyTouchShareBytes) {
  EXPECT_EQ(packed(of({{0, 3, 100, 64}, {3, 6, 100, 64}})).height, 100);
  EXPECT_EQ(packed(of({{0, 4, 100, 64}, {3, 6, 100, 64}})).height, 228);
}

TEST(Offsets, FreedBytesAreHandedFromBranchToBranch) {
  // A fork whose three branches run one after the other needs no more buffers than a chain.
  std::vector<Buffer> chain, fork = {{0, 10, 8, 1}};
  for (int64_t i = 0; i < 9; ++i) chain.push_back({i, i + 2, 8, 1});
  for (int64_t branch = 0; branch < 3; ++branch)
    for (int64_t i = 0; i < 3; ++i) fork.push_back({1 + 3 * branch + i, 1 + 3 * branch + i + (i < 2 ? 2 : 1), 8, 1});
  EXPECT_EQ(packed(of(chain)).height, 16);
  EXPECT_EQ(packed(of(fork)).height, 24) << "the fork's input stays alive beside two buffers of the branch that runs";
}

TEST(Offsets, EqualsTheExhaustiveOptimumOfSixBuffers) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 300; ++round) {
    Problem problem = random_lives(static_cast<size_t>(draw(random, 1, 6)), 8, 6, 20, random());
    if (round % 2 == 0)
      for (Buffer& buffer : problem.buffers) buffer.alignment = 1;
    const Solution solution = packed(problem);
    ASSERT_EQ(solution.height, exhaustive(problem)) << "round " << round;
    ASSERT_TRUE(solution.optimal) << "round " << round;
  }
}

TEST(Offsets, NeverWorseThanFirstFitOnTenThousandIntervalSets) {
  std::mt19937_64 random(5);
  int64_t better = 0;
  for (int round = 0; round < 10'000; ++round) {
    const Problem problem = random_lives(static_cast<size_t>(draw(random, 2, 20)), 20, 10, 64, random());
    std::vector<size_t> order(problem.buffers.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return problem.buffers[a].first < problem.buffers[b].first; });
    const int64_t greedy = first_fit(problem, order);
    PackOptions options;
    options.effort = 100'000;
    const Solution solution = packed(problem, options);
    ASSERT_LE(solution.height, greedy) << "round " << round;
    better += solution.height < greedy ? 1 : 0;
    int64_t sum = 0;
    for (const Buffer& buffer : problem.buffers) sum += buffer.bytes + buffer.alignment - 1;
    ASSERT_LE(solution.height, sum);
  }
  EXPECT_GT(better, 1000) << "the search does something";
}

TEST(Offsets, ReachesPlantedOptima) {
  for (const uint64_t seed : {1, 2, 3}) {
    const Problem problem = planted(80, 200, 1 << 20, 1024, 25, seed);
    PackOptions options;
    options.effort = 2'000'000'000;
    const Solution solution = packed(problem, options);
    EXPECT_EQ(solution.height, 1 << 20) << "seed " << seed;
    EXPECT_TRUE(solution.optimal);
  }
}

// A search that changes its last choice first, whatever it failed at, is still 3 to 11 percent above the optimum after as much effort.
TEST(Offsets, JumpsBackOverChoicesThatAFailureDoesNotRestOn) {
  const struct {
    size_t buffers;
    uint64_t seed;
    int64_t effort;
  } cases[] = {{120, 6, 100'000'000}, {150, 3, 100'000'000}, {200, 2, 400'000'000}};
  for (const auto& [buffers, seed, effort] : cases) {
    PackOptions options;
    options.effort = effort;
    EXPECT_EQ(packed(planted(buffers, 1000, 1 << 20, 1024, 12, seed), options).height, 1 << 20) << buffers << " buffers, seed " << seed;
  }
}

TEST(Offsets, ProvesOptimaAboveTheLowerBound) {
  // Twelve pairs of adjacent lives around a bar in the middle: the most alive is less than any packing needs (checked exhaustively).
  const Problem problem = of({{0, 2, 3, 1}, {1, 3, 2, 1}, {2, 4, 3, 1}, {3, 5, 2, 1}, {0, 1, 2, 1}, {4, 5, 3, 1}, {1, 2, 1, 1}});
  const Solution solution = packed(problem);
  EXPECT_EQ(solution.height, exhaustive(problem));
  EXPECT_TRUE(solution.optimal);
}

TEST(Offsets, SameProblemSameBytes) {
  const Problem problem = planted(200, 500, 1 << 20, 1024, 15, 9);
  const Solution once = packed(problem), again = packed(problem);
  EXPECT_EQ(once.offsets, again.offsets);
  PackOptions more;
  more.effort = 4 * default_effort;
  EXPECT_LE(packed(problem, more).height, once.height);
}

TEST(Offsets, StopIsPolledAndGivesTheBestSoFar) {
  const Problem problem = planted(300, 1000, 1 << 20, 1024, 5, 4);
  PackOptions options;
  options.effort = INT64_MAX;
  int polls = 0;
  options.stop = [&] { return ++polls == 3; };
  EXPECT_GE(packed(problem, options).height, 1 << 20);
  EXPECT_EQ(polls, 3);
}

// Everything interferes, though no intervals overlap: a planner that looks at all pairs makes 200 million queries.
struct AllInterfere : Interference {
  bool interferes(uint32_t, uint32_t) const override { return ++asked, true; }
  int64_t settled(uint32_t) const override { return INT64_MAX / 2; }
  mutable int64_t asked = 0;
};

TEST(Offsets, FirstPackingsAndConflictsAreStoppedToo) {
  Problem problem;
  constexpr uint32_t count = 20'000;
  for (uint32_t i = 0; i < count; ++i) problem.buffers.push_back({static_cast<int64_t>(i), static_cast<int64_t>(i) + 1, 64 + i % 7, 64});
  const auto interference = std::make_shared<AllInterfere>();
  problem.interference = interference;
  // The counter serves as the clock: the planner must not do much between two polls of `stop`, wherever it is.
  for (int last = 1; last < 16; ++last) {
    interference->asked = 0;
    PackOptions options;
    options.effort = INT64_MAX;
    int polls = 0;
    int64_t before = 0, most = 0;
    options.stop = [&] {
      most = std::max(most, interference->asked - before);
      before = interference->asked;
      return ++polls >= last;
    };
    const Result<Solution> solution = pack(problem, options);
    ASSERT_TRUE(solution.ok()) << solution.status().text();
    EXPECT_EQ(polls, last) << "nothing is asked once it has said stop, and nothing ends before";
    most = std::max(most, interference->asked - before);
    EXPECT_LT(most, 4'000'000) << last;
    // The buffers do not overlap.
    std::vector<int64_t> offsets = solution->offsets;
    std::sort(offsets.begin(), offsets.end());
    for (size_t i = 1; i < offsets.size(); ++i) ASSERT_GE(offsets[i] - offsets[i - 1], 64);
  }
}

TEST(Offsets, SmallProblemsAskTheStopTooHoweverShortTheirSearches) {
  const Problem problem = random_lives(12, 12, 6, 1000, 3);
  PackOptions options;
  options.effort = INT64_MAX;
  int polls = 0;
  options.stop = [&] { return ++polls == 5; };
  const Solution solution = packed(problem, options);
  EXPECT_TRUE(polls == 5 || solution.optimal);
}

TEST(Offsets, LargeProblemsStayValid) {
  for (const size_t stash : {0, 2, 7}) {
    const Problem problem = serial_net(4'000, stash, stash + 1);
    const Solution solution = packed(problem);
    EXPECT_LE(static_cast<double>(solution.height), 1.2 * static_cast<double>(solution.lower_bound));
  }
  packed(random_lives(3'000, 3'000, 60, 100'000, 8));
}

TEST(Offsets, CapacityIsAnErrorThatNamesTheSmallestHeight) {
  const Problem problem = of({{0, 2, 60, 1}, {1, 3, 50, 1}});
  PackOptions options;
  options.capacity = 110;
  EXPECT_TRUE(pack(problem, options).ok());
  options.capacity = 109;
  const Result<Solution> result = pack(problem, options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::limit_exceeded);
  EXPECT_NE(result.status().text().find("110 bytes"), std::string::npos) << result.status().text();
  EXPECT_NE(result.status().text().find("no packing is lower"), std::string::npos) << result.status().text();
}

TEST(Offsets, StopsAtTheFirstPackingWithinTheCapacity) {
  const Problem problem = planted(300, 1000, 1 << 20, 1024, 5, 4);
  PackOptions options;
  options.effort = 0;
  const Solution first = packed(problem, options);
  ASSERT_GT(first.height, first.lower_bound) << "solved at once: a harder problem is needed";
  // Polls of `stop` count the work: a million operations lie between two.
  const auto polls_within = [&](int64_t capacity, Solution* solution) {
    int polls = 0;
    options.effort = INT64_MAX;
    options.capacity = capacity;
    options.stop = [&] { return ++polls == 200; };
    *solution = packed(problem, options);
    return polls;
  };
  Solution solution;
  EXPECT_EQ(polls_within(INT64_MAX, &solution), 200) << "without a capacity it seeks the lowest";
  const int64_t lowest = solution.height;
  EXPECT_LT(polls_within(first.height, &solution), 2) << "the first packing does";
  EXPECT_EQ(solution.offsets, first.offsets);
  EXPECT_FALSE(solution.optimal);
  const int64_t between = lowest + (first.height - lowest) / 2;
  EXPECT_LT(polls_within(between, &solution), 200) << "one that the search comes by does";
  EXPECT_LE(solution.height, between);
  EXPECT_GT(solution.height, lowest);
}

TEST(Offsets, ImpossibleBuffersAreRefused) {
  const auto code = [](Buffer buffer) { return pack(of({{0, 1, 1, 1}, buffer})).status().code(); };
  EXPECT_EQ(code({3, 3, 1, 1}), Code::invalid_argument);
  EXPECT_EQ(code({4, 3, 1, 1}), Code::invalid_argument);
  EXPECT_EQ(code({0, 1, -1, 1}), Code::invalid_argument);
  EXPECT_EQ(code({0, 1, 1, 0}), Code::invalid_argument);
  EXPECT_EQ(code({0, 1, 1, 3}), Code::invalid_argument);
  EXPECT_EQ(code({0, 1, 1, -64}), Code::invalid_argument);
  EXPECT_EQ(code({0, 1, INT64_MAX, 1}), Code::limit_exceeded);
  EXPECT_EQ(code({0, 1, 1, int64_t{1} << 62}), Code::ok);
  EXPECT_EQ(code({INT64_MIN, INT64_MAX, 1, 1}), Code::ok);
}

// --- the checker ---

struct Corruption {
  const char* what;
  void (*apply)(Problem&, Solution&);
};

TEST(OffsetsCheck, RejectsTwentyCorruptions) {
  // Buffers 0 and 1 live together, 2 shares with 0, 3 with 1; 4 lives throughout.
  const Problem good = of({{0, 4, 100, 4}, {0, 4, 60, 4}, {4, 8, 100, 4}, {4, 8, 60, 4}, {0, 8, 32, 32}});
  Solution plan;
  plan.offsets = {32, 132, 32, 132, 0};
  plan.height = 192;
  plan.lower_bound = 192;
  plan.optimal = true;
  ASSERT_TRUE(check(good, plan).ok()) << check(good, plan).text();
  const Corruption corruptions[] = {
      {"offset missing", [](Problem&, Solution& s) { s.offsets.pop_back(); }},
      {"offset too many", [](Problem&, Solution& s) { s.offsets.push_back(0); }},
      {"no offsets", [](Problem&, Solution& s) { s.offsets.clear(); }},
      {"negative offset", [](Problem&, Solution& s) { s.offsets[4] = -32; }},
      {"misaligned by one", [](Problem&, Solution& s) { s.offsets[3] = 131; }},
      {"misaligned for a wider type", [](Problem&, Solution& s) { s.offsets[4] = 16; }},
      {"overlap by one unit", [](Problem&, Solution& s) { s.offsets[1] = 128; }},
      {"same place", [](Problem&, Solution& s) { s.offsets[1] = 32; }},
      {"contained", [](Problem&, Solution& s) { s.offsets[1] = 36; }},
      {"two swapped", [](Problem&, Solution& s) { std::swap(s.offsets[0], s.offsets[4]); }},
      {"all at zero", [](Problem&, Solution& s) { std::fill(s.offsets.begin(), s.offsets.end(), 0); }},
      {"above the height", [](Problem&, Solution& s) { s.offsets[3] = 136; }},
      {"height too small", [](Problem&, Solution& s) { s.height = 191; }},
      {"height too large", [](Problem&, Solution& s) { s.height = 193; }},
      {"height of the sum", [](Problem&, Solution& s) { s.height = 352; }},
      {"bound above the height", [](Problem&, Solution& s) { s.lower_bound = 193; }},
      {"negative bound", [](Problem&, Solution& s) { s.lower_bound = -1; }},
      {"optimum not claimed", [](Problem&, Solution& s) { s.optimal = false; }},
      {"offset near the end of 63 bits", [](Problem&, Solution& s) { s.offsets[0] = INT64_MAX - 3; }},
      {"a longer life than was planned for", [](Problem& p, Solution&) { p.buffers[0].last = 5; }},
      {"a larger buffer than was planned for", [](Problem& p, Solution&) { p.buffers[0].bytes = 104; }},
      {"a stricter alignment than was planned for", [](Problem& p, Solution&) { p.buffers[0].alignment = 64; }},
      {"a bound that no step reaches",
       [](Problem& p, Solution& s) {
         p.buffers[4].bytes = 16;
         s.lower_bound = 192;
       }},
  };
  static_assert(std::size(corruptions) >= 20);
  for (const Corruption& corruption : corruptions) {
    Problem problem = good;
    Solution solution = plan;
    corruption.apply(problem, solution);
    const Status verdict = check(problem, solution);
    EXPECT_FALSE(verdict.ok()) << corruption.what;
    EXPECT_EQ(verdict.code(), Code::internal) << corruption.what;
  }
}

// An order given by hand, for the checker and for the planner.
class Ordered final : public Interference {
 public:
  Ordered(std::vector<std::pair<uint32_t, uint32_t>> before, int64_t end) : before_(std::move(before)), end_(end) {}
  bool interferes(uint32_t a, uint32_t b) const override {
    return std::find(before_.begin(), before_.end(), std::pair(std::min(a, b), std::max(a, b))) == before_.end();
  }
  int64_t settled(uint32_t) const override { return end_; }

 private:
  std::vector<std::pair<uint32_t, uint32_t>> before_;
  int64_t end_;
};

TEST(OffsetsCheck, BelievesTheInterferenceRatherThanTheIntervals) {
  Problem problem = of({{0, 1, 10, 1}, {1, 2, 10, 1}, {2, 3, 10, 1}});
  problem.interference = std::make_shared<Ordered>(std::vector<std::pair<uint32_t, uint32_t>>{{0, 2}}, 3);
  const Solution solution = packed(problem);  // 0 and 2 may share, 1 may be in use beside both
  EXPECT_EQ(solution.height, 20);
  EXPECT_EQ(solution.offsets[0], solution.offsets[2]);
  Solution shared = solution;
  shared.offsets = {0, 0, 0};
  shared.height = shared.lower_bound = 10;
  shared.optimal = true;
  EXPECT_FALSE(check(problem, shared).ok());
}

}  // namespace
}  // namespace heddle::offsets
