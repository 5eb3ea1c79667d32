// plan: what a net becomes, or the offset planner alone.
#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "commands/commands.h"
#include "commands/plan/plan_diff.h"
#include "commands/plan/plan_text.h"
#include "common/file_roles.h"
#include "common/net_options.h"
#include "infer/infer.h"
#include "memory/buffers_csv.h"
#include "session/session_impl.h"
#include "tensors/inputs.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

struct PlanArguments : NetOptions {
  std::string svg, diff, buffers, capacity, output;
  bool dot = false;
  double time_limit_s = 0;
};

Status write_text(const std::string& file, const std::string& text) {
  HEDDLE_TRY(FileReplacement out, FileReplacement::create(file));
  HEDDLE_CHECK(out.write(text));
  return out.commit();
}

// `roles` learns what is read. `used`, when given, takes the symbols of the net's own, and others are nothing to it: two nets that are
// compared need not have the same.
Result<std::pair<std::shared_ptr<const Plan>, StageTimes>> make_plan(const std::string& file, const PlanArguments& o, Report& report,
                                                                     FileRoles& roles, std::vector<std::string>* used) {
  HEDDLE_TRY(const Runtime runtime, make_runtime(report.common));
  HEDDLE_TRY(const SessionOptions options, o.session_options());
  HEDDLE_TRY(const Session session, runtime.open(file, options));
  roles.reads_net(file, session.impl().net);
  if (used) {
    const std::vector<std::string> names = symbol_names(session.impl().net);
    used->insert(used->end(), names.begin(), names.end());
    std::erase_if(session.impl().pipeline.symbols,
                  [&](const auto& given) { return std::find(names.begin(), names.end(), given.first) == names.end(); });
  }
  InputRequest request;
  request.files = o.files;
  request.limits = options.limits;
  request.shapes = o.shapes;
  request.symbols = o.symbols;
  request.random_seed = 0;
  HEDDLE_TRY(const auto inputs, make_inputs(session.impl().net, request));
  std::vector<TensorView> views;
  for (const auto& b : inputs) views.push_back({b->dtype, b->shape, const_cast<std::byte*>(b->data)});
  HEDDLE_TRY(const auto entry, session.impl().find_plan(views.data(), views.size()));
  for (const Diagnostic& warning : entry->plan->warnings) report.diagnose(warning);
  return std::pair(entry->plan, entry->times);
}

Status plan_net(const PlanArguments& o, Report& report) {
  std::vector<std::string> symbols;
  std::vector<std::string>* const used = o.diff.empty() ? nullptr : &symbols;
  FileRoles roles;
  HEDDLE_TRY(const std::vector<NameValue> inputs, split_name_values("--input", o.files));
  for (const NameValue& input : inputs) roles.reads(file_of_tensor(input.second));
  HEDDLE_TRY(const auto made, make_plan(o.net, o, report, roles, used));
  const Plan& plan = *made.first;
  const Json described = plan_json(plan, made.second);
  for (const auto& [key, value] : described.items()) report.json[key] = value;
  if (!o.diff.empty()) {
    HEDDLE_TRY(const auto other, make_plan(o.diff, o, report, roles, used));
    HEDDLE_TRY(const auto given, parse_symbols(o.symbols));
    for (const auto& symbol : given)
      if (std::find(symbols.begin(), symbols.end(), symbol.first) == symbols.end())
        return {Code::unknown_name, "neither net has a symbol " + quoted(symbol.first), "leave it out"};
    report.json["diff"] = plan_diff(plan, *other.first);
    report.say_lines(plan_diff_text(plan, *other.first));
  } else if (o.dot) {
    report.json["dot"] = plan_dot(plan);
    report.print(plan_dot(plan));
  } else {
    report.say_lines(plan_text(plan));
  }
  if (o.svg.empty()) return {};
  HEDDLE_CHECK(roles.writes("--svg", o.svg));
  return write_text(o.svg, plan_svg(plan));
}

Status plan_buffers(const PlanArguments& o, Report& report) {
  HEDDLE_TRY(const Limits limits, o.limits.limits());
  FileRoles roles;
  roles.reads(o.buffers);
  if (!o.output.empty()) HEDDLE_CHECK(roles.writes("-o", o.output));
  HEDDLE_TRY(const BufferTable table, load_buffers_csv(o.buffers, limits));
  offsets::PackOptions options;
  if (!o.capacity.empty() && !parse_size(o.capacity, &options.capacity))
    return {Code::invalid_argument, "--capacity " + quoted(o.capacity) + " is not a size", "write it like 512MiB"};
  const uint64_t begin = ticks();
  if (o.time_limit_s > 0) {
    options.effort = INT64_MAX;
    const uint64_t end = begin + ns_to_ticks(o.time_limit_s * 1e9);
    options.stop = [end] { return ticks() >= end; };
  }
  HEDDLE_TRY(const offsets::Solution solution, offsets::pack(table.problem, options));
  report.json["solve_ns"] = static_cast<int64_t>(ticks_to_ns(ticks() - begin));
  report.json["peak_bytes"] = solution.height;
  report.json["lower_bound_bytes"] = solution.lower_bound;
  report.json["optimal"] = solution.optimal;
  const std::string text = format_buffers_csv(table, solution);
  if (!o.output.empty()) HEDDLE_CHECK(write_text(o.output, text));
  report.say("peak " + std::to_string(solution.height) + " bytes, lower bound " + std::to_string(solution.lower_bound) +
             (solution.optimal ? ", optimal" : "") + ", by " + solution.method);
  if (o.output.empty()) report.say_lines(text);
  return {};
}

Run declare_plan(CLI::App& app) {
  auto o = std::make_shared<PlanArguments>();
  auto* net = app.add_option("net", o->net, "a .heddle or .json file")->type_name("NET");
  auto* dot = app.add_flag("--dot", o->dot, "Graphviz instead of text");
  app.add_option("--svg", o->svg, "memory over steps as a picture")->type_name("FILE");
  app.add_option("--diff", o->diff, "what is other in the plan of another net")->type_name("OTHER")->excludes(dot);
  o->declare(app);
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
                              {{"plan", {"steps", "devices", "copies", "reorders", "captured_segments", "stages_ns", "dot", "diff"}},
                               {"plan --buffers", {"peak_bytes", "lower_bound_bytes", "solve_ns", "optimal"}}}};

}  // namespace heddle::tool
