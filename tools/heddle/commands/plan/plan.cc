// check and plan: what is known without running.
#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_document.h"
#include "base/limits.h"
#include "base/text.h"
#include "commands/plan/plan_diff.h"
#include "commands/plan/plan_text.h"
#include "common/command.h"
#include "common/device_options.h"
#include "common/file_roles.h"
#include "common/limit_options.h"
#include "infer/infer.h"
#include "load/load.h"
#include "memory/buffers_csv.h"
#include "session/session_impl.h"
#include "tensors/inputs.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

struct PlanArguments {
  std::string net, svg, diff, buffers, capacity, output;
  bool dot = false;
  double time_limit_s = 0;
  std::vector<std::string> files, shapes, symbols;
  DeviceOptions devices;
  LimitOptions limits;
};

Result<SessionOptions> session_options(const PlanArguments& o) {
  SessionOptions options;
  HEDDLE_TRY(options.symbols, parse_symbols(o.symbols));
  HEDDLE_TRY(options.limits, o.limits.limits());
  o.devices.apply(options);
  return options;
}

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
  HEDDLE_TRY(const SessionOptions options, session_options(o));
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

// The exit status for what is wrong with a net: 3 when a file could not be read, 4 for limits alone, 2 when only an option is missing,
// else 1. `readable`: the net's file is JSON, so that what is wrong is what it says.
int status_of_findings(const Diagnostic& first, bool readable) {
  bool file = false, limit = false, option = false, net = false;
  const auto count = [&](const Diagnostic& d) {
    if (d.severity != Severity::error) return;
    const bool of_the_file = d.code == Code::file_not_found || d.code == Code::file_unreadable || d.code == Code::file_truncated ||
                             d.code == Code::file_version || d.code == Code::weights_missing;
    const bool of_its_form = d.code == Code::syntax || d.code == Code::file_corrupt;
    if (of_the_file || (of_its_form && !readable))
      file = true;
    else if (exit_status(d.code) == 4)
      limit = true;
    else if (d.code == Code::unbound_symbol || d.code == Code::unknown_name || d.code == Code::missing_input)
      option = true;
    else
      net = true;
  };
  count(first);
  for (const Diagnostic& d : first.attached) count(d);
  return file ? 3 : net ? 1 : limit ? 4 : option ? 2 : 1;
}

bool is_json(const std::string& file, const Limits& limits) {
  const auto bytes = read_file(file, limits.file_bytes);
  constexpr int depth = 100'000;  // of brackets: parsing keeps no stack
  return bytes.ok() && JsonDocument::parse({reinterpret_cast<const char*>(bytes->data.get()), bytes->size}, depth).ok();
}

// What is given of the inputs: shapes, and content where it decides shapes.
Result<std::vector<InputBinding>> bind_inputs(const Net& net, const PlanArguments& o, const Limits& limits) {
  HEDDLE_TRY(std::vector<InputBinding> bindings, bind_shapes(net, o.shapes));
  InputRequest request;
  request.files = o.files;
  request.shapes = o.shapes;
  request.symbols = o.symbols;
  request.limits = limits;
  HEDDLE_TRY(const auto blobs, read_inputs(net, request));
  for (size_t i = 0; i < blobs.size(); ++i)
    if (blobs[i]) bindings[i] = {{blobs[i]->dtype, blobs[i]->shape}, blobs[i]};
  return bindings;
}

int check(const PlanArguments& o, Report& report) {
  const auto runtime = make_runtime(report.common);
  if (!runtime.ok()) return report.fail(runtime.status());
  const auto options = session_options(o);
  if (!options.ok()) return report.fail(options.status());
  for (const LimitEntry& limit : limit_table()) report.json["limits"][limit.name] = options->limits.*limit.value;
  LoadOptions load;
  load.limits = options->limits;
  Result<Net> net = load_net(o.net, load);
  const auto invalid = [&](const Status& status) {
    report.fail(status);
    return status_of_findings(status.diagnostic(), is_json(o.net, options->limits));
  };
  if (!net.ok()) return invalid(net.status());
  report.json["operators"] = net->nodes.size();
  const auto session = open_net(*runtime, std::move(net).value(), *options);
  if (!session.ok()) return invalid(session.status());
  const Session::Impl& impl = session->impl();
  PipelineOptions pipeline = impl.pipeline;
  const auto bindings = bind_inputs(impl.net, o, options->limits);
  if (!bindings.ok()) return report.fail(bindings.status());
  pipeline.inputs = *bindings;
  const Findings findings = check_net(impl.net, impl.registry, pipeline);
  for (const Diagnostic& d : findings.all()) report.diagnose(d);
  if (findings.failed()) return status_of_findings(findings.status().diagnostic(), true);
  report.say(quoted(o.net) + ": " + report.json["operators"].dump() + " operators, no errors");
  return 0;
}

}  // namespace

Run declare_plan(CLI::App& app) {
  auto o = std::make_shared<PlanArguments>();
  auto* net = app.add_option("net", o->net, "a .heddle or .json file")->type_name("NET");
  auto* dot = app.add_flag("--dot", o->dot, "Graphviz instead of text");
  app.add_option("--svg", o->svg, "memory over steps as a picture")->type_name("FILE");
  app.add_option("--diff", o->diff, "what is other in the plan of another net")->type_name("OTHER")->excludes(dot);
  app.add_option("--input", o->files, "content of an input that decides shapes")->type_name("NAME=FILE");
  app.add_option("--shape", o->shapes, "shape of an input")->type_name("NAME=2x3x224x224");
  app.add_option("--symbol", o->symbols, "extent of a symbolic dimension")->type_name("N=8");
  o->devices.declare(app);
  o->limits.declare(app);
  app.add_option("--buffers", o->buffers, "the offset planner alone: id,lower,upper,size[,alignment]")->type_name("F.csv")->excludes(net);
  app.add_option("--capacity", o->capacity, "bytes that must do")->type_name("SIZE")->needs("--buffers");
  app.add_option("--time-limit", o->time_limit_s, "seconds to search")->check(number_from(1e-9, 1e9))->needs("--buffers");
  app.add_option("-o", o->output, "where the table with offsets goes")->type_name("FILE")->needs("--buffers");
  return [o](Report& report) {
    if (o->net.empty() && o->buffers.empty())
      return report.fail(Status(Code::missing_input, "a net or --buffers F.csv is needed", "see heddle plan --help"));
    const Status status = o->buffers.empty() ? plan_net(*o, report) : plan_buffers(*o, report);
    return status.ok() ? 0 : report.fail(status);
  };
}

Run declare_check(CLI::App& app) {
  auto o = std::make_shared<PlanArguments>();
  app.add_option("net", o->net, "a .heddle or .json file")->required()->type_name("NET");
  app.add_option("--input", o->files, "content of an input that decides shapes")->type_name("NAME=FILE");
  app.add_option("--shape", o->shapes, "shape of an input")->type_name("NAME=2x3x224x224");
  app.add_option("--symbol", o->symbols, "extent of a symbolic dimension")->type_name("N=8");
  o->devices.declare(app);
  o->limits.declare(app);
  return [o](Report& report) { return check(*o, report); };
}

}  // namespace heddle::tool
