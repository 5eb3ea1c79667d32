#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/numerics_check.h"
#include "base/text/text.h"
#include "base/threads/clock.h"
#include "commands/commands.h"
#include "commands/run/dump.h"
#include "commands/run/expectations.h"
#include "commands/run/memory_use.h"
#include "commands/run/profiled_runs.h"
#include "commands/run/report_html.h"
#include "commands/run/trace.h"
#include "common/file_roles.h"
#include "common/progress.h"
#include "heddle/session.h"
#include "options/device_options.h"
#include "options/limit_options.h"
#include "options/memory_limit_option.h"
#include "options/net_choice.h"
#include "process/interrupt.h"
#include "process/latency.h"
#include "process/process_counts.h"
#include "tensors/compare.h"
#include "tensors/inputs.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

struct RunArguments {
  std::string net;
  InputRequest inputs;
  std::optional<uint64_t> random;
  std::vector<std::string> outputs, fetches, prints, params;
  std::string output_dir, dump_dir, only, compare_device, trace, report_file, graph;
  ExpectationArguments expected;
  DeviceOptions devices;
  NetChoice choice;
  LimitOptions limits;
  MemoryLimitOption memory_limit;
  int repeat = 1, warmup = 0;
  uint64_t seed = 0;
  double deadline_s = 0;
  bool check_numerics = false;
};

Json tensor_json(const TensorView& t) {
  Json shape = Json::array();
  for (const int64_t dim : t.shape) shape.push_back(dim);
  return {{"dtype", to_string(t.dtype)}, {"shape", shape}, {"sha256", sha256_hex(t.data, static_cast<size_t>(t.byte_size()))}};
}

// `heddle run`, in the order of its public functions.
class Runner {
 public:
  Runner(const RunArguments& options, Report& report) : o_(options), report_(report) {}
  Status open();
  Status prepare();
  Status execute();
  Status write_outputs();
  Status compare_with_files();
  Status compare_devices();
  void describe();

 private:
  Result<SessionOptions> session_options() const;
  RunOptions run_options() const;
  Status set_params(Session& session) const;
  Status select_fetches();
  Status check_files();
  Status observe(StepView& view);
  Result<Roofline> measure_roofline() const;
  int64_t deadline_ns() const { return o_.deadline_s > 0 ? static_cast<int64_t>(std::clamp(o_.deadline_s * 1e9, 1.0, 9e18)) : 0; }

  const RunArguments& o_;
  Report& report_;
  std::optional<Runtime> runtime_;
  Limits limits_;
  std::optional<Session> session_;
  std::vector<std::shared_ptr<const Blob>> inputs_;
  std::optional<Context> context_;
  std::shared_ptr<const PlanInfo> plan_;
  NumericsCheck numerics_;
  std::vector<size_t> fetched_;
  std::vector<double> latencies_ns_;
  FileRoles roles_;
  std::vector<std::filesystem::path> output_files_;  // of fetched_, for --output-dir
  Dump dump_;
  Expectations expectations_;
};

Result<SessionOptions> Runner::session_options() const {
  SessionOptions options;
  HEDDLE_TRY(options.symbols, parse_symbols(o_.inputs.symbols));
  options.seed = o_.seed;
  HEDDLE_TRY(options.limits, o_.limits.limits());
  o_.devices.apply(options);
  HEDDLE_CHECK(o_.memory_limit.apply(options));
  return options;
}

Status Runner::open() {
  if (!o_.graph.empty())
    return {Code::not_implemented, "--graph: capture of a device's work does not work yet", "leave --graph out: nothing is captured"};
  HEDDLE_TRY(runtime_, make_runtime(report_.common));
  HEDDLE_TRY(const SessionOptions options, session_options());
  limits_ = options.limits;
  report_.step(fmt::format("loading {}", o_.net));
  HEDDLE_TRY(session_, o_.choice.open(*runtime_, o_.net, options));
  return set_params(*session_);
}

