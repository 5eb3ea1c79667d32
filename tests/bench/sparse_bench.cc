// Measures a step of training on a table: bags of lookups, their gradient, and the update of the rows that were looked up, compared with
// the bytes that it must move at least.
//
//   heddle_sparse_bench [--rows N] [--threads N] [--steps N]
//
// There are 4,096 bags of 20 lookups a step, in a table of 1,000,000 rows of 64 f32, each row as likely as any other, with other indices in
// each step. The floor is the time that the indispensable bytes take, at the bandwidth of a copy of large arrays in the same run, on as
// many threads: each row that is looked up read once, each different one read and written by the update, its state too, and the indices
// read by both. Bare loops over the same rows show how much of that speed the memory reaches for scattered rows. Prints medians.
// sparse_torch.py does the same step with PyTorch.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "derive/training_net.h"
#include "infer/registry_evaluator.h"
#include "must.h"
#include "net/lasting_blob.h"
#include "plugin/registry.h"
#include "resolve/resolve.h"
#include "session/session_impl.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t bags = 4096, lookups_of_bag = 20, width = 64, lookups = bags * lookups_of_bag;
constexpr size_t batches = 8;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}
template <class F>
double seconds(F f) {
  const Clock::time_point begin = Clock::now();
  f();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Returns the bytes a second that a copy of 256 MiB reads and writes.
double copied_bytes_per_second(int threads) {
  constexpr size_t bytes = size_t{256} << 20;
  const std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes, 2);
  std::vector<double> times;
  for (int i = 0; i < 9; ++i)
    times.push_back(seconds([&] {
      std::vector<std::thread> all;
      const size_t share = bytes / static_cast<size_t>(threads);
      for (int t = 0; t < threads; ++t)
        all.emplace_back([&, first = static_cast<size_t>(t) * share] { std::memcpy(to.data() + first, from.data() + first, share); });
      for (std::thread& thread : all) thread.join();
    }));
  return 2 * static_cast<double>(bytes) / median(times);
}

// Returns the field "VmRSS" or "VmHWM" of the process, in bytes.
double memory_of_process(const char* field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(field, 0) == 0) return 1024 * std::atof(line.c_str() + std::strlen(field) + 1);
  return 0;
}

Net step_of(const Net& net, const std::string& optimizer) {
  Registry plugins;
  must(plugins.load(HEDDLE_CPU_PLUGIN));
  const auto registry = plugins.snapshot();
  const auto evaluator = make_registry_evaluator(registry);
  TrainingOptions options;
  options.losses = {"loss"};
  options.optimizer = optimizer;
  options.learning_rate = must(LearningRate::parse(0.01, "constant"));
  return must(training_net(must(resolve(net, registry)), registry, *evaluator, options));
}

Net sums(int64_t rows) {
  NetBuilder b("sparse");
  const ValueId table = b.variable("table", DType::f32, Shape{rows, width}, "uniform(-0.05, 0.05)", true);
  std::vector<float> factors(static_cast<size_t>(bags * width));
  for (size_t i = 0; i < factors.size(); ++i) factors[i] = static_cast<float>(i % 13) * 0.01F - 0.06F;
  const ValueId y = b.add1("EmbeddingBag", "bags", {table, b.input("indices", DType::i64, Shape{bags, lookups_of_bag})}, {}, "heddle");
  const ValueId product =
      b.add1("Mul", "product", {y, b.constant("factors", Blob::copy_of(DType::f32, Shape{bags, width}, factors.data()))});
  b.add1("ReduceSum", "loss", {product}, {{"keepdims", int64_t{0}}});
  return b.finish();
}

// Returns the median time in which bare loops read the rows of all lookups, and read and write them and their state: the cost of a table of
// this size before anything is computed, sorted or checked.
double bare_step(int64_t rows, int states, int threads, const std::vector<std::vector<int64_t>>& indices) {
  std::vector<float*> variables;
  std::vector<std::shared_ptr<Blob>> held;
  for (int v = 0; v <= states; ++v) {
    std::byte* data = nullptr;
    held.push_back(lasting_blob(DType::f32, Shape{rows, width}, &data));
    variables.push_back(reinterpret_cast<float*>(data));
  }
  constexpr int64_t ahead = 32;
  const auto visit = [](const std::vector<int64_t>& of_step, int64_t begin, int64_t end, float* variable, auto f) {
    for (int64_t i = begin; i < end; ++i) {
      const float* next = variable + of_step[static_cast<size_t>(i + ahead < end ? i + ahead : i)] * width;
      for (int64_t k = 0; k < width; k += 16) __builtin_prefetch(next + k, 0, 2);
      f(variable + of_step[static_cast<size_t>(i)] * width);
    }
  };
  const auto part = [&](const std::vector<int64_t>& of_step, int64_t begin, int64_t end, bool writes) {
    float sums[width] = {};
    const auto read = [&](const float* __restrict row) {
      for (int64_t k = 0; k < width; ++k) sums[k] += row[k];
    };
    const auto write = [](float* row) {
      for (int64_t k = 0; k < width; ++k) row[k] += 1.0F;
    };
    if (!writes) visit(of_step, begin, end, variables[0], read);
    if (writes)
      for (float* const variable : variables) visit(of_step, begin, end, variable, write);
    asm volatile("" : : "g"(sums) : "memory");
  };
  std::vector<double> times;
  for (int step = 0; step < 21; ++step)
    times.push_back(seconds([&] {
      for (const bool writes : {false, true}) {
        std::vector<std::thread> all;
        const auto& of_step = indices[static_cast<size_t>(step) % batches];
        for (int t = 0; t < threads; ++t)
          all.emplace_back(part, std::cref(of_step), lookups * t / threads, lookups * (t + 1) / threads, writes);
        for (std::thread& thread : all) thread.join();
      }
    }));
  return median(times);
}

