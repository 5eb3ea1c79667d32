// heddle: the runner. Each command is where its declare_ function is; docs/command_line.md is the contract.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>

#include "base/text.h"
#include "common/command.h"
#include "common/interrupt.h"
#include "version.h"

namespace heddle::tool {
namespace {

constexpr Command commands[] = {
    {"run", "compile a net and run it", "heddle run resnet50.heddle --random 1 --repeat 10", declare_run},
    {"check", "everything that can be known without running", "heddle check net.json", declare_check},
    {"plan", "steps, kernels, layouts, memory; or the offset planner alone", "heddle plan resnet50.heddle --svg plan.svg", declare_plan},
    {"import", "ONNX model to net", "heddle import model.onnx -o model.heddle", declare_import},
    {"verify-onnx", "run ONNX backend test folders and compare", "heddle verify-onnx /usr/share/libonnx-testdata/data/pytorch-converted",
     declare_verify_onnx},
    {"inspect", "a net, weights or plugin, readable", "heddle inspect resnet50.heddle --stats", declare_inspect},
    {"convert", "between .heddle and .json, losslessly", "heddle convert net.heddle net.json", declare_convert},
    {"model", "write a net from a recipe", "heddle model resnet50 -o resnet50.heddle", declare_model},
    {"bench", "repeated timing, whole and by operator", "heddle bench resnet50.heddle --threads 1,2", declare_bench},
    {"plugin", "list, check, make and run plugins", "heddle plugin list", declare_plugin},
    {"devices", "devices of all backends", "heddle devices", declare_devices},
};

void add_common_options(CLI::App& app, CommonOptions& common, bool threads_list) {
  app.add_option("--plugin", common.plugins, "load this plugin (repeatable)")->type_name("FILE.so");
  app.add_option("--plugin-dir", common.plugin_folders, "load every plugin of this folder")->type_name("DIR");
  if (!threads_list)
    app.add_option("--threads", common.threads, "threads of a run (default: what affinity and cgroup allow)")
        ->type_name("N")
        ->check(CLI::Range(1, most_threads));
  app.add_flag("--json", common.json, "one JSON object on stdout");
  app.add_flag("--quiet", common.quiet, "no text but errors");
  app.add_flag("--no-progress", common.no_progress, "no progress on stderr");
  app.add_flag("--werror", common.warnings_are_errors, "warnings fail the command (exit 1)");
}

// A repeatable option takes one value each time: what follows may be a file of the command's own.
void one_value_each(CLI::App& app) {
  for (CLI::Option* option : app.get_options())
    if (!option->get_positional()) option->allow_extra_args(false);
}

// Whether the command line asks for JSON, also when it does not parse.
bool wants_json(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--json") return true;
  return false;
}

// What is known of the command line before it is parsed: enough for the object of a wrong usage, or of an early interruption.
Report unparsed_report(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  const bool known = std::any_of(std::begin(commands), std::end(commands), [&](const Command& c) { return c.name == first; });
  Report report(known ? first : "");
  report.common.json = wants_json(argc, argv);
  std::string form = first;
  if (first == "plugin" && argc > 2) form += std::string(" ") + argv[2];
  for (int i = 2; i < argc; ++i)
    if (first == "plan" && std::string_view(argv[i]) == "--buffers") form = "plan --buffers";
  report.begin(form);
  return report;
}

int wrong_usage(const CLI::ParseError& error, const std::string& command, Report report) {
  return report.finish(
      report.fail(Status(Code::unknown_option, error.what(), command.empty() ? "see heddle --help" : "see heddle " + command + " --help")));
}

// What the command line asks for.
struct Invocation {
  std::shared_ptr<Report> report;  // null: there is nothing to run, exit with `exit_code`
  Run run;
  int exit_code = 2;
};

Invocation parse_command_line(int argc, char** argv) {
  const Report unparsed = unparsed_report(argc, argv);
  handle_interrupts();
  CLI::App app("heddle runs dataflow nets of operators that come from plugins.", "heddle");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.footer("Exit status: 0 done; 1 run, check or comparison failed; 2 wrong usage; 3 a file, operator or plugin; 4 memory or a limit.");
  Invocation invocation;
  std::string chosen;
  for (const Command& command : commands) {
    CLI::App* sub = app.add_subcommand(command.name, command.description);
    sub->footer(std::string("Example: ") + command.example);
    auto report = std::make_shared<Report>(command.name);
    const bool own_threads = std::string_view(command.name) == "bench";
    if (std::string_view(command.name) != "plugin") add_common_options(*sub, report->common, own_threads);
    const Run run = command.declare(*sub);
    if (std::string_view(command.name) == "plugin")
      for (CLI::App* inner : sub->get_subcommands({})) add_common_options(*inner, report->common, false);
    one_value_each(*sub);
    for (CLI::App* inner : sub->get_subcommands({})) one_value_each(*inner);
    sub->preparse_callback([&chosen, name = command.name](size_t) { chosen = name; });
    sub->callback([&invocation, report, run, sub] {
      // The offset planner alone is another form, which must be known before a signal may ask for the object.
      const CLI::Option* buffers = sub->get_option_no_throw("--buffers");
      if (buffers && buffers->count() > 0)
        report->begin("plan --buffers");
      else
        report->begin();
      invocation = {report, run, 0};
    });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return {nullptr, {}, app.exit(e)};
  } catch (const CLI::ParseError& e) {
    return {nullptr, {}, wrong_usage(e, chosen, unparsed)};
  }
  return invocation;
}

}  // namespace
}  // namespace heddle::tool

int main(int argc, char** argv) {
  using namespace heddle;
  // A pipe that is closed early is an error of the write, not a signal.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  const tool::Invocation invocation = tool::parse_command_line(argc, argv);
  if (!invocation.report) return invocation.exit_code;
  Status failed;
  try {
    return invocation.report->finish(invocation.run(*invocation.report));
  } catch (const std::bad_alloc&) {
    failed = Status(Code::out_of_memory, "the tool ran out of memory", "use smaller inputs or raise the memory limit");
  } catch (const std::exception& e) {
    failed = Status(Code::internal, quoted(e.what()), "please report this");
  }
  return invocation.report->finish(invocation.report->fail(failed));
}
