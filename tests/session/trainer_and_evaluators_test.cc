// A trainer beside evaluators, in one session: each evaluation, and each file of saved variables, is of one step, never of the middle of
// one.
//
// The test counts runs, not time; HEDDLE_TRAINER_SECONDS makes it continue for at least so long (tools/soak.sh --training).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>

#include "heddle/training.h"
#include "load/temporary_folder.h"
#include "small_nets.h"

namespace heddle {
namespace {

// The loss is the sum of u and v, so that a step of sgd with rate 1 takes 1 from each element: after n steps both are -n everywhere. "look"
// outputs the least and the largest of both together, and n.
constexpr std::string_view pair_text = R"json({"heddle": 1, "name": "pair", "operator_sets": [{"domain": "", "version": 18}],
 "inputs": [], "outputs": ["loss"],
 "variables": [{"name": "u", "dtype": "f32", "dims": [256, 64], "trainable": true, "initializer": "constant(0)"},
  {"name": "v", "dtype": "f32", "dims": [256, 64], "trainable": true, "initializer": "constant(0)"}],
 "values": [{"name": "u", "kind": "variable", "variable": "u", "version": 0}, {"name": "v", "kind": "variable", "variable": "v", "version": 0}],
 "nodes": [{"name": "both", "type": "Add", "inputs": ["u", "v"], "outputs": ["both"]},
  {"name": "loss", "type": "ReduceSum", "inputs": ["both"], "outputs": ["loss"], "attributes": {"keepdims": {"int": 0}}}],
 "nets": [{"name": "look", "operator_sets": [{"domain": "", "version": 18}], "inputs": [], "outputs": ["least", "largest", "steps"],
  "variables": [{"name": "step", "dtype": "i64", "dims": [], "initializer": "constant(0)"},
   {"name": "v", "dtype": "f32", "dims": [256, 64], "trainable": true}, {"name": "u", "dtype": "f32", "dims": [256, 64], "trainable": true}],
  "values": [{"name": "step", "kind": "variable", "variable": "step", "version": 0},
   {"name": "v", "kind": "variable", "variable": "v", "version": 0}, {"name": "u", "kind": "variable", "variable": "u", "version": 0}],
  "nodes": [{"name": "all", "type": "Concat", "inputs": ["u", "v"], "outputs": ["all"], "attributes": {"axis": {"int": 0}}},
   {"name": "least", "type": "ReduceMin", "inputs": ["all"], "outputs": ["least"], "attributes": {"keepdims": {"int": 0}}},
   {"name": "largest", "type": "ReduceMax", "inputs": ["all"], "outputs": ["largest"], "attributes": {"keepdims": {"int": 0}}},
   {"name": "steps", "type": "Identity", "inputs": ["step"], "outputs": ["steps"]}]}]})json";

Nets pair_that_learns(const Runtime& runtime) {
  auto nets = Nets::read_bytes(pair_text.data(), pair_text.size(), "");
  EXPECT_TRUE(nets.ok()) << nets.status().text();
  TrainingOptions options;
  options.losses = {"loss"};
  options.learning_rate = *LearningRate::parse(1, "constant");
  const Status added = nets->add_training(runtime, "pair", options, "train");
  EXPECT_TRUE(added.ok()) << added.text();
  return *nets;
}

// The outputs of "look".
struct Sight {
  float least = 0, largest = 0;
  int64_t steps = -1;
  bool is_of_one_step() const { return least == largest && largest == static_cast<float>(-steps); }
};

Result<Sight> look(Session& session) {
  HEDDLE_TRY(const std::vector<Tensor> seen, session.run({}));
  return Sight{*static_cast<const float*>(seen[0].data()), *static_cast<const float*>(seen[1].data()),
               *static_cast<const int64_t*>(seen[2].data())};
}