struct Options {
  int64_t rows = 1'000'000;
  int threads = 2, steps = 41;
};

void measure(const std::string& optimizer, int states, const Options& o, double bandwidth) {
  std::mt19937_64 random(1);
  std::vector<std::vector<int64_t>> indices(batches, std::vector<int64_t>(lookups));
  double unique = 0;
  for (auto& batch : indices) {
    for (int64_t& index : batch) index = static_cast<int64_t>(random() % static_cast<uint64_t>(o.rows));
    unique += static_cast<double>(std::set<int64_t>(batch.begin(), batch.end()).size()) / static_cast<double>(batches);
  }
  const double bare = bare_step(o.rows, states, o.threads, indices);
  RuntimeOptions options;
  options.plugins = {HEDDLE_CPU_PLUGIN};
  options.default_plugins = false;
  options.threads = o.threads;
  const Runtime runtime = must(Runtime::create(options));
  Session session = must(runtime.open(step_of(sums(o.rows), optimizer), SessionOptions()));
  Context context = must(session.prepare());
  std::vector<double> times;
  for (int step = -static_cast<int>(batches); step < o.steps; ++step) {
    must(context.bind_input(0, indices[static_cast<size_t>(step + static_cast<int>(batches)) % batches].data()));
    const double time = seconds([&] { must(context.run()); });
    if (step >= 0) times.push_back(time);
  }
  constexpr double row = width * sizeof(float), mega = 1e6;
  const double forward = lookups * row, update = 2 * unique * row, state = states * update, of_indices = 2 * lookups * sizeof(int64_t);
  const double floor = (forward + update + state + of_indices) / bandwidth, step = median(times);
  const double held = static_cast<double>(o.rows) * row * (1 + states);
  std::printf("%-8s forward %.1f MB + %.0f different rows read and written %.1f MB + state %.1f MB + indices %.1f MB: floor %.2f ms\n",
              optimizer.c_str(), forward / mega, unique, update / mega, state / mega, of_indices / mega, 1e3 * floor);
  std::printf(
      "%-8s step %.2f ms (fastest %.2f), %.1f M lookups/s, %.0f %% of the floor; bare loops over these rows take %.2f ms; memory beside "
      "%.0f "
      "MB of table and state: %.0f MB\n",
      optimizer.c_str(), 1e3 * step, 1e3 * *std::min_element(times.begin(), times.end()), lookups / step / mega, 100 * floor / step,
      1e3 * bare, held / mega, (memory_of_process("VmRSS") - held) / mega);
  std::fflush(stdout);
}

Options options_of(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    const long value = i + 1 < argc ? std::atol(argv[i + 1]) : 0;
    const bool known = name == "--rows" || name == "--threads" || name == "--steps";
    if (!known || value < 1) {
      std::fprintf(stderr, "usage: heddle_sparse_bench [--rows N] [--threads N] [--steps N]\n");
      std::exit(2);
    }
    if (name == "--rows") o.rows = value;
    if (name == "--threads") o.threads = static_cast<int>(value);
    if (name == "--steps") o.steps = static_cast<int>(value);
  }
  return o;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  using namespace heddle;
  const Options o = options_of(argc, argv);
  const double bandwidth = copied_bytes_per_second(o.threads);
  std::printf("%lld rows of %lld f32, %lld bags of %lld lookups, %d threads; a copy moves %.1f GB/s\n", static_cast<long long>(o.rows),
              static_cast<long long>(width), static_cast<long long>(bags), static_cast<long long>(lookups_of_bag), o.threads,
              bandwidth / 1e9);
  measure("sgd", 0, o, bandwidth);
  measure("adagrad", 1, o, bandwidth);
}