Status Runner::set_params(Session& session) const {
  HEDDLE_TRY(const std::vector<NameValue> params, split_name_values("--param", o_.params));
  for (const auto& [name, file] : params) {
    HEDDLE_TRY(const auto blob, read_tensor(file, limits_));
    HEDDLE_CHECK(session.write_variable(name, {blob->dtype, blob->shape, const_cast<std::byte*>(blob->data)}));
  }
  return {};
}

Status Runner::select_fetches() {
  const std::vector<PortInfo> ports = session_->outputs();
  std::vector<std::string> names;
  for (const PortInfo& p : ports) names.push_back(p.name);
  const auto find = [&](const std::string& option, const std::string& name) -> Result<size_t> {
    const auto it = std::find(names.begin(), names.end(), name);
    if (it != names.end()) return static_cast<size_t>(it - names.begin());
    std::string hint = suggestion(name, names);
    return Status(Code::unknown_name, fmt::format("{}: the net has no output {}", option, quoted(name)),
                  hint.empty() ? fmt::format("its outputs are {}", words(names, ", ")) : hint);
  };
  for (const std::string& name : o_.fetches) {
    HEDDLE_TRY(const size_t i, find("--fetch", name));
    fetched_.push_back(i);
  }
  for (const std::string& name : o_.prints) HEDDLE_CHECK(find("--print", name).status());
  for (const std::string& text : o_.outputs) {
    HEDDLE_TRY(const NameValue given, split_name_value("--output", text));
    HEDDLE_CHECK(find("--output", given.first).status());
  }
  if (fetched_.empty())
    for (size_t i = 0; i < names.size(); ++i) fetched_.push_back(i);
  return {};
}

// Registers every file that is read and written, before the first is.
Status Runner::check_files() {
  for (const std::string& file : session_->files()) roles_.reads(file);
  for (const auto& [option, texts] : {std::pair("--input", &o_.inputs.files), std::pair("--param", &o_.params)}) {
    HEDDLE_TRY(const std::vector<NameValue> given, split_name_values(option, *texts));
    for (const NameValue& file : given) roles_.reads(file_of_tensor(file.second));
  }
  HEDDLE_CHECK(expectations_.read(o_.expected, session_->outputs(), limits_, roles_));
  for (const std::string& text : o_.outputs) {
    HEDDLE_TRY(const NameValue given, split_name_value("--output", text));
    HEDDLE_CHECK(roles_.writes("--output", given.second));
  }
  if (!o_.output_dir.empty()) {
    const std::vector<PortInfo> ports = session_->outputs();
    FileNames names;
    for (const size_t i : fetched_) {
      const std::filesystem::path file = std::filesystem::path(o_.output_dir) / (names.of(ports[i].name, fmt::to_string(i)) + ".npy");
      const bool again = std::find(output_files_.begin(), output_files_.end(), file) != output_files_.end();  // --fetch twice
      output_files_.push_back(file);
      if (!again) HEDDLE_CHECK(roles_.writes("--output-dir", file));
    }
  }
  if (!o_.trace.empty()) HEDDLE_CHECK(roles_.writes("--trace", o_.trace));
  if (!o_.report_file.empty()) HEDDLE_CHECK(roles_.writes("--report", o_.report_file));
  return roles_.uses_standard_output() ? report_.give_up_standard_output() : Status();
}

// Called after each step of a traced run.
Status Runner::observe(StepView& view) {
  if (o_.check_numerics) {
    Status seen = numerics_.look(*plan_, view);
    if (seen.code() == Code::numerics)
      seen.diagnostic().hint = fmt::format("look at its inputs with --dump DIR --only {}", word(plan_->steps[view.step()].name));
    HEDDLE_CHECK(std::move(seen));
  }
  return o_.dump_dir.empty() ? Status() : dump_.write(view);
}

