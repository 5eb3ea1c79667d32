// heddle: the runner. The commands are in commands/; docs/command_line.md is the contract.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>

#include "base/text/text.h"
#include "commands/commands.h"
#include "process/interrupt.h"
#include "version.h"

namespace heddle::tool {
namespace {

// `app` has its own options already; a command that takes --threads in its own way keeps it.
void add_common_options(CLI::App& app, CommonOptions& common) {
  app.add_option("--plugin", common.plugins, "load this plugin (repeatable)")->type_name("FILE.so");
  app.add_option("--plugin-dir", common.plugin_folders, "load every plugin of this folder")->type_name("DIR");
  if (!app.get_option_no_throw("--threads"))
    app.add_option("--threads", common.threads, "threads of a run (default: what affinity and cgroup allow)")
        ->type_name("N")
        ->check(CLI::Range(1, max_threads));
  app.add_flag("--json", common.json, "one JSON object on stdout");
  app.add_flag("--quiet", common.quiet, "no text but errors");
  app.add_flag("--no-progress", common.no_progress, "no progress on stderr");
  app.add_flag("--werror", common.warnings_are_errors, "warnings fail the command (exit 1)");
}

// A repeatable option takes one value each time: the next argument may be a file of the command's own.
void one_value_each(CLI::App& app) {
  for (CLI::Option* option : app.get_options())
    if (!option->get_positional()) option->allow_extra_args(false);
}

// Whether the command line requests JSON, also when it does not parse.
bool wants_json(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--json") return true;
  return false;
}

const Command* command_of(int argc, char** argv) {
  for (const Command* command : commands)
    if (argc > 1 && argv[1] == std::string_view(command->name)) return command;
  return nullptr;
}

// The form that the command line selects, whether or not it parses: the one whose second word is the subcommand or an option of it, else
// the plain one.
const Form* form_of(const Command& command, int argc, char** argv) {
  const Form* plain = nullptr;
  for (const Form& form : command.forms) {
    const size_t space = form.name.find(' ');
    if (space == std::string::npos) plain = &form;
    const std::string word = space == std::string::npos ? "" : form.name.substr(space + 1);
    for (int i = 2; i < argc && !word.empty(); ++i)
      if (word.starts_with("--") ? argv[i] == word || std::string_view(argv[i]).starts_with(word + "=") : i == 2 && argv[i] == word)
        return &form;
  }
  return plain;
}

// A report of what is known of the command line before it is parsed: enough for the object of a wrong usage, or of an early interruption.
Report unparsed_report(int argc, char** argv) {
  const Command* command = command_of(argc, argv);
  Report report(command);
  report.common.json = wants_json(argc, argv);
  report.begin(command ? form_of(*command, argc, argv) : nullptr);
  return report;
}

int wrong_usage(const CLI::ParseError& error, const std::string& command, Report report) {
  return report.finish(report.fail(
      Status(Code::unknown_option, error.what(), command.empty() ? "see heddle --help" : fmt::format("see heddle {} --help", command))));
}

// The command that the command line requests.
struct Invocation {
  std::shared_ptr<Report> report;  // null: nothing is run, exit with `exit_code`
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
  for (const Command* command : commands) {
    CLI::App* sub = app.add_subcommand(command->name, command->description);
    sub->footer(fmt::format("Example: {}", command->example));
    auto report = std::make_shared<Report>(command);
    const Run run = command->declare(*sub);
    const std::vector<CLI::App*> inner = sub->get_subcommands({});
    for (CLI::App* one : inner.empty() ? std::vector<CLI::App*>{sub} : inner) {
      add_common_options(*one, report->common);
      one_value_each(*one);
    }
    sub->preparse_callback([&chosen, name = command->name](size_t) { chosen = name; });
    sub->callback([=, &invocation] {
      report->begin(form_of(*command, argc, argv));
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
  // A pipe that is closed early is seen at the write, and ends no process: Report::finish() says how.
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
