// plan: the plan of a net, or the offset planner alone.
#include <fmt/format.h>

#include <algorithm>

#include "base/device_name.h"
#include "base/file.h"
#include "base/text/text.h"
#include "charts/memory_chart.h"
#include "charts/net_chart.h"
#include "commands/commands.h"
#include "commands/plan/plan_arguments.h"
#include "commands/plan/plan_diff.h"
#include "commands/plan/plan_prediction.h"
#include "commands/plan/plan_text.h"
#include "common/file_roles.h"
#include "common/standard_streams.h"
#include "heddle/session.h"
#include "options/net_options.h"
#include "tensors/inputs.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

// With --dry the default device's kind is that of the described devices. `roles` receives the files that are read.
Result<RuntimeOptions> options_of(const PlanArguments& o, const SessionOptions& session, const Report& report, FileRoles& roles) {
  constexpr int64_t max_bytes = 1 << 20;
  RuntimeOptions options = runtime_options(report.common);
  if (o.dry.empty()) return options;
  const std::string kind = device_kind(full_device_name(session.device, host_name));
  if (is_host(full_device_name(session.device, host_name)))
    return Status(Code::missing_input, "--dry plans for a device that is not here, and none is named", "say --device cuda:0");
  std::string text;
  if (o.dry != own_description) {
    roles.reads(o.dry);
    HEDDLE_TRY(const FileBytes file, read_file(o.dry, max_bytes));
    text.assign(reinterpret_cast<const char*>(file.data.get()), file.size);
    text += '\n';  // an empty file describes nothing, and no text means the backend's own description
  }
  options.described_devices.emplace_back(kind, text);
  return options;
}

// Warns where the plan needs more memory than there is.
Status warn_of_memory(const Runtime& runtime, const PlanInfo::Memory& memory, Report& report) {
  HEDDLE_TRY(const DeviceInfo info, runtime.device_info(memory.device));
  if (memory.peak_bytes <= info.free_bytes) return {};
  Status status(Code::out_of_memory,
                fmt::format("a context needs {} bytes on {}, where {} of {} are free beside the constants", memory.peak_bytes,
                            quoted(memory.device), info.free_bytes, info.total_bytes),
                "use smaller inputs");
  status.diagnostic().severity = Severity::warning;
  report.diagnose(status.diagnostic());
  return {};
}

// `roles` receives the files that are read. `symbols`, when given, receives those of the net, and symbols of other nets are ignored: two
// nets that are compared need not have the same. `other`, when given, receives the plan with the other --commit, where the net updates
// variables.
Result<std::shared_ptr<const PlanInfo>> make_plan(const std::string& file, const PlanArguments& o, Report& report, FileRoles& roles,
                                                  std::vector<std::string>* symbols, std::shared_ptr<const PlanInfo>* other = nullptr) {
  HEDDLE_TRY(SessionOptions options, o.session_options());
  o.commit.apply(options);
  HEDDLE_TRY(const RuntimeOptions runtime_asked, options_of(o, options, report, roles));
  HEDDLE_TRY(const Runtime runtime, Runtime::create(runtime_asked));
  HEDDLE_TRY(Session session, o.choice.open(runtime, file, options));
  if (symbols) {
    const std::vector<std::string> names = session.symbols();
    symbols->insert(symbols->end(), names.begin(), names.end());
    const size_t given = options.symbols.size();
    std::erase_if(options.symbols, [&](const auto& symbol) { return std::find(names.begin(), names.end(), symbol.first) == names.end(); });
    if (options.symbols.size() < given) {
      HEDDLE_TRY(session, o.choice.open(runtime, file, options));
    }
  }
  for (const std::string& read : session.files()) roles.reads(read);
  InputRequest request;
  request.files = o.files;
  request.limits = options.limits;
  request.shapes = o.shapes;
  request.symbols = o.symbols;
  request.random_seed = 0;
  HEDDLE_TRY(const auto inputs, make_inputs(session.inputs(), request));
  HEDDLE_TRY(auto plan, session.plan(views_of(inputs)));
  for (const Diagnostic& warning : plan->warnings) report.diagnose(warning);
  for (const PlanInfo::Memory& memory : plan->memory)
    if (!memory.described.empty()) HEDDLE_CHECK(warn_of_memory(runtime, memory, report));
  if (other && std::any_of(plan->steps.begin(), plan->steps.end(), [](const PlanInfo::Step& step) { return step.updates_variable; })) {
    options.commit_late = !options.commit_late;
    HEDDLE_TRY(session, o.choice.open(runtime, file, options));
    HEDDLE_TRY(*other, session.plan(views_of(inputs)));
  }
  return plan;
}

