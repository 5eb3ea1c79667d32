// manual: manual pages in the language of mdoc(7), made from the tables that are parsed.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "base/text/text.h"
#include "commands/commands.h"
#include "common/application.h"

namespace heddle::tool {
namespace {

// The date of the pages: of their last change of form. What they say follows the program.
constexpr const char* page_date = "November 30, 2026";

// Text of a page: backslashes and hyphens are themselves.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

// An argument of a macro: one word, also where it has spaces.
std::string argument(const std::string& text) {
  std::string out;
  for (const char c : roff(text)) out += c == '"' ? std::string("\\(dq") : std::string(1, c);
  // Words that are macros themselves are taken as text.
  return fmt::format("\"\\&{}\"", out);
}

// Returns the text in lines of at most 78 characters, none of which begins like a request of roff.
std::string filled(const std::string& text) {
  constexpr size_t longest = 78;
  std::string out, line;
  std::istringstream words(text);
  const auto end_line = [&] {
    out += fmt::format("{}{}\n", !line.empty() && (line[0] == '.' || line[0] == '\'') ? "\\&" : "", line);
    line.clear();
  };
  for (std::string word; words >> word;) {
    word = roff(word);
    if (!line.empty() && line.size() + 1 + word.size() > longest) end_line();
    line += line.empty() ? word : fmt::format(" {}", word);
  }
  if (!line.empty()) end_line();
  return out;
}

// Returns the kind of value that an option takes, without the range that is checked: "N" of "N:INT in [1 - 64]".
std::string value_name(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

std::string option_line(const CLI::Option& option) {
  std::string line = ".It";
  for (const std::string& name : option.get_lnames()) line += fmt::format("{} Fl \\-{}", line == ".It" ? "" : " ,", roff(name));
  for (const std::string& name : option.get_snames()) line += fmt::format("{} Fl {}", line == ".It" ? "" : " ,", roff(name));
  const bool is_positional = line == ".It";
  if (is_positional) line += fmt::format(" Ar {}", argument(value_name(option).empty() ? option.get_name() : value_name(option)));
  if (!is_positional && option.get_items_expected_max() > 0 && !value_name(option).empty())
    line += fmt::format(" Ar {}", argument(value_name(option)));
  const std::string& description = option.get_description();
  return fmt::format("{}\n{}", line, description.empty() ? "\\&\n" : filled(description));
}

std::string options_section(const CLI::App& app) {
  const std::vector<const CLI::Option*> options = shown_options(app);
  if (options.empty()) return {};
  std::string out = ".Bl -tag -width Ds\n";
  for (const CLI::Option* option : options) out += option_line(*option);
  return fmt::format("{}.El\n", out);
}

std::string head(const std::string& name, const std::string& description) {
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return fmt::format(".Dd {}\n.Dt {} 1\n.Os\n.Sh NAME\n.Nm {}\n.Nd {}\n", page_date, upper, name, roff(description));
}

std::string exit_section() {
  return fmt::format(
      ".Sh EXIT STATUS\n{}",
      filled("0: done; 1: the run, check or comparison failed; 2: wrong usage; 3: a file, an operator or a plugin; 4: memory or a "
             "limit; 141: the reader of its output has gone; 130 and 143: interrupted."));
}

std::string tool_page(const CLI::App& app) {
  std::string out = head("heddle", "run and train neural networks that are described as nets");
  out +=
      ".Sh SYNOPSIS\n.Nm\n.Ar command\n.Op Ar argument ...\n.Sh DESCRIPTION\nThe commands, each with a page of its own:\n.Bl -tag -width "
      "verify\n";
  for (const CLI::App* command : commands_of(app))
    out += fmt::format(".It Cm {}\n{}", roff(command->get_name()), filled(command->get_description()));
  out += fmt::format(".El\n.Sh OPTIONS\n{}{}.Sh SEE ALSO\n", options_section(app), exit_section());
  std::vector<std::string> pages;
  for (const CLI::App* command : commands_of(app)) pages.push_back(fmt::format(".Xr heddle-{} 1", command->get_name()));
  std::sort(pages.begin(), pages.end());
  return fmt::format("{}{}\n", out, join(pages, " ,\n"));
}

std::string command_page(const CLI::App& command) {
  const std::string name = fmt::format("heddle-{}", command.get_name());
  const std::vector<const CLI::App*> inner = commands_of(command);
  std::string out = head(name, command.get_description());
  out += fmt::format(".Sh SYNOPSIS\n.Nm heddle Cm {}\n", command.get_name());
  if (!inner.empty()) out += ".Ar command\n";
  for (const CLI::Option* option : shown_options(command))
    if (option->get_positional())
      out += fmt::format("{} {}\n", option->get_required() ? ".Ar" : ".Op Ar",
                         argument(value_name(*option).empty() ? option->get_name() : value_name(*option)));
  out += ".Op Ar option ...\n.Sh DESCRIPTION\n";
  if (inner.empty()) out += options_section(command);
  for (const CLI::App* one : inner)
    out += fmt::format(".Ss {}\n{}{}", roff(one->get_name()), filled(fmt::format("{}.", one->get_description())), options_section(*one));
  out += exit_section();
  constexpr std::string_view prefix = "Example: ";
  if (const std::string footer = command.get_footer(); footer.starts_with(prefix))
    out += fmt::format(".Sh EXAMPLES\n.Dl {}\n", argument(footer.substr(prefix.size())));
  return fmt::format("{}.Sh SEE ALSO\n.Xr heddle 1\n", out);
}

Run declare_manual(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  app.add_option("command", *name, "whose page it is; else that of the tool")->type_name("COMMAND");
  return [name](Report& report) {
    CLI::App application;
    declare_application(application, [](const Command&, CLI::App&, const std::shared_ptr<Report>&, const Run&) {});
    std::vector<std::string> names;
    std::string text = name->empty() ? tool_page(application) : "";
    for (const CLI::App* command : commands_of(application)) {
      names.push_back(command->get_name());
      if (command->get_name() == *name) text = command_page(*command);
    }
    if (text.empty()) {
      const std::string guess = suggestion(*name, names);
      return report.fail(Status(Code::unknown_name, fmt::format("there is no command {}", quoted(*name)),
                                guess.empty() ? fmt::format("its commands are {}", join(names, ", ")) : guess));
    }
    text.pop_back();
    report.json["text"] = text;
    report.print(text);
    return 0;
  };
}

}  // namespace

const Command manual_command = {
    "manual", "manual pages, as man reads them", "heddle manual run | man -l -", declare_manual, {{"manual", {"text"}}}};

}  // namespace heddle::tool
