// Plans with one corruption, drawn by seed: the judge decides which of them still give the same results in every legal execution, and
// nearly all of the others must show when they are run on a simulated device, under some of its orders.
//
// HEDDLE_LONG_TESTS=1 takes ten nets with at least 400 mutants that are wrong (tools/soak.sh --mutants), else a few of them.
#include <algorithm>
#include <optional>
#include <random>

#include "device_support.h"
#include "group_nets.h"
#include "mutant_tally.h"
#include "plan_judge.h"
#include "plan_mutants.h"

namespace heddle {
namespace {

using namespace testing_devices;
using testing::all_mutants;
using testing::max_seeds;
using testing::MutantFate;

HEDDLE_DEVICE_SUITE(Mutant);

const uint64_t seeds_of_equivalents = all_mutants ? 20 : 2;  // mutants that the judge calls equivalent never show
constexpr int64_t patience_ns = 5'000'000'000;               // for a run that does not end

// A value computed from the positive numbers of `x`: only the device knows how many there are.
ValueId found_in(NetBuilder& b, const std::string& name, ValueId x) {
  const ValueId positive = b.add1("Relu", name + "p", {x});
  const ValueId each = b.add1("Transpose", name + "e", {b.add1("NonZero", name + "w", {positive})});
  const ValueId numbers = b.add1("GatherND", name + "g", {positive, each});
  const ValueId sum =
      b.add1("ReduceSum", name + "r", {b.add1("Sin", name + "x", {numbers}), b.constant_ints(name + "a", {0})}, {{"keepdims", int64_t{0}}});
  return b.add1("Sin", name, {sum});
}

// Operators that fork and join, with a variable that is read before it is updated. Each preserves differences: no two of them cancel each
// other, and nothing grows until the rest is lost in it. `late`: some of them find extents that only the run knows.
Net woven_net(uint64_t seed, bool late) {
  constexpr int64_t side = 8;
  std::mt19937_64 random(seed);
  NetBuilder b("woven");
  const Shape matrix{side, side};
  std::vector<ValueId> values = {b.input("x", DType::f32, matrix), b.constant("w", whole_numbers(matrix, static_cast<int>(seed % 7), 3))};
  const ValueId variable = b.variable("v", whole_numbers(matrix, 2, 5));
  values.push_back(variable);
  const auto any = [&] { return values[random() % values.size()]; };
  const size_t count = 14 + random() % 10;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = "n" + std::to_string(i);
    const ValueId one = any();
    ValueId other = any();
    while (other == one) other = any();
    if (late && i % 3 == 2) {
      values.push_back(b.add1("Add", name, {other, found_in(b, name + "f", one)}));
      continue;
    }
    switch (random() % 6) {
      case 0:
        values.push_back(b.add1("MatMul", name, {b.add1("Softmax", name + "s", {b.add1("Sin", name + "b", {one})}), other}));
        break;
      case 1:
        values.push_back(b.add1("Sin", name, {b.add1("Transpose", name + "t", {one})}));
        break;
      case 2:
        values.push_back(b.add1("Sub", name, {one, other}));
        break;
      case 3:
        values.push_back(b.add1("MatMul", name, {b.add1("Sin", name + "b", {one}), b.add1("Sin", name + "c", {other})}));
        break;
      default:
        values.push_back(b.add1("Add", name, {one, other}));
        break;
    }
  }
  const ValueId next = b.add1("Assign", "next", {variable, b.add1("Sin", "last", {values.back()})}, {}, "heddle");
  b.updates(next, variable);
  for (size_t i = values.size() - 4; i < values.size(); ++i) b.output(values[i]);
  b.output(next);
  return b.finish();
}

// Returns a case by number: on one device alone, over the host and both devices, and the same with peer access between these.
struct MutantCase {
  Net net;
  SessionOptions options;
  bool peers = false;
  std::vector<std::string> plugins = {};
};
MutantCase mutant_case(uint64_t number) {
  MutantCase c = {woven_net(number, number % 3 == 1), silent(4), number % 3 == 0};
  c.options.check_plans = false;
  if (number % 3 == 1) {
    c.options.device = device_name(0);
    return c;
  }
  std::mt19937_64 random(number);
  for (Node& node : c.net.nodes) {
    const auto place = random() % 5;  // 0: the host
    if (place > 0) node.device = device_name(static_cast<int>(place % 2));
  }
  return c;
}

// Operators on both devices, each on values of its own device, among them collectives that are launched in groups, and at the end one value
// that crosses over.
MutantCase group_case(uint64_t number) {
  std::mt19937_64 random(number);
  NetBuilder b("groups");
  const Shape matrix{8, 8};
  constexpr int devices = 2;
  std::vector<std::vector<ValueId>> values(devices);
  const ValueId x = b.input("x", DType::f32, matrix), w = b.constant("w", whole_numbers(matrix, 1, 3));
  const ValueId variable = b.variable("v", whole_numbers(matrix, 2, 5));
  for (int d = 0; d < devices; ++d) values[static_cast<size_t>(d)] = {x, w, variable};
  for (int i = 0; i < 12; ++i) {
    const bool collective = i % 4 == 3;
    for (int d = 0; d < devices; ++d) {
      std::vector<ValueId>& own = values[static_cast<size_t>(d)];
      const std::string name = "n" + std::to_string(i) + "d" + std::to_string(d);
      const ValueId one = collective ? own.back() : own[random() % own.size()];
      const ValueId other = own[random() % own.size()];
      if (collective)
        own.push_back(sum_of_both(b, name, d, one));
      else if (random() % 2 == 0)
        own.push_back(on(b, device_name(d), b.add1("MatMul", name, {on(b, device_name(d), b.add1("Sin", name + "s", {one})), other})));
      else
        own.push_back(on(b, device_name(d), b.add1("Sub", name, {on(b, device_name(d), b.add1("Sin", name + "s", {other})), one})));
    }
  }
  const ValueId crossed = on(b, device_name(1), b.add1("Add", "crossed", {values[0].back(), values[1].back()}));
  const ValueId next = b.add1("Assign", "next", {variable, on(b, device_name(0), b.add1("Sin", "last", {crossed}))}, {}, "heddle");
  b.updates(next, variable);
  for (const std::vector<ValueId>& own : values) b.output(own.back());
  b.output(next);
  MutantCase c = {b.finish(), with_both_devices(4), number % 2 == 0, {"groups"}};
  c.options.check_plans = false;
  return c;
}

// A net's outputs in two runs with different feeds, and the variable at the end; empty: a run failed.
using Results = std::vector<std::vector<char>>;

Results run_twice(Context& context, const Session& session) {
  Results results;
  RunOptions options;
  options.deadline_ns = patience_ns;
  for (int run = 0; run < static_cast<int>(CompletionOrder::runs); ++run) {
    std::vector<std::shared_ptr<const Blob>> feeds;
    for (const PortInfo& port : session.inputs()) feeds.push_back(whole_numbers(port.shape, 3 + 4 * run, 5 + run));
    for (size_t i = 0; i < feeds.size(); ++i) EXPECT_TRUE(context.bind_input(i, feeds[i]->data).ok());
    if (!context.run(options).ok()) return {};
    for (std::vector<char>& output : outputs(context)) results.push_back(std::move(output));
  }
  const auto variable = session.read_variable("v");
  if (!variable.ok()) return {};
  results.push_back(bytes(variable->view()));
  return results;
}

// Compiles in a runtime of its own, whose devices' memory contains nothing of an earlier run.
Result<Prepared> compiled(const MutantCase& c) {
  std::optional<DeviceSetting> peers;
  if (c.peers) peers.emplace("PEERS", "1");
  return prepare(device_runtime(2, c.plugins), c.net, c.options);
}

// Returns the results of the plan with `site` corrupted (null: as it was made), under the delays and the order of steps of `seed`.
Results results_of(const MutantCase& c, const MutantSite* site, uint64_t seed) {
  const DeviceSetting delays("SEED", std::to_string(seed));
  const SharedMemory memory;
  auto prepared = compiled(c);
  EXPECT_TRUE(prepared.ok()) << prepared.status().text();
  if (!prepared.ok()) return {};
  const Plan& plan = prepared->plan();
  if (site) mutate(const_cast<Plan&>(plan), *site);
  if (seed % 2 == 1) Internals::of(prepared->session).scheduler.shuffle_seed = seed;
  // A context copies its instructions from the plan when it is made.
  auto context = prepared->session.prepare_on(memory);
  EXPECT_TRUE(context.ok()) << context.status().text();
  if (!context.ok()) return {};
  Results results = run_twice(*context, prepared->session);
  let_finish(plan, *Internals::workspace(memory));
  return results;
}

class MutantHunt {
 public:
  void over(uint64_t number, size_t wanted, MutantCase (*make)(uint64_t) = mutant_case) {
    const MutantCase c = make(number);
    const Results right = results_of(c, nullptr, 0);
    ASSERT_FALSE(right.empty());
    for (uint64_t seed = 1; seed <= 10; ++seed) ASSERT_EQ(results_of(c, nullptr, seed), right) << "as it was made, seed " << seed;
    auto prepared = compiled(c);
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    const MutantSites sites(prepared->plan());
    PlanJudge judge(prepared->plan());
    ASSERT_TRUE(judge.is_determined());
    std::mt19937_64 random(number);
    for (const MutantSite& site : draw(sites, wanted, random)) {
      SCOPED_TRACE(::testing::Message() << "net " << number << ", " << describe(prepared->plan(), site));
      const std::string name = kinds_of_mutants[static_cast<size_t>(site.kind)].name;
      const std::string what = "net " + std::to_string(number) + ", " + describe(prepared->plan(), site) + ": ";
      std::string why;
      if (is_equivalent(judge, c, site, &why)) {
        tally_.add(name, MutantFate::equivalent, what);
        for (uint64_t seed = 1; seed <= seeds_of_equivalents; ++seed) ASSERT_EQ(results_of(c, &site, seed), right) << "seed " << seed;
        continue;
      }
      uint64_t seed = 1;
      while (seed <= max_seeds && results_of(c, &site, seed) == right) ++seed;
      tally_.add(name, seed <= max_seeds ? MutantFate::found : MutantFate::survived, what + why);
    }
  }
  const testing::MutantTally& tally() const { return tally_; }