// Compares the memory of a context on each device when updates are made late, and early.
void compare_commits(const PlanInfo& plan, const PlanInfo& other, const std::string& mode, Report& report) {
  const PlanInfo &late = mode == "late" ? plan : other, &early = mode == "late" ? other : plan;
  const auto peak = [](const PlanInfo::Memory& memory, size_t) { return memory.peak_bytes; };
  report.json["commit"] = {{"mode", mode}, {"late", devices_json(late, peak)}, {"early", devices_json(early, peak)}};
}

std::string commits_text(const Json& commit) {
  std::string text;
  for (const auto& [device, late] : commit["late"].items())
    text += fmt::format("{}{}: {} late, {} early", text.empty() ? "" : ", ", device, human_bytes(late.get<int64_t>()),
                        human_bytes(commit["early"].value(device, int64_t{0})));
  return fmt::format("updates are made {}; peak by --commit, {}", commit["mode"].get<std::string>(), text);
}

Status plan_net(const PlanArguments& o, Report& report) {
  if (is_standard_output(o.svg) || is_standard_output(o.svg_net)) HEDDLE_CHECK(report.give_up_standard_output());
  std::vector<std::string> symbols;
  std::vector<std::string>* const used = o.diff.empty() ? nullptr : &symbols;
  FileRoles roles;
  HEDDLE_TRY(const std::vector<NameValue> inputs, split_name_values("--input", o.files));
  for (const NameValue& input : inputs) roles.reads(file_of_tensor(input.second));
  std::shared_ptr<const PlanInfo> with_other_commit;
  HEDDLE_TRY(const std::vector<WorkCost> costs, parse_costs(o.costs));
  HEDDLE_TRY(const auto made, make_plan(o.net, o, report, roles, used, &with_other_commit));
  const PlanInfo& plan = *made;
  const Json described = plan_json(plan);
  for (const auto& [key, value] : described.items()) report.json[key] = value;
  if (with_other_commit) compare_commits(plan, *with_other_commit, o.commit.mode, report);
  PredictedStep predicted;
  if (!costs.empty()) {
    for (const Diagnostic& warning : unused_costs(plan, costs)) report.diagnose(warning);
    predicted = predict_step(plan, costs);
    report.json["predicted"] = prediction_json(predicted);
  }
  HEDDLE_TRY(const std::vector<PredictedRanks> ranks, predict_ranks(plan, o.ranks, roles));
  if (!ranks.empty()) report.json["ranks"] = ranks_json(ranks);
  std::shared_ptr<const PlanInfo> other;
  if (!o.diff.empty()) {
    HEDDLE_TRY(other, make_plan(o.diff, o, report, roles, used));
    HEDDLE_TRY(const auto given, parse_symbols(o.symbols));
    for (const auto& symbol : given)
      if (std::find(symbols.begin(), symbols.end(), symbol.first) == symbols.end())
        return {Code::unknown_name, fmt::format("neither net has a symbol {}", quoted(symbol.first)), "leave it out"};
    report.json["diff"] = plan_diff(plan, *other);
    report.say_lines(plan_diff_text(plan, *other));
  } else if (o.dot) {
    report.json["dot"] = plan_dot(plan);
    report.print(plan_dot(plan));
  } else {
    report.say_lines(plan_text(plan));
    if (with_other_commit) report.say(commits_text(report.json["commit"]));
  }
  if (!costs.empty()) report.say(prediction_text(predicted));
  if (!ranks.empty()) report.say_lines(ranks_text(ranks));
  if (!o.svg.empty()) HEDDLE_CHECK(roles.writes("--svg", o.svg));
  if (!o.svg_net.empty()) HEDDLE_CHECK(roles.writes("--svg-net", o.svg_net));
  if (!o.svg.empty()) HEDDLE_CHECK(write_output(o.svg, other ? plan_diff_svg(plan, o.net, *other, o.diff) : memory_chart(plan)));
  return o.svg_net.empty() ? Status() : write_output(o.svg_net, net_chart(plan));
}