Result<Sight> look(Context& context, Sight sight) {
  HEDDLE_CHECK(context.bind_output(0, &sight.least, sizeof(float)));
  HEDDLE_CHECK(context.bind_output(1, &sight.largest, sizeof(float)));
  HEDDLE_CHECK(context.bind_output(2, &sight.steps, sizeof(int64_t)));
  HEDDLE_CHECK(context.run());
  return sight;
}

// The state that all threads share: the progress of each, and the first failure.
struct Progress {
  static constexpr int evaluators = 4;
  std::atomic<int64_t> steps{0}, saves{0}, evaluations[evaluators] = {};
  std::atomic<bool> done{false};
  std::mutex mutex;
  std::string wrong;

  void fail(const std::string& what) {
    const std::lock_guard lock(mutex);
    if (wrong.empty()) wrong = what;
    done = true;
  }
  // Returns false if the test is over.
  bool check(const Result<Sight>& sight, const char* who) {
    if (!sight.ok()) {
      fail(sight.status().text());
    } else if (!sight->is_of_one_step()) {
      fail(std::string(who) + " after " + std::to_string(sight->steps) + " steps: from " + std::to_string(sight->least) + " to " +
           std::to_string(sight->largest));
    }
    return !done;
  }
  bool all_have(int64_t runs, int64_t files) const {
    return steps >= runs && saves >= files &&
           std::all_of(std::begin(evaluations), std::end(evaluations), [&](const auto& n) { return n >= runs; });
  }
};

// Every other evaluator has a context of its own.
void evaluate(const Session& session, int which, Progress& progress) {
  auto own = session.net("look");
  std::optional<Context> context;
  if (own.ok() && which % 2 == 1) {
    auto prepared = own->prepare();
    if (!prepared.ok()) return progress.fail(prepared.status().text());
    context = std::move(*prepared);
  }
  int64_t before = 0;
  do {
    const Result<Sight> sight = context ? look(*context, {}) : look(*own);
    if (!progress.check(sight, "an evaluation")) return;
    if (sight->steps < before) return progress.fail("an evaluation saw an earlier step than the one before it");
    before = sight->steps;
    ++progress.evaluations[which];
  } while (!progress.done);
}

void save(const Session& session, const Runtime& runtime, const std::string& file, Progress& progress) {
  auto other = runtime.open(pair_that_learns(runtime));
  auto seen = other.ok() ? other->net("look") : Result<Session>(other.status());
  do {
    Status status = session.save_variables(file);
    if (status.ok()) status = other->load_variables(file);
    if (!status.ok()) return progress.fail(status.text());
    if (!progress.check(look(*seen), "a file")) return;
    ++progress.saves;
  } while (!progress.done);
}

TEST(TrainerAndEvaluators, EachEvaluationIsOfOneStep) {
  const char* const asked = std::getenv("HEDDLE_TRAINER_SECONDS");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(asked ? std::atoi(asked) : 0);
  const testing::TemporaryFolder folder;
  const Runtime r = testing_nets::runtime(2);
  auto session = r.open(pair_that_learns(r));
  ASSERT_TRUE(session.ok()) << session.status().text();
  Session train = *session->net("train");
  auto step = train.prepare();
  ASSERT_TRUE(step.ok()) << step.status().text();
  Progress progress;
  std::vector<std::thread> threads;
  for (int i = 0; i < Progress::evaluators; ++i) threads.emplace_back([&, i] { evaluate(*session, i, progress); });
  threads.emplace_back([&] { save(*session, r, (folder / "saved").string(), progress); });
  while (!progress.done && (!progress.all_have(100, 10) || std::chrono::steady_clock::now() < end)) {
    const Status status = step->run();
    if (!status.ok()) progress.fail(status.text());
    ++progress.steps;
  }
  progress.done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(progress.wrong, "");
  std::printf("%lld steps, %lld files;", static_cast<long long>(progress.steps), static_cast<long long>(progress.saves));
  for (const auto& evaluations : progress.evaluations) std::printf(" %lld", static_cast<long long>(evaluations));
  std::printf(" evaluations\n");
}

}  // namespace
}  // namespace heddle
