// One rank fails at a step of data-parallel training over two ranks of one process: each rank ends with one error, of the operator or of
// the rank that has left; variables are as before on both, or updated on the other one; and the next run is right.
//
// Every seventh step; HEDDLE_LONG_TESTS=1 takes all (tools/soak.sh --replicas).
#include <atomic>
#include <cstdlib>
#include <optional>
#include <thread>

#include "collectives/training_jobs.h"
#include "plugin/injection.h"

namespace heddle {
namespace {

using namespace testing_collectives;

HEDDLE_CREW_SUITE_OF(RankFaults, kinds_of_ranks);

Crew two_ranks(const Crew& kind) {
  Crew two = kind;
  two.size = 2;
  return two;
}

// A rank of a training, with its rows of the job's first batch.
struct TrainingRank {
  TrainingRank(const Crew& crew, const Job& job, int rank, const std::string& meeting) : runtime(runtime_with_devices(1, crew.kind)) {
    auto made = training_nets(runtime, crew, job);
    EXPECT_TRUE(made.ok()) << made.status().text();
    net = Internals::of(*made).nets[0];
    auto opened = runtime.open(*made, options_of(crew, meeting, rank));
    EXPECT_TRUE(opened.ok()) << opened.status().text();
    session.emplace(std::move(*opened));
    for (const Array& input : job.steps[0]) inputs.push_back(rows_of_rank(input, rank, crew.size));
    prepare();
  }
  // Makes a context from the plan as it is now.
  void prepare() {
    context.reset();
    if (kept_plans(*session) > 0) drop_idle_contexts(*session);
    auto prepared = session->prepare(inputs);
    EXPECT_TRUE(prepared.ok()) << prepared.status().text();
    context.emplace(std::move(*prepared));
    for (size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(context->bind_input(i, inputs[i].data).ok());
  }
  Plan& plan() { return const_cast<Plan&>(Internals::execution(*context).plan()); }
  std::map<std::string, Array> variables() const {
    Trained state;
    EXPECT_TRUE(testing_collectives::detail::read_variables(*session, net, &state).ok());
    return state.variables;
  }

  Runtime runtime;
  Net net;
  std::vector<TensorView> inputs;
  std::optional<Session> session;
  std::optional<Context> context;
  Status status;
};

struct TrainingRanks {
  TrainingRanks(const Crew& crew, const Job& job, const std::string& meeting)
      : first(crew, job, 0, meeting), second(crew, job, 1, meeting) {}
  void run() {
    std::thread beside([&] { second.status = second.context->run(); });
    first.status = first.context->run();
    beside.join();
  }
  // Runs as often as it takes until both are done: one that has not heard of the end of the last run learns of it in its next one.
  void run_until_done() {
    const auto run_one = [](TrainingRank& rank) {
      for (int again = 0; again < 5; ++again)
        if ((rank.status = rank.context->run()).ok()) return;
    };
    std::thread beside([&] { run_one(second); });
    run_one(first);
    beside.join();
  }
  // Runs both until the second is done. The first one may learn in a run that the second has left its last communicator; then the second
  // waits for it in a new one. Returns the first failure of the first one.
  Status run_until_second_is_done() {
    std::atomic<bool> second_is_done{false}, first_has_failed{false}, first_is_done{false};
    Status failure;
    std::thread beside([&] {
      second.status = second.context->run();
      second_is_done = true;
    });
    std::thread here([&] {
      do {
        first.status = first.context->run();
        if (failure.ok()) failure = first.status;
        first_has_failed = !failure.ok();
      } while (!second_is_done && !first.status.ok());
      first_is_done = true;
    });
    beside.join();
    for (; !first_is_done; std::this_thread::yield())
      if (first_has_failed) first.context->cancel();  // a run more, to which no one comes
    here.join();
    return failure;
  }
  TrainingRank first, second;
};

void check_step(const Crew& crew, const Job& job, uint32_t step, const std::map<std::string, Array>& before,
                const std::map<std::string, Array>& after) {
  TrainingRanks ranks(crew, job, "fault at " + std::to_string(step));
  TrainingRank &whole = ranks.first, &faulty = ranks.second;
  PlanStep& at = faulty.plan().steps[step];
  const bool tail = step >= faulty.plan().graph.tail_begin;
  SCOPED_TRACE(std::to_string(step) + ", \"" + at.name + "\" (" + at.type.text() + ")");
  Injection in(at, [](const heddle_run_context& context, const std::function<heddle_status()>&) { return Injection::fail(context); });
  faulty.prepare();
  in.arm();
  ranks.run();
  ASSERT_TRUE(in.reached());
  EXPECT_EQ(faulty.status.diagnostic().node, at.name) << faulty.status.text();
  EXPECT_NE(faulty.status.text().find("it goes wrong, as it was to"), std::string::npos) << faulty.status.text();
  for (const Diagnostic& other : faulty.status.diagnostic().attached) ADD_FAILURE() << Status(other).text();
  if (tail) {  // of an update: the other rank has made all of its own
    EXPECT_TRUE(whole.status.ok()) << whole.status.text();
    EXPECT_EQ(whole.variables(), after);
    const Status said = ranks.run_until_second_is_done();
    EXPECT_EQ(faulty.status.code(), Code::hazard) << faulty.status.text();
    EXPECT_NE(said.text().find("rank 1 has left"), std::string::npos) << said.text();
    EXPECT_EQ(whole.variables(), after);
    for (const auto& [name, value] : before)
      for (TrainingRank* const rank : {&whole, &faulty})
        ASSERT_TRUE(rank->session->write_variable(name, {value.dtype, value.shape, const_cast<char*>(value.bytes.data())}).ok());
  } else {
    EXPECT_EQ(whole.status.code(), Code::device_failed) << whole.status.text();
    EXPECT_NE(whole.status.text().find("rank 1 has left"), std::string::npos) << whole.status.text();
    EXPECT_TRUE(whole.status.diagnostic().attached.empty()) << whole.status.text();
    EXPECT_EQ(whole.variables(), before);
    EXPECT_EQ(faulty.variables(), before);
  }
  ranks.run_until_done();
  for (TrainingRank* const rank : {&whole, &faulty}) {
    EXPECT_TRUE(rank->status.ok()) << rank->status.text();
    EXPECT_EQ(rank->variables(), after);
  }
}

void check_job(const Crew& crew, const Job& job, const std::string& name, size_t* runs) {
  SCOPED_TRACE(name);
  TrainingRanks clean(crew, job, "no fault of " + name);
  const std::map<std::string, Array> before = clean.first.variables();
  const std::vector<uint32_t> steps = working_steps(clean.first.plan());
  clean.run();
  ASSERT_TRUE(clean.first.status.ok()) << clean.first.status.text();
  const std::map<std::string, Array> after = clean.first.variables();
  EXPECT_EQ(clean.second.variables(), after);
  const size_t stride = std::getenv("HEDDLE_LONG_TESTS") ? 1 : 7;
  for (size_t i = *runs % stride; i < steps.size() && !::testing::Test::HasFailure(); i += stride, ++*runs)
    check_step(crew, job, steps[i], before, after);
}

TEST_P(RankFaults, EndBothRunsAndLeaveBothAlike) {
  size_t runs = 0;
  Job sigmoid = sigmoid_job(DType::f32, 12, 1);
  sigmoid.how.optimizer = "adam";
  sigmoid.how.clip_norm = 0.05;
  check_job(two_ranks(GetParam()), sigmoid, "sigmoid", &runs);
  check_job(two_ranks(GetParam()), lookup_job(12, 1), "lookup", &runs);
  check_job(two_ranks(GetParam()), normalised_job(12, 1), "normalised", &runs);
  EXPECT_GE(runs, 15u);
  std::printf("%zu faults\n", runs);
}

}  // namespace
}  // namespace heddle
