// heddle: the runner. The commands are in commands/; docs/command_line.md is the contract.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>

#include "base/text/text.h"
#include "commands/commands.h"
#include "common/application.h"
#include "process/interrupt.h"
#include "version.h"

namespace heddle::tool {
namespace {

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

// Returns the command of `app` that the command line selects, with the command that it is of; else `app`.
const CLI::App& selected(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc; ++i) {
    const auto inner = at->get_subcommands([&](const CLI::App* one) { return one->get_name() == argv[i]; });
    if (inner.empty()) break;
    at = inner[0];
  }
  return *at;
}

// Returns what the first word of the command line that is none of the tool's may have been meant to be; empty: there is no such word, or
// nothing is like it.
std::string meant(const CLI::App& app, int argc, char** argv) {
  const CLI::App& command = selected(app, argc, argv);
  std::vector<std::string> names;
  for (const CLI::App* inner : command.get_subcommands({})) names.push_back(inner->get_name());
  int first = 1;
  for (const CLI::App* at = &command; at != &app; at = at->get_parent()) ++first;
  if (!names.empty() && first < argc && argv[first][0] != '-') return suggestion(argv[first], names);
  names.clear();
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames())
      if (!option->get_group().empty()) names.push_back("--" + name);  // those without a group are not in the help
  for (int i = first; i < argc; ++i) {
    const std::string word = std::string(argv[i]).substr(0, std::string(argv[i]).find('='));
    if (word.starts_with("--") && word.size() > 2 && std::find(names.begin(), names.end(), word) == names.end())
      return suggestion(word, names);
  }
  return {};
}

int wrong_usage(const CLI::ParseError& error, const CLI::App& app, int argc, char** argv, Report report) {
  const CLI::App& command = selected(app, argc, argv);
  std::string path;
  int words = 1;
  for (const CLI::App* at = &command; at != &app; at = at->get_parent(), ++words) path = fmt::format(" {}{}", at->get_name(), path);
  const std::string guess = meant(app, argc, argv), page = fmt::format("see heddle{} --help", path);
  const bool is_no_command = !command.get_subcommands({}).empty() && words < argc && argv[words][0] != '-';
  std::string message = error.what();
  const std::vector<std::string> unexpected = app.remaining(true);
  if (is_no_command)
    message = fmt::format("there is no command {}", quoted(argv[words]));
  else if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) &&
           !unexpected.empty())  // the library names them in reverse
    message = fmt::format("{} not known here: {}", unexpected.size() == 1 ? "this argument is" : "these arguments are",
                          all_quoted(unexpected, " "));
  return report.finish(report.fail(Status(Code::unknown_option, message, guess.empty() ? page : fmt::format("{} {}", guess, page))));
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
  Invocation invocation;
  CLI::App app;
  declare_application(app, [&](const Command& command, CLI::App& declared, const std::shared_ptr<Report>& report, const Run& run) {
    declared.callback([=, &command, &invocation] {
      report->begin(form_of(command, argc, argv));
      invocation = {report, run, 0};
    });
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return {nullptr, {}, app.exit(e)};
  } catch (const CLI::ParseError& e) {
    return {nullptr, {}, wrong_usage(e, app, argc, argv, unparsed)};
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
