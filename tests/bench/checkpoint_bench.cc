// Measures how long steps of training and evaluations take beside a checkpoint of a GiB of variables.
//
//   heddle_checkpoint_bench FOLDER [SECONDS] [MIB]
//
// A net trains 16 tables of MIB (1024) together, of which a step reads and updates a few rows. Prints the median and the longest step and
// evaluation in SECONDS (60) without a checkpoint, and while checkpoints are written into FOLDER, three times.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/trainer.h"
#include "heddle/training.h"
#include "must.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int tables = 16, width = 64;
constexpr int64_t samples = 4096;

// y is approached by the sum of one row of each table.
std::string net_text(int64_t rows) {
  std::string variables, values, nodes, sum;
  for (int i = 0; i < tables; ++i) {
    variables +=
        fmt::format(R"json({}{{"name": "t{}", "dtype": "f32", "dims": [{}, {}], "trainable": true, "initializer": "constant(0.01)"}})json",
                    i == 0 ? "" : ",", i, rows, width);
    values += fmt::format(R"(,{{"name": "t{0}", "kind": "variable", "variable": "t{0}", "version": 0}})", i);
    nodes += fmt::format(R"({{"name": "g{0}", "type": "Gather", "inputs": ["t{0}", "rows"], "outputs": ["g{0}"]}},)", i);
    sum += fmt::format(R"({}"g{}")", i == 0 ? "" : ",", i);
  }
  return fmt::format(
      R"json({{"heddle": 1, "name": "net", "operator_sets": [{{"domain": "", "version": 18}}], "inputs": ["rows", "y"], "outputs": ["loss"],
 "variables": [{}], "values": [{{"name": "rows", "kind": "input", "dtype": "i64", "dims": ["N"]}},
  {{"name": "y", "kind": "input", "dtype": "f32", "dims": ["N", {}]}}{}],
 "nodes": [{}{{"name": "sum", "type": "Sum", "inputs": [{}], "outputs": ["sum"]}},
  {{"name": "difference", "type": "Sub", "inputs": ["sum", "y"], "outputs": ["difference"]}},
  {{"name": "square", "type": "Mul", "inputs": ["difference", "difference"], "outputs": ["square"]}},
  {{"name": "loss", "type": "ReduceMean", "inputs": ["square"], "outputs": ["loss"], "attributes": {{"keepdims": {{"int": 0}}}}}}]}})json",
      variables, width, values, nodes, sum);
}

struct Durations {
  std::vector<double> us;
  void add(Clock::time_point since) { us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - since).count()); }
  void print(const char* when, const char* what) {
    if (us.empty()) return void(std::printf("%-24s no %s\n", when, what));
    const auto middle = us.begin() + static_cast<std::ptrdiff_t>(us.size() / 2);
    std::nth_element(us.begin(), middle, us.end());
    std::printf("%-24s %8zu %s, median %9.1f us, longest %11.1f us\n", when, us.size(), what, *middle,
                *std::max_element(us.begin(), us.end()));
    us.clear();
  }
};

struct Bench {
  Bench(const std::string& folder, int64_t mib) : data(static_cast<size_t>(samples)), targets(static_cast<size_t>(samples * width), 1) {
    RuntimeOptions of;
    of.plugins = {HEDDLE_CPU_PLUGIN};
    of.default_plugins = false;
    of.threads = 1;
    runtime.emplace(must(Runtime::create(of)));
    const int64_t rows = mib * 262144 / tables / width;
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<int64_t>(i * 2654435761 % static_cast<size_t>(rows));
    const std::string text = net_text(rows);
    Nets nets = must(Nets::read_bytes(text.data(), text.size(), ""));
    TrainingOptions how;
    how.losses = {"loss"};
    how.optimizer = "sgd";
    how.learning_rate = must(LearningRate::parse(0.01, "constant"));
    must(nets.add_training(*runtime, "net", how, "train"));
    session.emplace(must(runtime->open(nets)));
    options.batch = 64;
    options.checkpoints.folder = folder;
    options.checkpoints.keep = 1;
    options.on_step = [this](const TrainingStep&) { return step_made(); };
  }
  std::shared_ptr<const Dataset> dataset() {
    return must(Dataset::of_arrays(
        {{"rows", {DType::i64, Shape{samples}, data.data()}}, {"y", {DType::f32, Shape{samples, width}, targets.data()}}}));
  }
  // Notes the step, evaluates after every 50th, and stops when it is time to.
  Status step_made() {
    if (trainer->steps() > measured_from) steps.add(begun);
    if (trainer->steps() > measured_from && trainer->steps() % 50 == 0) {
      const Clock::time_point evaluation = Clock::now();
      must(trainer->evaluate());
      evaluations.add(evaluation);
    }
    begun = Clock::now();
    return over() ? Status(Code::cancelled, "it is time") : Status();
  }
  // Measures the steps after that one, after which a checkpoint begins; the next one is due so much later.
  void run(const char* when, int64_t first, std::function<bool()> until) {
    over = std::move(until);
    measured_from = first;
    const int64_t every = first == 0 ? int64_t{1} << 40 : first;
    options.checkpoints.every = every;
    trainer.emplace(must(Trainer::create(must(session->net("train")), dataset(), options)));
    must(trainer->test_with(must(session->net("net")), dataset()));
    must(trainer->prepare());
    begun = Clock::now();
    (void)trainer->run();
    steps.print(when, "steps");
    evaluations.print(when, "evaluations");
  }
  std::vector<int64_t> data;
  std::vector<float> targets;
  std::optional<Runtime> runtime;
  std::optional<Session> session;
  TrainerOptions options;
  std::optional<Trainer> trainer;
  Durations steps, evaluations;
  Clock::time_point begun;
  std::function<bool()> over;
  int64_t measured_from = 0;
};

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  using namespace heddle;
  if (argc < 2) return std::fprintf(stderr, "usage: heddle_checkpoint_bench FOLDER [SECONDS] [MIB]\n"), 2;
  const std::string folder = argv[1];
  const int seconds = argc > 2 ? std::atoi(argv[2]) : 60, mib = argc > 3 ? std::atoi(argv[3]) : 1024;
  std::filesystem::create_directories(folder);
  Bench bench(folder, mib);
  const Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  bench.run("without a checkpoint", 0, [&] { return Clock::now() >= end; });
  const int64_t first = std::max<int64_t>(100, bench.trainer->steps() * 20 / std::max(1, seconds));  // 20 seconds of steps
  const std::string file = fmt::format("{}/step-{:09}.safetensors", folder, first);
  for (int i = 0; i < 3; ++i) {
    std::filesystem::remove(file);
    bench.run("beside a checkpoint", first, [&] { return std::filesystem::exists(file); });
  }
  return 0;
}