Run declare_plan(CLI::App& app) {
  auto o = std::make_shared<PlanArguments>();
  auto* net = app.add_option("net", o->net, "a .heddle or .json file")->type_name("NET");
  auto* dot = app.add_flag("--dot", o->dot, "Graphviz instead of text")->needs(net);
  app.add_option("--svg", o->svg, "memory over steps as a picture")->type_name("FILE")->check(not_empty())->needs(net);
  app.add_option("--svg-net", o->svg_net, "operators and the values between them as a picture")
      ->type_name("FILE")
      ->check(not_empty())
      ->needs(net);
  app.add_option("--diff", o->diff, "what is other in the plan of another net")
      ->type_name("OTHER")
      ->check(not_empty())
      ->needs(net)
      ->excludes(dot);
  o->declare(app);
  o->commit.declare(app);
  app.add_option("--cost", o->costs, "how long an operator's type, or a copy, takes on a device: the time of a run is predicted")
      ->type_name("NAME=NS[+NS_PER_BYTE]")
      ->delimiter(',')
      ->needs(net)
      ->excludes(dot);
  auto* ranks = app.add_option("--ranks", o->ranks.ranks, "the time of a run on each of so many processes is predicted")
                    ->type_name("N,N,...")
                    ->needs(net)
                    ->excludes(dot);
  auto* link = app.add_option("--link", o->ranks.link, "the network between them")
                   ->type_name("DELAY_US,MB_PER_S[,MESSAGE_US[,PROCESSOR_NS]]")
                   ->needs(ranks);
  auto* trace = app.add_option("--trace", o->ranks.trace, "the times of steps: written by heddle run --trace, on one thread of one process")
                    ->type_name("FILE")
                    ->needs(ranks);
  ranks->needs(link)->needs(trace);
  app.add_flag(fmt::format("--dry{{{}}}", own_description), o->dry,
               "for a device of --device's kind that is not here; --dry=FILE: described by it")
      ->needs(net);
  app.add_option("--buffers", o->buffers, "the offset planner alone: id,lower,upper,size[,alignment]")->type_name("F.csv")->excludes(net);
  app.add_option("--capacity", o->capacity, "bytes that must do")->type_name("SIZE")->needs("--buffers");
  app.add_option("--time-limit", o->time_limit_s, "seconds to search")->check(number_from(1e-9, 1e9))->needs("--buffers");
  app.add_option("-o", o->output, "where the table with offsets goes")->type_name("FILE")->needs("--buffers");
  return [o](Report& report) {
    if (o->net.empty() && o->buffers.empty())
      return report.fail(Status(Code::missing_input, "a net or --buffers F.csv is needed", "see heddle plan --help"));
    return report.finish_with(o->buffers.empty() ? plan_net(*o, report) : plan_buffers(*o, report));
  };
}

}  // namespace

const Command plan_command = {"plan",
                              "steps, kernels, layouts, memory; or the offset planner alone",
                              "heddle plan resnet50.heddle --svg plan.svg",
                              declare_plan,
                              {{"plan",
                                {"steps", "devices", "memory_order", "copies", "host_steps", "reorders", "collectives", "communicators",
                                 "captured_segments", "stages_ns", "dot", "diff", "commit", "predicted", "ranks"}},
                               {"plan --buffers", {"peak_bytes", "lower_bound_bytes", "solve_ns", "optimal"}}}};

}  // namespace heddle::tool