Status Runner::prepare() {
  HEDDLE_CHECK(select_fetches());
  HEDDLE_CHECK(check_files());
  InputRequest request = o_.inputs;
  request.random_seed = o_.random;
  request.invent_shapes = true;
  request.limits = limits_;
  HEDDLE_TRY(inputs_, make_inputs(session_->inputs(), request));
  const std::vector<TensorView> views = views_of(inputs_);
  report_.step("compiling");
  HEDDLE_TRY(context_, session_->prepare(views));
  plan_ = context_->plan();
  for (const Diagnostic& warning : plan_->warnings) report_.diagnose(warning);
  for (size_t i = 0; i < views.size(); ++i) HEDDLE_CHECK(context_->bind_input(i, views[i].data));
  return o_.dump_dir.empty() ? Status() : Dump::create(o_.dump_dir, o_.only, plan_, roles_, &dump_);
}

RunOptions Runner::run_options() const {
  RunOptions options;
  options.seed = o_.seed;
  options.deadline_ns = deadline_ns();
  return options;
}

Status Runner::execute() {
  const StepObserver observer = [this](StepView& view) { return observe(view); };
  RunOptions options = run_options();
  if (o_.check_numerics || !o_.dump_dir.empty()) options.observer = &observer;
  const InterruptibleRun interruptible(*context_);
  report_.step("running");
  const bool profiled = !o_.trace.empty() || !o_.report_file.empty();
  ProfiledRuns runs(o_.repeat, plan_->steps.size());
  Progress progress(report_, "run", o_.warmup + o_.repeat);
  for (int i = 0; i < o_.warmup + o_.repeat; ++i) {
    progress.reached(i);
    options.profile = i >= o_.warmup && profiled ? runs.profile() : nullptr;
    double ns = 0;
    {
      const Counting counted(i > 0);
      const uint64_t begin = ticks();
      HEDDLE_CHECK(context_->run(options));
      ns = ticks_to_ns(ticks() - begin);
    }
    if (i >= o_.warmup && !options.observer) latencies_ns_.push_back(ns);
    if (options.profile) runs.ended(ns);
    HEDDLE_CHECK(interruption());
  }
  if (!profiled) return {};
  const ProfiledRun shown = std::move(runs).median();
  if (!o_.trace.empty()) HEDDLE_CHECK(write_trace(o_.trace, *plan_, shown, runtime_->threads()));
  if (o_.report_file.empty()) return {};
  RunSummary summary = {o_.net, latency_text(latencies_ns_), runtime_->threads(), context_->held_bytes(), std::nullopt, {}};
  const Result<Roofline> measured = measure_roofline();
  if (measured.ok())
    summary.roofline = *measured;
  else
    summary.without_roofline = measured.status().text();  // its operators may come from plugins that are not loaded
  return write_report(o_.report_file, *plan_, shown, summary);
}

// The rates of this runtime, and of one of one thread.
Result<Roofline> Runner::measure_roofline() const {
  Roofline roofline;
  HEDDLE_TRY(roofline.all_threads, measure_rates(*runtime_));
  roofline.one_thread = roofline.all_threads;
  if (runtime_->threads() == 1) return roofline;
  CommonOptions alone = report_.common;
  alone.threads = 1;
  HEDDLE_TRY(const Runtime one, make_runtime(alone));
  HEDDLE_TRY(roofline.one_thread, measure_rates(one));
  return roofline;
}

// Compares the results of the last run with the files of --expect.
Status Runner::compare_with_files() {
  if (o_.expected.files.empty()) return {};
  return expectations_.compare(*context_, session_->name(), &report_.json["expected"]);
}

