// completion: what shells need to complete command lines of the tool, made from the tables that are parsed.
#include <fmt/format.h>

#include "base/text/text.h"
#include "commands/commands.h"
#include "common/application.h"

namespace heddle::tool {
namespace {

// A command as the user types it, without the name of the tool: "run", "plugin check".
struct Line {
  std::string words;
  const CLI::App* app = nullptr;
};

std::vector<Line> lines_of(const CLI::App& app, const std::string& before = "") {
  std::vector<Line> all;
  for (const CLI::App* command : commands_of(app)) {
    const std::string words = before.empty() ? command->get_name() : fmt::format("{} {}", before, command->get_name());
    all.push_back({words, command});
    for (Line& inner : lines_of(*command, words)) all.push_back(std::move(inner));
  }
  return all;
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

// Returns "--repeat" and "-o" as they are typed.
std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_lnames()) flags.push_back(fmt::format("--{}", name));
  for (const std::string& name : option.get_snames()) flags.push_back(fmt::format("-{}", name));
  return flags;
}

std::vector<std::string> words_after(const CLI::App& app) {
  std::vector<std::string> all;
  for (const CLI::App* command : commands_of(app)) all.push_back(command->get_name());
  for (const CLI::Option* option : shown_options(app))
    for (std::string& flag : flags_of(*option)) all.push_back(std::move(flag));
  all.emplace_back("--help");
  return all;
}

// Text within single quotes of a shell.
std::string in_quotes(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out;
}

// Returns the commands that have commands, as a pattern of a shell.
std::string groups_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app))
    if (!commands_of(*command).empty()) names.push_back(command->get_name());
  return join(names, "|");
}

std::string bash_completion(const CLI::App& app) {
  std::string out = fmt::format(
      "# Completion of heddle for bash, made by `heddle completion bash`.\n"
      "_heddle() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} line=${{COMP_WORDS[1]-}} words files=\n"
      "  case $line in\n"
      "    {}) [[ $COMP_CWORD -gt 2 ]] && line=\"$line ${{COMP_WORDS[2]}}\" ;;\n"
      "  esac\n"
      "  [[ $COMP_CWORD -le 1 ]] && line=\n"
      "  case $line in\n",
      groups_of(app));
  out += fmt::format("    '') words='{}' ;;\n", join(words_after(app), " "));
  for (const Line& line : lines_of(app))
    out += fmt::format("    '{}') words='{}'{} ;;\n", line.words, join(words_after(*line.app), " "),
                       commands_of(*line.app).empty() ? " files=1" : "");
  return out +
         "    *) words= ;;\n"
         "  esac\n"
         "  if [[ $word == -* || -z $files ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
         "  else\n"
         "    compopt -o filenames 2>/dev/null\n"
         "    mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
         "  fi\n"
         "}\n"
         "complete -F _heddle heddle\n";
}

std::string zsh_completion(const CLI::App& app) {
  // In a description of _arguments, brackets and colons have a meaning.
  const auto described = [](const std::string& text) {
    std::string out;
    for (const char c : text) out += c == '[' || c == ']' || c == ':' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    return in_quotes(out);
  };
  std::string out =
      "#compdef heddle\n# Completion of heddle for zsh, made by `heddle completion zsh`.\n_heddle() {\n  local line=$words[2]\n";
  out += fmt::format("  case $line in\n    {}) [[ $CURRENT -gt 3 ]] && line=\"$line $words[3]\" ;;\n  esac\n", groups_of(app));
  out += "  [[ $CURRENT -le 2 ]] && line=\n  case $line in\n";
  const auto commands_case = [&](const CLI::App& of) {
    std::string text = "      local -a commands=(";
    for (const CLI::App* command : commands_of(of))
      text += fmt::format("\n        '{}:{}'", command->get_name(), described(command->get_description()));
    return fmt::format("{})\n      _describe command commands ;;\n", text);
  };
  out += fmt::format("    '')\n{}", commands_case(app));
  for (const Line& line : lines_of(app)) {
    if (!commands_of(*line.app).empty()) {
      out += fmt::format("    '{}')\n{}", line.words, commands_case(*line.app));
      continue;
    }
    out += fmt::format("    '{}')\n      _arguments", line.words);
    for (const CLI::Option* option : shown_options(*line.app))
      for (const std::string& flag : flags_of(*option))
        out +=
            fmt::format(" \\\n        '{}[{}]{}'", flag, described(option->get_description()), takes_value(*option) ? ":value:_files" : "");
    out += " \\\n        '*:file:_files' ;;\n";
  }
  return fmt::format("{}  esac\n}}\n_heddle \"$@\"\n", out);
}

std::string fish_completion(const CLI::App& app) {
  std::string out = "# Completion of heddle for fish, made by `heddle completion fish`.\n";
  const auto complete = [&](const CLI::App& of, const std::string& condition) {
    for (const CLI::App* command : commands_of(of))
      out += fmt::format("complete -c heddle -f -n '{}' -a {} -d '{}'\n", condition, command->get_name(),
                         in_quotes(command->get_description()));
    for (const CLI::Option* option : shown_options(of)) {
      std::string names;
      for (const std::string& name : option->get_lnames()) names += fmt::format(" -l {}", name);
      for (const std::string& name : option->get_snames()) names += fmt::format(" -s {}", name);
      if (names.empty()) continue;
      out += fmt::format("complete -c heddle -n '{}'{} -d '{}'{}\n", condition, names, in_quotes(option->get_description()),
                         takes_value(*option) ? " -r" : "");
    }
  };
  complete(app, "__fish_use_subcommand");
  for (const Line& line : lines_of(app)) {
    const size_t space = line.words.find(' ');
    const std::string command = line.words.substr(0, space);
    std::string condition = fmt::format("__fish_seen_subcommand_from {}", command);
    if (space != std::string::npos)
      condition += fmt::format("; and __fish_seen_subcommand_from {}", line.words.substr(space + 1));
    else
      for (const CLI::App* group : commands_of(app))  // "run", but not "plugin run"
        for (const CLI::App* inner : commands_of(*group))
          if (inner->get_name() == command) condition += fmt::format("; and not __fish_seen_subcommand_from {}", group->get_name());
    complete(*line.app, condition);
  }
  return out;
}

Run declare_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("shell", *shell, "bash, zsh or fish")->required()->type_name("SHELL")->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return [shell](Report& report) {
    CLI::App application;
    declare_application(application, [](const Command&, CLI::App&, const std::shared_ptr<Report>&, const Run&) {});
    std::string text = *shell == "bash"  ? bash_completion(application)
                       : *shell == "zsh" ? zsh_completion(application)
                                         : fish_completion(application);
    text.pop_back();  // the line feed that print() adds
    report.json["text"] = text;
    report.print(text);
    return 0;
  };
}

}  // namespace

const Command completion_command = {"completion",
                                    "what bash, zsh or fish need to complete command lines",
                                    "heddle completion bash > ~/.local/share/bash-completion/completions/heddle",
                                    declare_completion,
                                    {{"completion", {"text"}}}};

}  // namespace heddle::tool
