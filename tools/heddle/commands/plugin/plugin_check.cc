// heddle plugin check FILE.so: the author's suite. Each operator and each rewrite rule is examined in a child process, so that a crash is
// a verdict like any other.
#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/device_name.h"
#include "base/text/text.h"
#include "commands/plugin/call_arguments.h"
#include "commands/plugin/check/operator_examination.h"
#include "commands/plugin/check/rule_examination.h"
#include "commands/plugin/check/watch/watched_run.h"
#include "commands/plugin/plugin_commands.h"
#include "commands/plugin/session_host.h"
#include "common/progress.h"
#include "device/device_manager.h"
#include "options/option_flags.h"
#include "plugin/registry.h"
#include "plugin/search.h"
#include "process/child_process.h"
#include "process/interrupt.h"
#include "process/process_counts.h"
#include "resolve/rule_reader.h"

namespace heddle::tool {
namespace {

struct CheckArguments {
  std::string file, only, device;
  CallArguments call;
  uint64_t seed = 1;
  int timeout_s = 20;
  bool strict = false;
};

using Words = std::vector<std::string>;
using Examination = std::function<OperatorVerdict()>;

Json notes_json(const std::vector<Note>& notes) {
  Json list = Json::array();
  for (const Note& note : notes) list.push_back({{"name", note.name}, {"text", note.text}});
  return list;
}

std::string as_message(const OperatorVerdict& verdict) {
  const Verdict& v = verdict.verdict;
  return Json({{"kind", static_cast<int>(v.kind)},
               {"mistake", v.mistake},
               {"reason", v.reason},
               {"unseen", verdict.unseen},
               {"results", verdict.results},
               {"notes", notes_json(verdict.notes)}})
      .dump();
}

// Names the mistake by the memory that was accessed.
Verdict of_fault(const std::string& accused, const Described& now) {
  if (accused.empty() && !*now.mistake) return {Verdict::Kind::fail, "crash", fmt::format("crashed: Segmentation fault{}", now.about)};
  const bool wrote = accused.rfind("writes", 0) == 0, beyond = accused.find(" of ") != std::string::npos;
  const char* const touched = !wrote ? "read-beyond" : beyond ? "write-beyond" : "writes-input";
  return {Verdict::Kind::fail, *now.mistake ? now.mistake : touched, (accused.empty() ? "crashes" : accused) + now.about};
}

// Runs the examination in a child and reads its verdict.
OperatorVerdict examine_in_child(const Examination& examine, int timeout_s) {
  const auto failed = [](const char* mistake, std::string reason) {
    return OperatorVerdict{{Verdict::Kind::fail, mistake, std::move(reason)}, {}};
  };
  auto child = ChildProcess::start([&](const ChildProcess::Send& send) {
    watch_standard_output();
    report_faults([&](const std::string& accused, const Described& now) { send(as_message({of_fault(accused, now), {}})); });
    send(as_message(examine()));
  });
  if (!child.ok()) return failed("crash", child.status().diagnostic().message);
  std::string text;
  switch (child->next(ChildProcess::Clock::now() + std::chrono::seconds(timeout_s), &text)) {
    case ChildProcess::Event::message:
      break;
    case ChildProcess::Event::ended:
      return failed("crash", child->end_text());
    case ChildProcess::Event::late:
      return failed("hangs", fmt::format("did not finish in {} s", timeout_s));
    case ChildProcess::Event::interrupted:
      return failed("hangs", "was interrupted");
  }
  const Json said = Json::parse(text, nullptr, false);
  if (!said.is_object()) return failed("crash", "said nothing");
  OperatorVerdict verdict = {
      {static_cast<Verdict::Kind>(said["kind"].get<int>()), said["mistake"], said["reason"]}, said["unseen"], said["results"]};
  for (const Json& note : said["notes"]) verdict.notes.push_back({note["name"], note["text"]});
  return verdict;
}

class PluginSuite {
 public:
  PluginSuite(const CheckArguments& o, Report& report)
      : o_(o), report_(report), common_(report.common), device_(o.device.empty() ? "" : full_device_name(o.device, "")) {
    common_.threads = 1;  // a child of fork has one thread
  }
  int run();