// Repeats the runs on another device, from the same inputs and variables, and compares the last results.
Status Runner::compare_devices() {
  if (o_.compare_device.empty()) return {};
  HEDDLE_TRY(SessionOptions options, session_options());
  options.device = o_.compare_device;
  options.copies = Copies::automatic;
  HEDDLE_TRY(Session session, o_.choice.open(*runtime_, o_.net, options), "for --compare-device");
  HEDDLE_CHECK(set_params(session));
  const std::vector<TensorView> views = views_of(inputs_);
  HEDDLE_TRY(Context context, session.prepare(views), "for --compare-device");
  for (size_t i = 0; i < views.size(); ++i) HEDDLE_CHECK(context.bind_input(i, views[i].data));
  for (int i = 0; i < o_.warmup + o_.repeat; ++i) HEDDLE_CHECK(context.run(run_options()), "for --compare-device");
  const std::vector<PortInfo> ports = session_->outputs();
  Json outputs = Json::object();
  std::vector<std::string> different;
  for (const size_t i : fetched_) {
    const Tolerance tolerance = tolerance_for(context_->output(i), {});
    const Comparison c = compare(context.output(i), context_->output(i), tolerance.rtol, tolerance.atol);
    outputs[ports[i].name] = {{"equal", c.equal}, {"max_abs_error", number(c.max_abs_error)}, {"max_rel_error", number(c.max_rel_error)}};
    if (!c.equal) different.push_back(fmt::format("{} ({})", quoted(ports[i].name), c.reason));
  }
  report_.json["comparison"] = {{"device", o_.compare_device}, {"outputs", outputs}};
  if (different.empty()) return {};
  return {Code::comparison_failed, fmt::format("on device {} other results came out: {}", quoted(o_.compare_device), join(different, ", ")),
          "find the operator with --dump on both devices"};
}

Status Runner::write_outputs() {
  const std::vector<PortInfo> ports = session_->outputs();
  Json outputs = Json::object();
  for (const size_t i : fetched_) outputs[ports[i].name] = tensor_json(context_->output(i));
  report_.json["outputs"] = outputs;
  const auto output = [&](const std::string& name) {
    for (size_t i = 0; i < ports.size(); ++i)
      if (ports[i].name == name) return context_->output(i);
    return TensorView{};
  };
  for (const std::string& text : o_.outputs) {
    HEDDLE_TRY(const NameValue given, split_name_value("--output", text));
    HEDDLE_CHECK(write_tensor(given.second, given.first, output(given.first)));
  }
  if (!o_.output_dir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(o_.output_dir, error);
    if (error) return {Code::file_unwritable, fmt::format("--output-dir {}: {}", quoted(o_.output_dir), error.message())};
    for (size_t k = 0; k < fetched_.size(); ++k)
      HEDDLE_CHECK(write_tensor(output_files_[k].string(), ports[fetched_[k]].name, context_->output(fetched_[k])));
  }
  for (const std::string& name : o_.prints) {
    const std::string text = tensor_text(output(name));
    report_.json["printed"][name] = text;
    report_.print(fmt::format("{} {}", quoted(name), text));
  }
  return {};
}

void Runner::describe() {
  const bool steady = !latencies_ns_.empty() && o_.warmup + o_.repeat > 1;
  report_.json["latency_ns"] = latency_json(latencies_ns_);
  report_.json["threads"] = runtime_->threads();
  report_.json["isa"] = instruction_set(*runtime_);
  report_.json["devices"] = devices_json(*plan_, [&](const PlanInfo::Memory& memory, size_t device) -> Json {
    return {{"planned_peak_bytes", memory.peak_bytes}, {"measured_peak_bytes", context_->held_bytes(device)}};
  });
  report_.json["variable_bytes"] = session_->variable_bytes();
  report_.json["resident_peak_bytes"] = resident_peak_bytes();
  report_.json["steady_state_allocations"] = {
      {"heap", ProcessCounts::available() && steady ? Json(ProcessCounts::so_far().allocations) : Json(nullptr)}, {"device", nullptr}};
  int64_t copied = 0;
  for (const PlanInfo::Change& copy : plan_->copies) copied += copy.bytes;
  report_.json["copies"] = {{"count", plan_->copies.size()}, {"bytes", copied}};
  const Session::PlanCounts plans = session_->plan_counts();
  report_.json["plans"] = {{"made", plans.made}, {"kept", plans.kept},     {"kept_bytes", plans.kept_bytes},
                           {"hits", plans.hits}, {"misses", plans.misses}, {"evicted", plans.evicted}};
  report_.json["graphs"] = {{"captured", 0}, {"replayed", 0}, {"updated", 0}};
  const auto ports = session_->outputs();
  for (const size_t i : fetched_) {
    const TensorView t = context_->output(i);
    report_.say(fmt::format("{} {}{} sha256 {}", quoted(ports[i].name), to_string(t.dtype), t.shape.text(),
                            sha256_hex(t.data, static_cast<size_t>(t.byte_size())).substr(0, 16)));
  }
  if (!latencies_ns_.empty())
    report_.say(fmt::format("latency {}, {}, planned peak {}", latency_text(latencies_ns_), counted(runtime_->threads(), "thread"),
                            human_bytes(plan_->memory[0].peak_bytes)));
}

