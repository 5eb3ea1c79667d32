#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/text/text.h"
#include "base/threads/clock.h"
#include "charts/histogram.h"
#include "commands/bench_collectives.h"
#include "commands/commands.h"
#include "common/file_roles.h"
#include "common/progress.h"
#include "common/standard_streams.h"
#include "heddle/session.h"
#include "options/device_options.h"
#include "options/limit_options.h"
#include "options/net_choice.h"
#include "process/interrupt.h"
#include "process/latency.h"
#include "tensors/inputs.h"

namespace heddle::tool {
namespace {

struct BenchArguments {
  std::string net, compare, svg;
  std::vector<int> threads = {1};
  int repeat = 20, warmup = 5;
  std::vector<std::string> files, shapes, symbols;
  DeviceOptions devices;
  NetChoice choice;
  LimitOptions limits;
  bool has_collectives = false;  // instead of a net
  CollectivesBench collectives;
};

struct Measured {
  std::vector<double> latencies_ns;
  std::map<size_t, std::vector<double>> steps_ns;
  std::shared_ptr<const PlanInfo> plan;
};

Result<Measured> measure(const BenchArguments& o, const Report& report, int threads) {
  CommonOptions c = report.common;
  c.threads = threads;
  HEDDLE_TRY(const Runtime runtime, make_runtime(c));
  SessionOptions options;
  o.devices.apply(options);
  HEDDLE_TRY(options.symbols, parse_symbols(o.symbols));
  HEDDLE_TRY(options.limits, o.limits.limits());
  HEDDLE_TRY(Session session, o.choice.open(runtime, o.net, options));
  InputRequest request;
  request.files = o.files;
  request.limits = options.limits;
  request.shapes = o.shapes;
  request.symbols = o.symbols;
  request.random_seed = 1;
  HEDDLE_TRY(const auto inputs, make_inputs(session.inputs(), request));
  const std::vector<TensorView> views = views_of(inputs);
  HEDDLE_TRY(Context context, session.prepare(views));
  for (size_t i = 0; i < views.size(); ++i) HEDDLE_CHECK(context.bind_input(i, views[i].data));
  const InterruptibleRun interruptible(context);
  Measured m;
  m.plan = context.plan();
  Progress progress(report, fmt::format("{}: run", counted(threads, "thread")), o.warmup + o.repeat);
  for (int i = 0; i < o.warmup; ++i) {
    progress.reached(i);
    HEDDLE_CHECK(context.run());
  }
  for (int i = 0; i < o.repeat; ++i) {
    progress.reached(o.warmup + i);
    const uint64_t begin = ticks();
    HEDDLE_CHECK(context.run());
    m.latencies_ns.push_back(ticks_to_ns(ticks() - begin));
    HEDDLE_CHECK(interruption());
  }
  // Profiled by operator in separate runs: the profile costs a little.
  Profile profile;
  RunOptions profiled;
  profiled.profile = &profile;
  for (int i = 0; i < std::max(3, o.repeat / 4); ++i) {
    HEDDLE_CHECK(context.run(profiled));
    for (size_t s = 0; s < profile.steps.size(); ++s)
      m.steps_ns[s].push_back(static_cast<double>(profile.steps[s].end_ns - profile.steps[s].begin_ns));
  }
  return m;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : v[v.size() / 2];
}

Result<Json> read_result(const std::string& file) {
  HEDDLE_TRY(const FileBytes bytes, read_file(file, int64_t{1} << 30));
  const char* text = reinterpret_cast<const char*>(bytes.data.get());
  Json object = Json::parse(text, text + bytes.size, nullptr, false);
  if (!object.is_object() || object.value("command", Json()) != "bench" || !object.contains("runs") || !object["runs"].is_array())
    return Status(Code::syntax, fmt::format("{} is not what bench --json prints", quoted(file)), "make it with heddle bench NET --json");
  return object;
}

// The median of an old result for that number of threads; 0: it has none.
double old_median(const Json& old, const Json& threads) {
  for (const Json& run : old["runs"]) {
    if (!run.is_object() || run.value("threads", Json()) != threads) continue;
    const Json latency = run.value("latency_ns", Json());
    const Json median = latency.is_object() ? latency.value("median", Json()) : Json();
    if (median.is_number()) return median.get<double>();
  }
  return 0;
}

Json compare_runs(const Json& old, const Json& runs, const Report& report) {
  Json comparison = Json::array();
  for (const Json& run : runs) {
    const double before = old_median(old, run["threads"]), now = run["latency_ns"]["median"].get<double>();
    comparison.push_back({{"threads", run["threads"]},
                          {"old_median_ns", before > 0 ? Json(static_cast<int64_t>(before)) : Json(nullptr)},
                          {"median_ns", run["latency_ns"]["median"]},
                          {"ratio", before > 0 ? number(now / before) : Json(nullptr)}});
    if (before > 0)
      report.say(fmt::format("{}: {} x the old median", counted(run["threads"].get<int64_t>(), "thread"),
                             shortest(static_cast<float>(now / before))));
  }
  return comparison;
}

constexpr size_t few_runs = 50;  // of fewer a histogram says nothing

Json histogram_json(const Histogram& histogram) {
  return {{"from_ns", histogram.from}, {"width_ns", histogram.width}, {"counts", histogram.counts}, {"above", histogram.above}};
}

Status bench_operators(BenchArguments& o, Report& report) {
  if (!o.net.empty()) return {Code::invalid_argument, "--collectives: a net was named too", "leave it out: collectives are measured alone"};
  o.collectives.repeat = o.repeat;
  o.collectives.warmup = o.warmup;
  o.collectives.device = o.devices.device;
  HEDDLE_TRY(report.json["collectives"], bench_collectives(o.collectives, report));
  return {};
}

Status bench(BenchArguments& o, Report& report) {
  if (o.has_collectives) return bench_operators(o, report);
  if (o.net.empty()) return {Code::invalid_argument, "no net was named", "name a file, or measure --collectives"};
  Json runs = Json::array(), operators = Json::array(), old;
  FileRoles roles;
  roles.reads(o.net);
  if (!o.compare.empty()) roles.reads(o.compare);
  if (!o.svg.empty()) HEDDLE_CHECK(roles.writes("--svg", o.svg));
  if (roles.uses_standard_output()) HEDDLE_CHECK(report.give_up_standard_output());
  if (!o.compare.empty()) {
    HEDDLE_TRY(old, read_result(o.compare));
  }
  std::vector<NamedHistogram> histograms;
  for (const int threads : o.threads) {
    HEDDLE_TRY(const Measured m, measure(o, report, threads));
    const Histogram histogram = histogram_of(m.latencies_ns);
    const std::string text = fmt::format("{}: {}", counted(threads, "thread"), latency_text(m.latencies_ns));
    histograms.push_back({text, histogram, median_ns(m.latencies_ns)});
    runs.push_back({{"threads", threads}, {"latency_ns", latency_json(m.latencies_ns)}, {"histogram", histogram_json(histogram)}});
    report.say(text);
    if (m.latencies_ns.size() >= few_runs) report.say_lines(histogram_text(histogram));
    if (threads != o.threads.front()) continue;
    std::vector<std::pair<double, std::string>> lines;
    for (const auto& [s, times] : m.steps_ns) {
      const PlanInfo::Step& step = m.plan->steps[s];
      operators.push_back({{"name", step.name},
                           {"type", step.type},
                           {"device", step.device},
                           {"median_ns", static_cast<int64_t>(median(times))},
                           {"bytes", step.bytes},
                           {"flops", step.flops ? Json(*step.flops) : Json(nullptr)}});
      lines.emplace_back(median(times), fmt::format("{} ({})", word(step.name), word(step.type)));
    }
    std::sort(lines.rbegin(), lines.rend());
    for (size_t i = 0; i < lines.size() && i < 15; ++i)
      report.say(
          fmt::format("  {} us  {}", shortest(static_cast<float>(static_cast<int64_t>(lines[i].first / 10)) / 100), lines[i].second));
  }
  report.json["runs"] = runs;
  report.json["operators"] = operators;
  if (!o.svg.empty())
    HEDDLE_CHECK(write_output(
        o.svg, histogram_svg(fmt::format("Times of the runs of {}", std::filesystem::path(o.net).filename().string()), histograms)));
  if (!o.compare.empty()) report.json["comparison"] = compare_runs(old, runs, report);
  return {};
}

Run declare_bench(CLI::App& app) {
  auto o = std::make_shared<BenchArguments>();
  app.add_option("net", o->net, "a .heddle or .json file")->type_name("NET");
  CLI::Option* const collectives =
      app.add_flag("--collectives", o->has_collectives, "collectives instead of a net, by size and number of participants");
  app.add_option("--members", o->collectives.members, "numbers of participants")
      ->needs(collectives)
      ->delimiter(',')
      ->type_name("2,4")
      ->check(CLI::Range(1, 64));
  app.add_option("--sizes", o->collectives.sizes, "bytes of each")->needs(collectives)->delimiter(',')->type_name("4K,1M");
  o->choice.declare(app);
  app.add_option("--threads", o->threads, "thread counts to measure")->delimiter(',')->type_name("1,2")->check(CLI::Range(1, max_threads));
  app.add_option("--repeat", o->repeat, "counted runs")->check(CLI::Range(1, 1000000));
  app.add_option("--warmup", o->warmup, "runs before them")->check(CLI::Range(0, 1000000));
  app.add_option("--input", o->files, "content of an input, where it matters")->type_name("NAME=FILE");
  app.add_option("--shape", o->shapes, "shape of an input")->type_name("NAME=2x3x224x224");
  app.add_option("--symbol", o->symbols, "extent of a symbolic dimension")->type_name("N=8");
  o->devices.declare(app);
  o->limits.declare(app);
  app.add_option("--compare", o->compare, "an older result")->type_name("OLD.json");
  app.add_option("--svg", o->svg, "how often which time was taken, as a picture")->type_name("FILE")->check(not_empty());
  for (const char* const of_nets :
       {"net", "--net", "--threads", "--input", "--shape", "--symbol", "--copies", "--streams", "--compare", "--svg"})
    collectives->excludes(app.get_option(of_nets));
  return [o](Report& report) { return report.finish_with(bench(*o, report)); };
}

}  // namespace

const Command bench_command = {"bench",
                               "repeated timing, whole and by operator",
                               "heddle bench resnet50.heddle --threads 1,2",
                               declare_bench,
                               {{"bench", {"runs", "operators", "comparison", "collectives"}}}};

}  // namespace heddle::tool
