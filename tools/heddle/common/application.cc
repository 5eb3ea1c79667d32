#include "common/application.h"

#include <fmt/format.h>

#include "commands/commands.h"
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

}  // namespace

void declare_application(CLI::App& app, const std::function<void(const Command& command, CLI::App& declared,
                                                                 const std::shared_ptr<Report>& report, const Run& run)>& declared) {
  app.name("heddle");
  app.description("heddle runs dataflow nets of operators that come from plugins.");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 done; 1 run, check or comparison failed; 2 wrong usage; 3 a file, operator or plugin; 4 memory or a limit.\n"
      "Manual pages: man heddle, man heddle-run, ...; all of it: docs/command_line.md.");
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
    declared(*command, *sub, report, run);
  }
}

std::vector<const CLI::Option*> shown_options(const CLI::App& app) {
  std::vector<const CLI::Option*> all;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty() && !option->check_lname("help")) all.push_back(option);
  return all;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands(nullptr);
}

}  // namespace heddle::tool
