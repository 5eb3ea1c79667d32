// Measures how much of the communication of a training step between two processes is exposed, against what is predicted before.
//
//   heddle_rank_overlap_bench [LINK] [STEPS] [BATCH] [shared]
//
// Two processes with one thread each train a ResNet-18 with BATCH (4) samples each over a network that is emulated: LINK is
// DELAY_US,MB_PER_S (50,625). First both train alone at once, which gives the time of a step without communication, and that of its
// operators; then all-reduces of 4 KB and 16 MB are timed. From these the step of two ranks is predicted, and of up to 1,024; with "shared"
// for processes that have no processor left for their collectives. Then STEPS (12) steps of two ranks are measured. Medians, of rank 0.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "heddle/training.h"
#include "models/training_form.h"
#include "must.h"
#include "net/net.h"
#include "session/session_impl.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* world = "world";

struct Place {
  std::string folder;
  int rank = 0;
};

SessionOptions options_of(const Place& place, int ranks, const std::string& job) {
  SessionOptions options;
  CommunicatorOptions& communicator = options.communicators.emplace_back();
  communicator.rank = ranks > 1 ? place.rank : 0;
  communicator.size = ranks;
  if (ranks > 1) communicator.rendezvous = fmt::format("file:{}/{}", place.folder, job);
  return options;
}

// Waits for the other process.
class Together {
 public:
  Together(const Runtime& runtime, const Place& place) : session_(opened(runtime, place)), context_(must(session_.prepare())) {
    must(context_.bind_input(0, &x_));
  }
  void wait() { must(context_.run()); }

 private:
  static Session opened(const Runtime& runtime, const Place& place) {
    NetBuilder b("together");
    b.output(b.add1("Barrier", "all", {b.input("x", DType::f32, {1})}, {{"communicator", std::string(world)}}, "heddle"));
    return must(runtime.open(b.finish(), options_of(place, 2, "together")));
  }
  float x_ = 0;
  Session session_;
  Context context_;
};

// The median of a run's milliseconds, and the profile of that run.
struct Measured {
  double ms = 0;
  double beside_ms = 0;  // processor time of other threads than the caller's, a run
  Profile profile;
  std::shared_ptr<const PlanInfo> plan;
};