Run declare_run(CLI::App& app) {
  auto o = std::make_shared<RunArguments>();
  app.add_option("net", o->net, "a .heddle or .json file")->required()->type_name("NET");
  o->choice.declare(app);
  app.add_option("--input", o->inputs.files, "content of an input: .npy, .pb, .safetensors[:TENSOR], or a picture (.jpg, .png)")
      ->type_name("NAME=FILE");
  app.add_option("--random", o->random, "random content for inputs not given")->type_name("SEED")->check(whole_number());
  app.add_option("--output", o->outputs, "write an output: .npy or .safetensors")->type_name("NAME=FILE");
  app.add_option("--output-dir", o->output_dir, "write every output there")->type_name("DIR");
  app.add_option("--fetch", o->fetches, "report only these outputs")->type_name("NAME");
  app.add_option("--print", o->prints, "print an output")->type_name("NAME");
  app.add_option("--param", o->params, "content of a variable")->type_name("NAME=FILE");
  app.add_option("--shape", o->inputs.shapes, "shape of an input")->type_name("NAME=2x3x224x224");
  app.add_option("--symbol", o->inputs.symbols, "extent of a symbolic dimension")->type_name("N=8");
  o->expected.declare(app);
  o->devices.declare(app);
  o->limits.declare(app);
  app.add_option("--repeat", o->repeat, "counted runs")->check(CLI::Range(1, 1000000000));
  app.add_option("--warmup", o->warmup, "runs before them")->check(CLI::Range(0, 1000000000));
  app.add_option("--seed", o->seed, "of the net's random operators")->check(whole_number());
  app.add_option("--deadline", o->deadline_s, "seconds per run")->check(number_from(1e-9, 1e9))->type_name("SECONDS");
  o->memory_limit.declare(app);
  app.add_option("--graph", o->graph, "capture of device work")->check(CLI::IsMember({"off", "auto"}));
  auto* numerics = app.add_flag("--check-numerics", o->check_numerics, "stop at the first operator that makes nan or inf");
  auto* dump = app.add_option("--dump", o->dump_dir, "write every operator's outputs")->type_name("DIR");
  app.add_option("--only", o->only, "dump only this operator (name or type)")->needs("--dump");
  app.add_option("--compare-device", o->compare_device, "run there too and compare")->type_name("D");
  app.add_option("--trace", o->trace, "Chrome trace of the median run")->type_name("F.json")->check(not_empty())->excludes(numerics, dump);
  app.add_option("--report", o->report_file, "the median run as a page: steps, timeline, memory")
      ->type_name("F.html")
      ->check(not_empty())
      ->excludes(numerics, dump);
  return [o](Report& report) {
    Runner runner(*o, report);
    Status status = runner.open();
    if (status.ok()) status = runner.prepare();
    if (status.ok()) status = runner.execute();
    if (status.ok()) status = runner.write_outputs();
    if (status.ok()) status = runner.compare_with_files();
    if (status.ok()) status = runner.compare_devices();
    if (!status.ok()) return report.fail(status);
    runner.describe();
    return 0;
  };
}

}  // namespace

const Command run_command = {"run",
                             "compile a net and run it",
                             "heddle run resnet50.heddle --random 1 --repeat 10",
                             declare_run,
                             {{"run",
                               {"outputs", "printed", "latency_ns", "threads", "isa", "devices", "variable_bytes", "resident_peak_bytes",
                                "steady_state_allocations", "copies", "plans", "graphs", "comparison", "expected"}}}};

}  // namespace heddle::tool
