// Session::run on nets in .heddle files against a plain loop over function pointers, oneTBB's flow graph, and oneTBB's task_group with
// counters, in one run: medians of interleaved rounds. All of them call the same kernel of a separately built plugin.
//
//   heddle_scheduler_bench [--quick] [--threads N] [--graph NAME] [--unshared] [case ...]
//
// Cases: empty work half declared gap; default: all. With --unshared no two values share memory, to see what sharing costs.
// Prints the round trip between two cores before each case: figures of two threads on tiny steps follow it. Ends with status 1 when a
// wanted figure was missed. Efficiency is work / threads / wall.
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "base/threads/clock.h"
#include "bench/runners.h"
#include "schedule/helpers/processors.h"
#include "schedule/list_schedule.h"

namespace heddle::bench {
namespace {

double now_ns() {
  return ticks_to_ns(ticks());
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void pin_to(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

// Returns the time of a cache line's round trip between the first two processors, in ns; 0 with only one.
double core_round_trip() {
  const std::vector<int> processors = allowed_processors();
  if (processors.size() < 2) return 0;
  constexpr int rounds = 20000;
  std::atomic<int> ball{0};
  const auto play = [&](int processor, int first) {
    pin_to(processor);
    for (int i = 0; i < rounds; ++i) {
      while (ball.load(std::memory_order_acquire) != 2 * i + first) {
      }
      ball.store(2 * i + first + 1, std::memory_order_release);
    }
  };
  std::thread one(play, processors[0], 0);
  const double begin = now_ns();
  std::thread two(play, processors[1], 1);
  one.join();
  two.join();
  return (now_ns() - begin) / rounds;
}

struct Bench {
  bool quick = false;
  bool share_memory = true;
  int threads = 2;
  heddle_run_function kernel = nullptr;
  double ns_per_iteration = 1;
  std::optional<Runtime> runtime;
  std::filesystem::path folder;
  std::vector<BenchGraph> graphs = bench_graphs();
  bool missed = false;

  int64_t iterations(double ns) const { return static_cast<int64_t>(ns / ns_per_iteration); }
  std::string file(const BenchGraph& graph) const { return (folder / (graph.name + ".heddle")).string(); }
  void heading(const char* text) const { std::printf("\n%s   (core round trip %.0f ns)\n", text, core_round_trip()); }
  void want(const char* what, double figure, bool reached) {
    std::printf("    %-46s %8.2f  %s\n", what, figure, reached ? "reached" : "MISSED");
    missed = missed || !reached;
  }
};

// A graph and its runners: 0 the serial loop, 1 heddle, then the others.
struct Contest {
  Contest(const Bench& bench, const BenchGraph& graph, int64_t heavy, int64_t light)
      : serial(graph, bench.kernel, amounts, true),
        work(graph, bench.kernel, amounts),
        session(*bench.runtime, graph, bench.file(graph), amounts, bench.share_memory) {
    amounts.heavy = heavy;
    amounts.light = light;
    runners.push_back(plain_loop(serial));
    runners.push_back(heddle_session(session));
    runners.push_back(tbb_counters(work, bench.threads));
    runners.push_back(flow_graph(work, bench.threads));
  }
  Amounts amounts;
  WorkNet serial;
  WorkNet work;
  SessionNet session;
  std::vector<std::unique_ptr<Runner>> runners;
};

// Runs the runners in turns, each as often as fills a slice of time; returns the median ns of one run of each.
std::vector<double> compare(const Bench& bench, const std::vector<std::unique_ptr<Runner>>& runners, double slice_ns = 15e6) {
  const int rounds = bench.quick ? 5 : 11;
  std::vector<int> repeats;
  for (const auto& runner : runners) {
    for (int i = 0; i < 20; ++i) runner->run();
    const double begin = now_ns();
    for (int i = 0; i < 3; ++i) runner->run();
    repeats.push_back(static_cast<int>(std::clamp(slice_ns / ((now_ns() - begin) / 3), 1.0, 1e5)));
  }
  std::vector<std::vector<double>> times(runners.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < runners.size(); ++i) {
      runners[i]->run();
      const double begin = now_ns();
      for (int k = 0; k < repeats[i]; ++k) runners[i]->run();
      times[i].push_back((now_ns() - begin) / repeats[i]);
    }
  }
  std::vector<double> result;
  for (const auto& t : times) result.push_back(median(t));
  return result;
}

void bench_empty(Bench& bench) {
  bench.heading("empty steps, ns per step");
  std::printf("  %-16s %12s %12s %16s %12s\n", "", "serial loop", "heddle", "TBB + counters", "flow_graph");
  for (const BenchGraph& graph : bench.graphs) {
    const Contest contest(bench, graph, 0, 0);
    const std::vector<double> t = compare(bench, contest.runners, 5e6);
    const double n = graph.count();
    std::printf("  %-16s %12.2f %12.2f %16.2f %12.2f\n", graph.name.c_str(), t[0] / n, t[1] / n, t[2] / n, t[3] / n);
    bench.want("times the serial loop, wanted <= 2", t[1] / t[0], t[1] <= 2 * t[0]);
  }
}

void bench_work(Bench& bench) {
  const double threads = bench.threads;
  for (const double ns : {300.0, 1000.0, 10000.0}) {
    bench.heading(("steps of " + std::to_string(static_cast<int>(ns)) + " ns, efficiency").c_str());
    std::printf("  %-16s %12s %16s %12s\n", "", "heddle", "TBB + counters", "flow_graph");
    for (const BenchGraph& graph : bench.graphs) {
      if (bench.quick && ns > 1000 && graph.count() > 1000 && graph.name != "layered300x32") continue;
      const Contest contest(bench, graph, bench.iterations(ns), bench.iterations(ns));
      const std::vector<double> t = compare(bench, contest.runners);
      std::printf("  %-16s %12.3f %16.3f %12.3f\n", graph.name.c_str(), t[0] / threads / t[1], t[0] / threads / t[2],
                  t[0] / threads / t[3]);
      const double efficiency = t[0] / threads / t[1];
      if (ns == 1000) bench.want("times the speed of TBB + counters, wanted >= 0.97", t[2] / t[1], t[2] / t[1] >= 0.97);
      if (ns == 10000 && graph.name == "layered300x32") bench.want("efficiency, wanted >= 0.97", efficiency, efficiency >= 0.97);
      if (ns == 10000 && graph.name == "inception-like") bench.want("efficiency, wanted >= 0.83", efficiency, efficiency >= 0.83);
    }
  }
}

// Returns an ideal machine's time for a half-empty net: list scheduling in which only the steps take time.
double best_simulated(const Bench& bench, const StepGraph& g, const std::vector<bool>& heavy, double heavy_ns, double light_ns) {
  std::vector<float> cost(g.count);
  std::vector<float> rank(g.count);
  for (uint32_t s = 0; s < g.count; ++s) cost[s] = static_cast<float>(heavy[s] ? heavy_ns : light_ns);
  const ScheduleGraph graph = {g.count, g.successor_begin.data(), g.successors.data(), g.predecessor_count.data()};
  remaining_paths(graph, cost.data(), rank.data());
  ScheduleWorkspace workspace;
  return simulate_schedule(graph, cost.data(), rank.data(), nullptr, static_cast<uint32_t>(bench.threads), {}, workspace);
}

void bench_half(Bench& bench) {
  bench.heading("half of the steps empty, half 10 us; us per run");
  std::printf("  %-16s %12s %12s %16s %12s %14s\n", "", "serial loop", "heddle", "TBB + counters", "flow_graph", "best simulated");
  for (const BenchGraph& graph : bench.graphs) {
    if (bench.quick && graph.count() > 1000 && graph.name != "layered300x32") continue;
    const Contest contest(bench, graph, bench.iterations(10000), 0);
    const std::vector<double> t = compare(bench, contest.runners);
    const std::vector<bool> heavy = heavy_half(graph);
    const auto count = static_cast<double>(std::count(heavy.begin(), heavy.end(), true));
    const double light_ns = 3;
    const double best = best_simulated(bench, contest.work.graph(), heavy, (t[0] - light_ns * (graph.count() - count)) / count, light_ns);
    std::printf("  %-16s %12.1f %12.1f %16.1f %12.1f %14.1f\n", graph.name.c_str(), t[0] / 1e3, t[1] / 1e3, t[2] / 1e3, t[3] / 1e3,
                best / 1e3);
    bench.want("times the best simulated, wanted <= 1.15", t[1] / best, t[1] <= 1.15 * best);
  }
}

void bench_declared(Bench& bench) {
  bench.heading("declared cost wrong by 100; us per run, and the first run");
  for (const BenchGraph& graph : bench.graphs) {
    if (graph.name != "layered300x32" && graph.name != "inception-like") continue;
    for (const double true_ns : {0.0, 1000.0, 10000.0}) {
      if (bench.quick && true_ns > 1000 && graph.count() > 1000) continue;
      Amounts amounts;
      amounts.heavy = amounts.light = bench.iterations(true_ns);
      std::vector<std::unique_ptr<SessionNet>> nets;
      std::vector<std::unique_ptr<Runner>> runners;
      std::vector<double> first;
      for (const double factor : {1.0, 100.0, 0.01}) {
        const std::string path = (bench.folder / "declared.heddle").string();
        save_graph(graph, path, std::max(3.0, true_ns) * factor);
        nets.push_back(std::make_unique<SessionNet>(*bench.runtime, graph, path, amounts, bench.share_memory));
        runners.push_back(heddle_session(*nets.back()));
        const double begin = now_ns();
        runners.back()->run();
        first.push_back(now_ns() - begin);
      }
      const std::vector<double> t = compare(bench, runners);
      std::printf("  %-16s %5.0f ns: right %.1f (%.1f)  x 100 %.1f (%.1f)  / 100 %.1f (%.1f)\n", graph.name.c_str(), true_ns, t[0] / 1e3,
                  first[0] / 1e3, t[1] / 1e3, first[1] / 1e3, t[2] / 1e3, first[2] / 1e3);
      const double worst = std::max(t[1], t[2]) / t[0];
      bench.want("times rightly declared, wanted <= 1.3", worst, worst <= 1.3);
    }
  }
}

void bench_gap(Bench& bench) {
  bench.heading("5 ms idle between runs, 10 us a step; us per run");
  const BenchGraph& graph = bench.graphs.back();
  std::printf("  %s\n", graph.name.c_str());
  const Contest contest(bench, graph, bench.iterations(10000), bench.iterations(10000));
  const std::vector<std::unique_ptr<Runner>>& runners = contest.runners;
  std::vector<std::vector<double>> times(runners.size());
  for (const auto& runner : runners)
    for (int i = 0; i < 20; ++i) runner->run();
  for (int round = 0; round < (bench.quick ? 31 : 101); ++round) {
    for (size_t i = 0; i < runners.size(); ++i) {
      usleep(5000);
      const double begin = now_ns();
      runners[i]->run();
      times[i].push_back(now_ns() - begin);
    }
  }
  for (size_t i = 0; i < runners.size(); ++i) {
    std::sort(times[i].begin(), times[i].end());
    std::printf("  %-16s median %8.1f   90th percentile %8.1f\n", runners[i]->name(), median(times[i]) / 1e3,
                times[i][times[i].size() * 9 / 10] / 1e3);
  }
  const double speed_up = median(times[0]) / median(times[1]);
  bench.want("speed-up, wanted >= 1.5", speed_up, speed_up >= 1.5);
}

// Returns true if all runners leave the same numbers, as they must.
bool same_results(Bench& bench) {
  for (const BenchGraph& graph : bench.graphs) {
    save_graph(graph, bench.file(graph));
    Contest contest(bench, graph, 37, 2);
    std::vector<float> expected;
    for (const auto& runner : contest.runners) {
      contest.serial.clear_results();
      contest.work.clear_results();
      std::vector<float> results;
      if (runner == contest.runners[1]) {
        results = contest.session.results();
      } else {
        runner->run();
        results = (runner == contest.runners[0] ? contest.serial : contest.work).results();
      }
      if (expected.empty()) expected = results;
      if (results == expected) continue;
      std::fprintf(stderr, "%s gives other results on %s\n", runner->name(), graph.name.c_str());
      return false;
    }
  }
  return true;
}

// Measures the time of one iteration of the work.
double measure_iteration(heddle_run_function kernel) {
  BenchGraph single;
  single.predecessors = {{}};
  Amounts amounts;
  amounts.heavy = amounts.light = 10'000'000;
  const WorkNet one(single, kernel, amounts);
  const auto loop = plain_loop(one);
  loop->run();
  const double begin = now_ns();
  loop->run();
  return (now_ns() - begin) / 10e6;
}

int run(int argc, char** argv) {
  Bench bench;
  std::vector<std::string> cases;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0)
      bench.quick = true;
    else if (std::strcmp(argv[i], "--unshared") == 0)
      bench.share_memory = false;
    else if (std::strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
      bench.threads = std::atoi(argv[++i]);
    else if (std::strcmp(argv[i], "--graph") == 0 && i + 1 < argc)
      only = argv[++i];
    else
      cases.emplace_back(argv[i]);
  }
  if (!only.empty()) std::erase_if(bench.graphs, [&](const BenchGraph& graph) { return graph.name != only; });
  RuntimeOptions options;
  options.plugins = {HEDDLE_BENCH_PLUGIN};
  options.default_plugins = false;
  options.threads = bench.threads;
  options.pin_threads = true;
  auto runtime = Runtime::create(options);
  if (!runtime.ok()) {
    std::fprintf(stderr, "%s\n", runtime.status().text().c_str());
    return 2;
  }
  bench.runtime = *runtime;
  bench.threads = bench.runtime->threads();
  bench.kernel = load_work(HEDDLE_BENCH_PLUGIN);
  bench.ns_per_iteration = measure_iteration(bench.kernel);
  bench.folder = std::filesystem::temp_directory_path() / ("heddle_scheduler_bench." + std::to_string(getpid()));
  std::filesystem::create_directory(bench.folder);
  std::printf("scheduler bench: %d threads of %zu processors, %.3f ns per iteration of work\n", bench.threads, allowed_processors().size(),
              bench.ns_per_iteration);
  const bool same = same_results(bench);
  const std::pair<const char*, void (*)(Bench&)> all[] = {
      {"empty", bench_empty}, {"work", bench_work}, {"half", bench_half}, {"declared", bench_declared}, {"gap", bench_gap}};
  for (const auto& [name, function] : all)
    if (same && (cases.empty() || std::find(cases.begin(), cases.end(), name) != cases.end())) function(bench);
  std::filesystem::remove_all(bench.folder);
  return !same ? 2 : bench.missed ? 1 : 0;
}

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) {
  return heddle::bench::run(argc, argv);
}