double processor_ms(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

// Processor time of other threads than the caller's until now.
double beside_ms() {
  return processor_ms(CLOCK_PROCESS_CPUTIME_ID) - processor_ms(CLOCK_THREAD_CPUTIME_ID);
}

Measured measure(Session& session, const std::vector<TensorView>& inputs, int runs, Together& together) {
  Context context = must(session.prepare(inputs));
  for (size_t i = 0; i < inputs.size(); ++i) must(context.bind_input(i, inputs[i].data));
  Measured measured;
  RunOptions options;
  std::vector<std::pair<double, Profile>> all(static_cast<size_t>(runs));
  double before = 0;
  for (int run = -2; run < runs; ++run) {
    if (run == 0) before = beside_ms();
    auto& [ms, profile] = all[static_cast<size_t>(std::max(run, 0))];
    options.profile = &profile;
    together.wait();
    const Clock::time_point start = Clock::now();
    must(context.run(options));
    ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  }
  together.wait();
  const auto middle = all.begin() + runs / 2;
  std::nth_element(all.begin(), middle, all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  measured.ms = middle->first;
  measured.profile = std::move(middle->second);
  measured.beside_ms = (beside_ms() - before) / runs;
  measured.plan = context.plan();
  return measured;
}

Session training(const Runtime& runtime, const Place& place, int64_t batch, int ranks) {
  models::RecipeOptions recipe;
  recipe.batch = batch;
  auto form = must(models::training_form("resnet18", recipe));
  TrainingOptions how;
  how.losses = {"loss"};
  how.parallel.communicator = world;
  how.parallel.ranks = 2;
  std::vector<Net> all;
  const std::string name = form.train.name;
  all.push_back(std::move(form.train));
  Nets nets = must(Nets::of(std::move(all)));
  must(nets.add_training(runtime, name, how, name));
  return must(runtime.open(nets, options_of(place, ranks, "training")));
}

Measured all_reduce(const Runtime& runtime, const Place& place, int64_t bytes, int runs, Together& together) {
  NetBuilder b("sum");
  b.output(b.add1("AllReduce", "sum", {b.input("x", DType::f32, {bytes / 4})}, {{"communicator", std::string(world)}}, "heddle"));
  Session session = must(runtime.open(b.finish(), options_of(place, 2, fmt::format("sum-{}", bytes))));
  std::vector<float> x(static_cast<size_t>(bytes / 4), 1);
  return measure(session, {{DType::f32, Shape{bytes / 4}, x.data()}}, runs, together);
}

void run_rank(const Place& place, int steps, int64_t batch, bool shared, int64_t delay_ns) {
  RuntimeOptions with;
  with.default_plugins = false;
  with.threads = 1;
  with.plugins = {HEDDLE_CPU_PLUGIN, HEDDLE_GLOO_PLUGIN};
  const Runtime runtime = must(Runtime::create(with));
  Together together(runtime, place);
  const bool says = place.rank == 0;
  std::vector<float> images(static_cast<size_t>(batch * 3 * 224 * 224), 0.5F);
  std::vector<int64_t> labels(static_cast<size_t>(batch), 1);
  const std::vector<TensorView> inputs = {{DType::f32, Shape{batch, 3, 224, 224}, images.data()},
                                          {DType::i64, Shape{batch}, labels.data()}};
  Measured alone;
  {
    Session session = training(runtime, place, batch, 1);
    alone = measure(session, inputs, steps, together);
  }
  const double short_ms = all_reduce(runtime, place, 4096, 100, together).ms;
  const Measured long_one = all_reduce(runtime, place, 16 << 20, 10, together);
  RankLink link;
  link.ranks = 2;
  link.delay_ns = delay_ns;
  link.message_ns = std::max<int64_t>(0, static_cast<int64_t>(short_ms * 1e6) - delay_ns);
  const double messages = static_cast<double>(all_reduce_ns(16 << 20, link));  // without its bytes
  link.ns_per_byte = std::max(0.0, long_one.ms * 1e6 - messages) / (16 << 20);
  if (shared) link.processor_ns_per_byte = long_one.beside_ms * 1e6 / (16 << 20);
  std::vector<int64_t> step_ns;
  for (const StepTime& step : alone.profile.steps) step_ns.push_back(step.end_ns - step.begin_ns);
  if (says) {
    fmt::print("alone: {:.1f} ms a step; all-reduces of 4 KB and 16 MB: {:.3f} and {:.1f} ms, of which other threads compute {:.1f} ms\n",
               alone.ms, short_ms, long_one.ms, long_one.beside_ms);
    for (const int ranks : {2, 8, 32, 128, 1024}) {
      link.ranks = ranks;
      const PredictedStep step = predict_step(*alone.plan, step_ns, link);
      fmt::print("predicted for {:>4} ranks: {:.1f} ms, communication {:.1f} ms, {:.1f} ms exposed\n", ranks,
                 static_cast<double>(step.ns) / 1e6, static_cast<double>(step.communication_ns) / 1e6,
                 static_cast<double>(step.exposed_ns) / 1e6);
    }
    std::fflush(stdout);
  }
  Session session = training(runtime, place, batch, 2);
  const Measured both = measure(session, inputs, steps, together);
  double communication = 0;
  for (size_t i = 0; i < both.plan->steps.size(); ++i)
    for (const PlanInfo::Collective& collective : both.plan->collectives)
      if (collective.name == both.plan->steps[i].name)
        communication += static_cast<double>(both.profile.steps[i].end_ns - both.profile.steps[i].begin_ns) / 1e6;
  if (says)
    fmt::print("measured on two ranks: {:.1f} ms, communication {:.1f} ms, {:.1f} ms exposed ({:.0f}%)\n", both.ms, communication,
               both.ms - alone.ms, 100 * (both.ms - alone.ms) / communication);
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  const char* const link = argc > 1 ? argv[1] : "50,625";
  ::setenv("HEDDLE_GLOO_LINK", link, 1);
  const auto delay_ns = static_cast<int64_t>(1000 * std::atof(link));
  const int steps = argc > 2 ? std::atoi(argv[2]) : 12;
  const int64_t batch = argc > 3 ? std::atoi(argv[3]) : 4;
  const bool shared = argc > 4 && std::string(argv[4]) == "shared";
  std::string folder = (std::filesystem::temp_directory_path() / "heddle-rank-overlap-XXXXXX").string();
  if (!::mkdtemp(folder.data())) return 1;
  const pid_t child = ::fork();
  if (child == 0) {
    heddle::run_rank({folder, 1}, steps, batch, shared, delay_ns);
    return 0;
  }
  heddle::run_rank({folder, 0}, steps, batch, shared, delay_ns);
  int status = 0;
  ::waitpid(child, &status, 0);
  std::filesystem::remove_all(folder);
  return status != 0;
}
