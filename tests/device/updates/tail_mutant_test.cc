// Update phases that join on devices, with one corruption: an update that does not obey its commit, an event that is not recorded before a
// step of the phase, a step of it that does not wait for one. The plan's order decides which of them are still right; nearly all others
// must show when an index is out of range or the run is stopped, under some delays of the devices.
//
// HEDDLE_LONG_TESTS=1 takes more nets (tools/soak.sh --mutants).
#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <random>
#include <thread>

#include "compile/plan_check/plan_check.h"
#include "device/device_support.h"
#include "device/plan_judge.h"
#include "device/plan_mutants.h"
#include "mutant_tally.h"

namespace heddle {
namespace {

using namespace testing_devices;
using testing::all_mutants;
using testing::max_seeds;
using testing::MutantFate;

HEDDLE_DEVICE_SUITE(TailMutant);

constexpr int gathers = 3, variables = 4;

// Rows of a variable, by indices that are fed, times x; then sums of those; then updates of all variables. On the first device, or on two.
Net gathering_net(uint64_t number) {
  std::mt19937_64 random(number);
  NetBuilder b("gathering");
  const bool spread = number % 2 == 1 && kind().devices > 1;
  const auto somewhere = [&](ValueId value) { return on(b, device_name(spread ? static_cast<int>(random() % 2) : 0), value); };
  const Shape matrix{4, 4};
  const ValueId x = b.input("x", DType::f32, matrix);
  std::vector<ValueId> held, terms;
  for (int i = 0; i < variables; ++i) held.push_back(b.variable("v" + std::to_string(i), whole_numbers(matrix, i, 3 + i)));
  for (int i = 0; i < gathers; ++i) {
    const std::string name = std::to_string(i);
    const ValueId rows = b.input("rows" + name, DType::i64, Shape{4});
    const ValueId picked = somewhere(b.add1("Gather", "picked" + name, {held[random() % held.size()], rows}));
    terms.push_back(somewhere(b.add1("MatMul", "product" + name, {picked, x})));
  }
  for (int i = 0; i < 3; ++i) {
    const ValueId one = terms[random() % terms.size()], other = terms[random() % terms.size()];
    terms.push_back(somewhere(b.add1("Add", "sum" + std::to_string(i), {one, other})));
  }
  for (int i = 0; i < variables; ++i) {
    const ValueId v = held[static_cast<size_t>(i)];
    b.updates(somewhere(b.add1("AccumulateAdd", "next" + std::to_string(i), {v, terms[random() % terms.size()]}, {}, "heddle")), v);
  }
  b.output(terms.back());
  return b.finish();
}

struct Trial {
  SharedMemory memory;
  std::optional<Prepared> prepared;
  std::vector<float> x = std::vector<float>(16, 0.5F);
  std::vector<std::vector<int64_t>> rows = std::vector<std::vector<int64_t>>(gathers, {3, 0, 2, 1});