 private:
  // Draws uniformly over the kinds that have sites left, then over their sites; none twice.
  static std::vector<MutantSite> draw(const MutantSites& sites, size_t wanted, std::mt19937_64& random) {
    std::vector<std::vector<MutantSite>> left;
    for (const KindOfMutant& kind : kinds_of_mutants)
      if (!sites.of(kind.kind).empty()) left.push_back(sites.of(kind.kind));
    std::vector<MutantSite> drawn;
    while (drawn.size() < wanted && !left.empty()) {
      const size_t k = random() % left.size(), at = random() % left[k].size();
      drawn.push_back(left[k][at]);
      left[k].erase(left[k].begin() + static_cast<std::ptrdiff_t>(at));
      if (left[k].empty()) left.erase(left.begin() + static_cast<std::ptrdiff_t>(k));
    }
    return drawn;
  }
  static bool is_equivalent(PlanJudge& judge, const MutantCase& c, const MutantSite& site, std::string* why) {
    auto prepared = compiled(c);
    EXPECT_TRUE(prepared.ok()) << prepared.status().text();
    mutate(const_cast<Plan&>(prepared->plan()), site);
    return judge.is_equivalent(prepared->plan(), why);
  }

  testing::MutantTally tally_;
};

TEST_P(Mutant, ThatIsWrongShowsOnASimulatedDevice) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "mutants race";
#endif
  MutantHunt hunt;
  for (uint64_t number = 1; number <= (all_mutants ? 10u : 6u) && !HasFatalFailure(); ++number) hunt.over(number, all_mutants ? 75 : 10);
  const testing::MutantTally& tally = hunt.tally();
  tally.print();
  EXPECT_GE(tally.wrong(), all_mutants ? 400u : 30u);
  EXPECT_GE(100 * tally.found(), (all_mutants ? 97 : 90) * tally.wrong());
}

TEST_P(Mutant, OfGroupsShowsOnASimulatedDevice) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "mutants race";
#endif
  MutantHunt hunt;
  for (uint64_t number = 1; number <= 6 && !HasFatalFailure(); ++number) hunt.over(number, all_mutants ? 75 : 10, group_case);
  const testing::MutantTally& tally = hunt.tally();
  tally.print();
  EXPECT_GE(tally.wrong(), all_mutants ? 200u : 30u);
  EXPECT_GE(100 * tally.found(), (all_mutants ? 97 : 90) * tally.wrong());
}

}  // namespace
}  // namespace heddle
