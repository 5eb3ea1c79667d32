// Measures waiting times on this machine: writers of variables while readers never pause, and runs whose deadline passes.
//
//   heddle_wait_bench [SECONDS]
//
// Prints the longest wait of an updating run beside 8 overlapping readers, in runs of a reader; and for each kind of run how much later
// than its deadline it returned.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "must.h"
#include "session/session_impl.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

Runtime runtime(int threads) {
  RuntimeOptions options;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/test/bare.so"};
  options.default_plugins = false;
  options.threads = threads;
  return must(Runtime::create(options));
}

std::shared_ptr<const Blob> blob(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.element_count()), 0.01F);
  return Blob::copy_of(DType::f32, shape, values.data());
}

// Products of a variable with itself; with `updated`, w += the last product.
Net products(const char* name, int64_t size, int count, bool updated) {
  NetBuilder b(name);
  const ValueId w = b.variable("w", blob(Shape{size, size}));
  ValueId y = w;
  for (int i = 0; i < count; ++i) y = b.add1("MatMul", "m" + std::to_string(i), {y, w});
  b.output(y);
  if (updated) b.updates(b.add1("AccumulateAdd", "update", {w, y}, {}, "heddle"), w);
  return b.finish();
}

// A session has one net, so the updates come from write_variable, which waits as an updating run does.
void print_longest_wait(double seconds) {
  const Runtime r = runtime(1);
  const Shape shape{128, 128};
  Session session = must(r.open(products("readers", 128, 16, false), {}));
  std::atomic<bool> done{false};
  std::atomic<int64_t> runs{0};
  std::atomic<double> longest_run{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 8; ++i)
    readers.emplace_back([&] {
      Context context = must(session.prepare());
      while (!done) {
        const auto begin = Clock::now();
        if (!context.run().ok()) std::exit(1);
        const double took = ms_since(begin);
        double known = longest_run.load();
        while (took > known && !longest_run.compare_exchange_weak(known, took)) {
        }
        ++runs;
      }
    });
  const auto value = blob(shape);
  const auto begin = Clock::now();
  std::vector<double> waits;
  for (int i = 0; i < 100; ++i) {
    const auto asked = Clock::now();
    if (!session.write_variable("w", {DType::f32, shape, const_cast<std::byte*>(value->data)}).ok()) std::exit(1);
    waits.push_back(ms_since(asked));
    std::this_thread::sleep_until(begin + std::chrono::duration<double>(seconds * (i + 1) / 100));
  }
  done = true;
  for (std::thread& t : readers) t.join();
  std::sort(waits.begin(), waits.end());
  std::printf(
      "100 writes beside 8 readers, %lld runs: wait median %.2f ms, longest %.2f ms; longest run of a reader %.2f ms: %.2f reader runs\n",
      static_cast<long long>(runs), waits[50], waits.back(), longest_run.load(), waits.back() / longest_run.load());
}

struct Case {
  const char* name;
  std::function<Status(const RunOptions&)> run;
};

void print_overshoot(const Case& c) {
  for (const int64_t deadline : {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{1'000'000}, int64_t{50'000'000}}) {
    RunOptions options;
    options.deadline_ns = deadline;
    const auto begin = Clock::now();
    const Status status = c.run(options);
    const double took = ms_since(begin);
    std::printf("  %-34s deadline %11lld ns: back after %9.3f ms, %9.3f ms behind it: %s\n", c.name, static_cast<long long>(deadline), took,
                took - std::max<double>(0, static_cast<double>(deadline)) / 1e6, status.ok() ? "ok" : to_string(status.code()));
  }
}

void print_deadlines() {
  const Runtime r = runtime(2);
  Session products_session = must(r.open(products("tiles", 1536, 4, false), {}));
  Context with_tiles = must(products_session.prepare());
  print_overshoot({"CPU steps with tiles", [&](const RunOptions& o) { return with_tiles.run(o); }});

  NetBuilder sorted("without tiles");
  const ValueId x = sorted.input("x", DType::f32, Shape{1 << 22});
  const auto numbers = blob(Shape{1 << 22});
  sorted.output(sorted.add("TopK", "sort", {x, sorted.constant_ints("k", {1 << 22})}, 2)[0]);
  Session sorting = must(r.open(sorted.finish(), {}));
  Context without = must(sorting.prepare());
  if (!without.bind_input(0, numbers->data).ok()) std::exit(1);
  print_overshoot({"CPU step without tiles", [&](const RunOptions& o) { return without.run(o); }});

  Session updating = must(r.open(products("variables", 512, 8, true), {}));
  Context update = must(updating.prepare());
  {
    std::atomic<bool> done{false};
    std::thread other([&] {
      Context beside = must(updating.prepare());
      while (!done) static_cast<void>(beside.run());
    });
    print_overshoot({"variables that another run updates", [&](const RunOptions& o) { return update.run(o); }});
    done = true;
    other.join();
  }

  const SharedMemory memory;
  Context first = must(products_session.prepare_on(memory)), second = must(products_session.prepare_on(memory));
  {
    std::atomic<bool> done{false};
    std::thread other([&] {
      while (!done) static_cast<void>(first.run());
    });
    print_overshoot({"shared memory that is in use", [&](const RunOptions& o) { return second.run(o); }});
    done = true;
    other.join();
  }
}

void print_device_deadlines(bool answers) {
  const std::string hold = (std::filesystem::temp_directory_path() / ("heddle_hold_" + std::to_string(::getpid()))).string();
  ::setenv("HEDDLE_BARE_HOLD", hold.c_str(), 1);
  const Runtime r = runtime(2);
  NetBuilder b("device");
  const ValueId x = b.input("x", DType::f32, Shape{64, 64});
  ValueId y = x;
  for (int i = 0; i < 4; ++i) {
    y = b.add1("MatMul", "m" + std::to_string(i), {y, x});
    b.net()[b.net()[y].producer].device = "bare:0";
  }
  b.output(y);
  SessionOptions options;
  options.copies = Copies::automatic;
  Session session = must(r.open(b.finish(), options));
  const auto feed = blob(Shape{64, 64});
  const auto fresh = [&] {
    Context context = must(session.prepare());
    if (!context.bind_input(0, feed->data).ok()) std::exit(1);
    return context;
  };
  print_overshoot({answers ? "device" : "device that never answers", [&](const RunOptions& o) {
                     Context context = fresh();
                     if (!answers) std::ofstream(hold) << "held";
                     std::thread canceller;
                     std::atomic<bool> done{false};
                     // Without a deadline only a cancellation ends the run.
                     if (!answers && o.deadline_ns == 0)
                       canceller = std::thread([&] {
                         while (!done) {
                           std::this_thread::sleep_for(std::chrono::milliseconds(10));
                           context.cancel();
                         }
                       });
                     Status status = context.run(o);
                     done = true;
                     if (canceller.joinable()) canceller.join();
                     std::filesystem::remove(hold);
                     return status;
                   }});
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  heddle::print_longest_wait(seconds);
  heddle::print_deadlines();
  heddle::print_device_deadlines(true);
  heddle::print_device_deadlines(false);
  return 0;
}