  // Appends how the run has ended and what the variables are then.
  void note(const Status& status, std::vector<std::vector<char>>& results) const {
    results.push_back({static_cast<char>(status.code())});
    if (status.ok())
      for (std::vector<char>& output : outputs(prepared->context)) results.push_back(std::move(output));
    for (int i = 0; i < variables; ++i) {
      auto value = prepared->session.read_variable("v" + std::to_string(i));
      results.push_back(value.ok() ? bytes(value->view()) : std::vector<char>());
    }
  }
};

// Returns whether no update is made if data are bad or the run is stopped: updates come after the steps that decide it, and obey them. A
// simulated device has no mark for indices: its work after a step that has failed is not done, nor is that after an abort.
bool is_held_in_order(const Plan& plan) {
  const CompletionOrder order(plan);
  std::vector<uint32_t> commits, picks;
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    if (plan.steps[s].on_device && plan.steps[s].on_device->kind == DeviceWork::Kind::commit) commits.push_back(s);
    if (plan.steps[s].type == "Gather") picks.push_back(s);
  }
  const auto are_before = [&](const std::vector<uint32_t>& all, uint32_t step) {
    return std::all_of(all.begin(), all.end(), [&](uint32_t s) { return order.step_is_before(s, step); });
  };
  const bool obeys = !kind().runs_host_kernels;
  if (obeys && !are_before(picks, commits.front())) return false;
  for (uint32_t s = plan.graph.tail_begin; s < plan.steps.size(); ++s) {
    if (!plan.steps[s].updates_variable) continue;
    if (!are_before(picks, s)) return false;
    const DeviceWork& work = *plan.steps[s].on_device;
    const uint32_t commit =
        *std::find_if(commits.begin(), commits.end(), [&](uint32_t c) { return plan.steps[c].on_device->device == work.device; });
    const bool finds = commit == commits.front() || order.step_is_before(commits.front(), commit);
    if (obeys && (!work.held || !finds || !order.step_is_before(commit, s))) return false;
  }
  return true;
}

struct TailSite {
  const char* kind = "";
  std::optional<MutantSite> site;  // none: step `update` does not obey its commit
  uint32_t update = 0;
};

std::vector<TailSite> sites_of(const Plan& plan) {
  std::vector<TailSite> all;
  const MutantSites sites(plan);
  for (uint32_t s = plan.graph.tail_begin; s < plan.steps.size(); ++s)
    if (plan.steps[s].updates_variable) all.push_back({"holds ignored", std::nullopt, s});
  for (const MutantSite& site : sites.of(MutantKind::wait))
    if (site.step >= plan.graph.tail_begin) all.push_back({"tail wait dropped", site, 0});
  for (const MutantSite& site : sites.of(MutantKind::event)) {
    const auto event = static_cast<uint32_t>(plan.steps[site.step].on_device->records);
    const auto waits = [&](const PlanStep& step) {
      return step.on_device && std::count(step.on_device->waits.begin(), step.on_device->waits.end(), event) > 0;
    };
    if (std::any_of(plan.steps.begin() + plan.graph.tail_begin, plan.steps.end(), waits)) all.push_back({"tail event dropped", site, 0});
  }
  return all;
}

void corrupt(Plan& plan, const TailSite& site) {
  if (site.site)
    mutate(plan, *site.site);
  else
    plan.steps[site.update].on_device->held = false;
}

std::string text_of(const Plan& plan, const TailSite& site) {
  return site.site ? describe(plan, *site.site) : "\"" + plan.steps[site.update].name + "\"";
}

class TailHunt {
 public:
  void over(uint64_t number) {
    number_ = number;
    const std::vector<std::vector<char>> right = results(nullptr, 0);
    for (uint64_t seed = 1; seed <= 10; ++seed) ASSERT_EQ(results(nullptr, seed), right) << "as it was made, seed " << seed;
    const auto as_made = compiled();
    ASSERT_TRUE(as_made->prepared) << "net " << number;
    const Plan& plan = as_made->prepared->plan();
    ASSERT_TRUE(plan.joins_tail);
    ASSERT_TRUE(is_held_in_order(plan));
    PlanJudge judge(plan);
    ASSERT_TRUE(judge.is_determined());
    for (const TailSite& site : sites_of(plan)) {
      const std::string what = "net " + std::to_string(number) + ", " + text_of(plan, site);
      SCOPED_TRACE(what);
      const auto changed = compiled();
      corrupt(const_cast<Plan&>(changed->prepared->plan()), site);
      if (!site.site) {
        const std::string complaint = compiling::check(changed->prepared->plan()).text();
        EXPECT_NE(complaint.find("does not obey its commit"), std::string::npos) << complaint;
      }
      std::string why;
      const bool equivalent = is_held_in_order(changed->prepared->plan());
      if (equivalent && !judge.is_equivalent(changed->prepared->plan(), &why)) continue;  // only data are wrong: mutant_test.cc
      uint64_t seed = 1;
      const uint64_t last = equivalent ? 2 : max_seeds;
      while (seed <= last && results(&site, seed) == right) ++seed;
      if (equivalent) {
        ASSERT_GT(seed, last);
      }
      tally_.add(site.kind, equivalent ? MutantFate::equivalent : seed <= last ? MutantFate::found : MutantFate::survived, what);
    }
  }
  const testing::MutantTally& tally() const { return tally_; }