 private:
  // Checks the device of --device in a child, as a driver's state after the query is not for those that are forked later.
  Status check_device_is_there(const RegistrySnapshot& registry) const;
  // Kinds of devices that the plugin has kernels of the operator for, and on which none of them has run.
  Words kernels_not_run(const LoadedPlugin& plugin, const OperatorSchema& schema) const;
  // `kind` is "operator" or "rule".
  void tell(const char* kind, const std::string& name, const std::string& again, const OperatorVerdict& found, const Words& not_run = {});
  OperatorVerdict examine_order(const RegistrySnapshot& registry, const OperatorSchema& schema, CallHost& host) const;
  Result<Runtime> own_runtime() const;
  // The call of the command line; none: the operator's own cases.
  Result<std::optional<OperatorCase>> given_call(const OperatorSchema& schema, CallHost& host) const;
  Status check_operator(const std::shared_ptr<const RegistrySnapshot>& snapshot, const LoadedPlugin& plugin, const OperatorSchema& schema);
  void check_rules(const LoadedPlugin& plugin);
  int report_totals();

  const CheckArguments& o_;
  Report& report_;
  CommonOptions common_;
  const std::string device_;  // its full name; empty: none is requested
  std::map<std::string, Json> verdicts_ = {{"operator", Json::array()}, {"rule", Json::array()}};
  int passed_ = 0, failed_ = 0, not_run_ = 0, partly_ = 0;
};

// Makes the same calls in two processes, in one order and in reverse: shows effects of the first call on the others.
OperatorVerdict PluginSuite::examine_order(const RegistrySnapshot& registry, const OperatorSchema& schema, CallHost& host) const {
  const auto in_order = [&](bool last_first) {
    return examine_in_child(
        [&] {
          return OperatorVerdict{{}, {}, operator_results(registry, schema, o_.seed, &host, last_first)};
        },
        o_.timeout_s);
  };
  OperatorVerdict verdict = in_order(false);
  if (verdict.verdict.kind != Verdict::Kind::pass) return verdict;
  const OperatorVerdict other = in_order(true);
  if (other.verdict.kind == Verdict::Kind::pass && other.results != verdict.results)
    return {Verdict::of({"nondeterministic", "gives other bits where the process has made other calls before"}), {}};
  return other;
}

Status PluginSuite::check_device_is_there(const RegistrySnapshot& registry) const {
  if (device_.empty() || device_ == host_name) return {};
  if (is_host(device_)) return {Code::no_such_device, fmt::format("device {} does not exist", quoted(device_)), "there is one cpu: cpu:0"};
  HEDDLE_TRY(ChildProcess child, ChildProcess::start([&](const ChildProcess::Send& send) {
               const Status there = check_device(registry, device_);
               const Diagnostic said = there.ok() ? Diagnostic() : with_flags(there.diagnostic());
               send(Json({{"message", said.message}, {"hint", said.hint}}).dump());
             }));
  std::string text;
  switch (child.next(ChildProcess::Clock::now() + std::chrono::seconds(o_.timeout_s), &text)) {
    case ChildProcess::Event::message:
      break;
    case ChildProcess::Event::ended:
      return {Code::device_failed, fmt::format("its backend, asked for device {}, {}", quoted(device_), child.end_text())};
    case ChildProcess::Event::late:
      return {Code::device_failed,
              fmt::format("its backend, asked for device {}, said nothing within {} s", quoted(device_), o_.timeout_s)};
    case ChildProcess::Event::interrupted:
      return interruption();
  }
  const Json said = Json::parse(text);
  const std::string message = said["message"], hint = said["hint"];
  return message.empty() ? Status() : Status(Code::no_such_device, message, hint);
}

// The plugin's kernels of the operator.
std::vector<const heddle_kernel*> kernels_of(const LoadedPlugin& plugin, const OperatorSchema& schema) {
  std::vector<const heddle_kernel*> kernels;
  for (const KernelEntry& entry : plugin.kernels) {
    const heddle_kernel& kernel = *entry.kernel;
    if (schema.name == kernel.operator_name && schema.domain == (kernel.domain ? kernel.domain : "")) kernels.push_back(&kernel);
  }
  return kernels;
}

// Notes that need no run of the kernel. The step of a collective is ended by its communicator.
void note_missing_abort(const LoadedPlugin& plugin, const OperatorSchema& schema, std::vector<Note>* notes) {
  if (schema.has_trait(HEDDLE_TRAIT_COLLECTIVE)) return;
  for (const heddle_kernel* kernel : kernels_of(plugin, schema))
    if ((kernel->flags & HEDDLE_KERNEL_ASYNC) && !kernel->abort) {
      notes->push_back(
          {"no-abort",
           "its asynchronous kernel has no abort(): a step that never completes is given up at a deadline, and its context stays busy"});
      return;
    }
}

Words PluginSuite::kernels_not_run(const LoadedPlugin& plugin, const OperatorSchema& schema) const {
  std::set<std::string> kinds;
  for (const heddle_kernel* kernel : kernels_of(plugin, schema)) kinds.insert(kernel->device_kind);
  for (const std::string& ran : {device_kind(host_name), device_kind(device_)}) kinds.erase(ran);
  return {kinds.begin(), kinds.end()};
}

void PluginSuite::tell(const char* kind, const std::string& name, const std::string& again, const OperatorVerdict& found,
                       const Words& not_run) {
  const Verdict& verdict = found.verdict;
  const std::vector<std::string>& unseen = found.unseen;
  const std::string& reason = verdict.reason;
  const bool skipped = verdict.kind == Verdict::Kind::not_run, bad = verdict.kind == Verdict::Kind::fail;
  const bool passes = !skipped && !bad;
  partly_ += unseen.empty() && (not_run.empty() || !passes) ? 0 : 1;
  ++(bad ? failed_ : skipped ? not_run_ : passed_);
  verdicts_[kind].push_back({{kind, name},
                             {"status", bad       ? "fail"
                                        : skipped ? "not-run"
                                                  : "pass"},
                             {"mistake", verdict.mistake.empty() ? Json(nullptr) : Json(verdict.mistake)},
                             {"reason", reason.empty() ? Json(nullptr) : Json(reason)},
                             {"never_with", unseen}});
  if (std::string_view(kind) == "operator") {
    verdicts_[kind].back()["kernels_not_run"] = not_run;
    verdicts_[kind].back()["notes"] = notes_json(found.notes);
  }
  const char* const mark = bad ? "FAIL " : skipped ? "not run " : "ok   ";
  const std::string kind_of = bad ? fmt::format("{}: ", verdict.mistake) : "";
  report_.say(fmt::format("{}{}{}", mark, word(name), reason.empty() ? "" : fmt::format("  {}", quoted(kind_of + reason))));
  if (!unseen.empty()) report_.say(fmt::format("     never with {}", join(unseen, "; ")));
  for (const Note& note : found.notes) report_.say(fmt::format("     note {}: {}", note.name, note.text));
  for (const std::string& other : not_run)
    if (passes) report_.say(fmt::format("     kernel for {} not run", word(other)));
  if (bad)
    report_.say(fmt::format("     again: heddle plugin check {} --operator {} --seed {}{}{}", word(o_.file), word(again), o_.seed,
                            device_.empty() ? "" : fmt::format(" --device {}", word(device_)), call_options_text(o_.call)));
}

// Makes a runtime, which has threads: in the child alone.
Result<Runtime> PluginSuite::own_runtime() const {
  HEDDLE_TRY(Runtime own, make_runtime(common_));
  HEDDLE_CHECK(own.load_plugin(o_.file));
  return own;
}

Result<std::optional<OperatorCase>> PluginSuite::given_call(const OperatorSchema& schema, CallHost& host) const {
  if (o_.call.empty()) return std::optional<OperatorCase>();
  HEDDLE_TRY(auto said, parse_call(schema, o_.call, o_.seed));
  const std::string about = o_.call.example.empty() ? example_text(said.call, {}, 8) : o_.call.example;
  said.call.host = &host;
  return std::optional(OperatorCase{std::move(said.call), std::move(said.outputs), !said.says_outputs, about});
}

Status PluginSuite::check_operator(const std::shared_ptr<const RegistrySnapshot>& snapshot, const LoadedPlugin& plugin,
                                   const OperatorSchema& schema) {
  constexpr uint64_t last_trip = 1000;  // on random inputs a loop may never end
  SessionHost host(
      snapshot, [this] { return own_runtime(); }, last_trip);
  HEDDLE_TRY(const std::optional<OperatorCase> only, given_call(schema, host));
  const OperatorCase* const given = only ? &*only : nullptr;
  const Examination whole = [&] {
    if (device_.empty()) return examine_operator(*snapshot, schema, o_.seed, &host, nullptr, given);
    const Result<Runtime> own = own_runtime();
    if (!own.ok()) return OperatorVerdict{Verdict::of({"device", own.status().text()}), {}};
    DeviceExamination device(*own, device_);
    return examine_operator(*snapshot, schema, o_.seed, &host, &device, given);
  };
  OperatorVerdict verdict = examine_in_child(whole, o_.timeout_s);
  if (verdict.verdict.kind == Verdict::Kind::pass && !given)
    if (OperatorVerdict ordered = examine_order(*snapshot, schema, host); ordered.verdict.kind == Verdict::Kind::fail)
      verdict = std::move(ordered);
  note_missing_abort(plugin, schema, &verdict.notes);
  tell("operator", display_name(schema.domain, schema.name), schema.name, verdict, kernels_not_run(plugin, schema));
  return {};
}

void PluginSuite::check_rules(const LoadedPlugin& plugin) {
  const heddle_plugin& table = plugin.library->plugin();
  for (uint32_t i = 0; i < table.rule_count; ++i) {
    const heddle_rewrite_rule& rule = *table.rules[i];
    if (!o_.only.empty() && o_.only != rule.name) continue;
    const Examination whole = [&] {
      const Result<Runtime> own = own_runtime();
      return OperatorVerdict{own.ok() ? examine_rule(*own, rule, o_.seed) : Verdict::of({"value", own.status().text()}), {}};
    };
    tell("rule", rule.name, rule.name, examine_in_child(whole, o_.timeout_s));
  }
}

int PluginSuite::report_totals() {
  report_.json["operators"] = verdicts_["operator"];
  report_.json["rules"] = verdicts_["rule"];
  const Json not_examined = ProcessCounts::available() ? Json::array() : Json({"allocates", "starts-threads", "leak"});
  report_.json["not_examined"] = not_examined;
  report_.json["totals"] = {{"pass", passed_}, {"fail", failed_}, {"not_run", not_run_}, {"partly", partly_}};
  const bool rules = !verdicts_["rule"].empty();
  const int examined = passed_ + failed_ + not_run_;
  report_.say(
      fmt::format("{} of {} {} passed{}", passed_, examined, rules ? "operators and rules" : "operators",
                  (not_run_ > 0 ? fmt::format(", {} not run", not_run_) : "") + (partly_ > 0 ? fmt::format(", {} in part", partly_) : "")));
  if (!not_examined.empty()) report_.say("a build with sanitizers does not look for what allocates, starts threads or leaks memory");
  if (examined == 0)
    return report_.fail(Status(Code::unknown_name, fmt::format("nothing to check in {}", quoted(o_.file)),
                               fmt::format("see heddle inspect {}", word(o_.file))));
  return failed_ > 0 || (o_.strict && not_run_ + partly_ > 0) ? 1 : 0;
}

int PluginSuite::run() {
  if (!o_.call.empty() && o_.only.empty())
    return report_.fail(Status(Code::invalid_argument, "inputs are given, and no operator", "say which: --operator NAME"));
  Registry registry(read_rewrite_rule);
  Status loaded = load_plugins(registry, runtime_options(common_));
  if (loaded.ok()) loaded = registry.load(o_.file);
  if (!loaded.ok()) return report_.fail(loaded);
  const auto snapshot = registry.snapshot();
  if (const Status there = check_device_is_there(*snapshot); !there.ok()) return report_.fail(there);
  std::error_code error;
  const auto path = std::filesystem::canonical(o_.file, error);
  for (const auto& plugin : snapshot->plugins()) {
    if (plugin->library->path() != path) continue;
    Progress progress(report_, "operator", o_.only.empty() ? static_cast<int64_t>(plugin->operators.size()) : 1);
    int64_t done = 0;
    for (const OperatorSchema& schema : plugin->operators) {
      if (!o_.only.empty() && o_.only != schema.name) continue;
      progress.reached(done++, schema.name);
      if (const Status checked = check_operator(snapshot, *plugin, schema); !checked.ok()) return report_.fail(checked);
    }
    check_rules(*plugin);
  }
  return report_totals();
}

}  // namespace

Run declare_plugin_check(CLI::App& app) {
  auto o = std::make_shared<CheckArguments>();
  app.add_option("file", o->file, "the plugin")->required()->type_name("FILE.so");
  app.add_option("--operator", o->only, "this operator or rule alone")->type_name("NAME");
  add_call_options(app, o->call);
  app.add_option("--seed", o->seed, "of the random inputs")->check(whole_number());
  app.add_option("--device", o->device, "run each operator there too, and compare")->type_name("D");
  app.add_option("--timeout", o->timeout_s, "seconds per operator")->check(CLI::Range(1, 3600));
  app.add_flag("--strict", o->strict, "1 also when something was not run, an optional port, a dtype or an attribute with it");
  return [o](Report& report) { return PluginSuite(*o, report).run(); };
}

}  // namespace heddle::tool