 private:
  // Compiles in a runtime of its own.
  std::unique_ptr<Trial> compiled() const {
    const DeviceSetting peers("PEERS", "1");
    auto trial = std::make_unique<Trial>();
    auto session = device_runtime(2).open(gathering_net(number_), silent(4));
    EXPECT_TRUE(session.ok()) << session.status().text();
    if (!session.ok()) return trial;
    auto context = session->prepare_on(trial->memory);
    EXPECT_TRUE(context.ok()) << context.status().text();
    if (context.ok()) trial->prepared.emplace(Prepared{std::move(*session), std::move(*context), {}});
    return trial;
  }

  // Returns how runs end and what the variables are then: a run, one for each of the indices out of range, one that is stopped before the
  // devices begin, and another run.
  std::vector<std::vector<char>> results(const TailSite* site, uint64_t seed) const {
    const DeviceSetting delays("SEED", std::to_string(seed));
    const Gate gate;
    std::vector<std::vector<char>> all;
    const auto trial = compiled();
    if (!trial->prepared) return all;
    Session& session = trial->prepared->session;
    if (site) {
      corrupt(const_cast<Plan&>(trial->prepared->plan()), *site);
      // A context copies its instructions from the plan when it is made.
      auto context = session.prepare_on(trial->memory);
      EXPECT_TRUE(context.ok()) << context.status().text();
      if (!context.ok()) return all;
      trial->prepared->context = std::move(*context);
    }
    Context& context = trial->prepared->context;
    EXPECT_TRUE(context.bind_input(0, trial->x.data()).ok());
    for (size_t i = 0; i < gathers; ++i) EXPECT_TRUE(context.bind_input(i + 1, trial->rows[i].data()).ok());
    trial->note(context.run(), all);
    for (std::vector<int64_t>& rows : trial->rows) {
      rows[2] = 9;
      trial->note(context.run(), all);
      rows[2] = 2;
    }
    stop_before_it_begins(context, gate, *trial, all);
    trial->note(context.run(), all);
    let_finish(trial->prepared->plan(), *Internals::workspace(trial->memory));
    return all;
  }
  static void stop_before_it_begins(Context& context, const Gate& gate, const Trial& trial, std::vector<std::vector<char>>& results) {
    constexpr std::chrono::milliseconds enough_to_enqueue(4);
    std::promise<Status> over;
    gate.close();
    ASSERT_TRUE(context.run_async([&](Status status) { over.set_value(std::move(status)); }).ok());
    std::this_thread::sleep_for(enough_to_enqueue);
    context.cancel();
    std::this_thread::sleep_for(enough_to_enqueue);
    gate.open();
    trial.note(over.get_future().get(), results);
  }

  uint64_t number_ = 0;
  testing::MutantTally tally_;
};

TEST_P(TailMutant, ThatIsWrongShowsOnADevice) {
  HEDDLE_DEVICE_NEEDS(can_be_held);
  if (kind().has_few_kernels) GTEST_SKIP() << "devices of kind " << kind().name << " have no kernel for Gather";
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "mutants race";
#endif
  TailHunt hunt;
  for (uint64_t number = 0; number < (all_mutants ? 8u : 2u) && !HasFatalFailure(); ++number) hunt.over(number);
  hunt.tally().print();
  EXPECT_GE(hunt.tally().wrong(), all_mutants ? 30u : 8u);
  EXPECT_GE(100 * hunt.tally().found(), 97 * hunt.tally().wrong());
}

}  // namespace
}  // namespace heddle
