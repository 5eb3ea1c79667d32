// Manual pages and completions: they have every command and option that the help has, and the programs that read them take them.
#include <set>
#include <sstream>

#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

// Returns the commands that the help lists, with those within them: "run", "plugin check".
std::vector<Words> all_commands() {
  std::vector<Words> all;
  const auto listed = [](const Words& before) {
    Words names, words = before;
    words.push_back("--help");
    std::istringstream help(heddle(words).out);
    bool within = false;
    for (std::string line; std::getline(help, line);) {
      if (within && line.rfind("  ", 0) == 0 && line.size() > 2 && line[2] != ' ') names.push_back(line.substr(2, line.find(' ', 2) - 2));
      if (line == "Subcommands:") within = true;
      if (line.empty()) within = false;
    }
    return names;
  };
  for (const std::string& name : listed({})) {
    all.push_back({name});
    for (const std::string& inner : listed({name})) all.push_back({name, inner});
  }
  return all;
}

// Returns the long options that the help of a command lists.
std::set<std::string> options_of(Words command) {
  command.push_back("--help");
  const std::string help = heddle(command).out;
  std::set<std::string> names;
  for (size_t at = help.find("\n  "); at != std::string::npos; at = help.find("\n  ", at + 1)) {
    const std::string line = help.substr(at + 3, help.find('\n', at + 1) - at - 3);
    if (line.empty() || line[0] != '-') continue;
    for (size_t flag = line.find("--"); flag != std::string::npos && flag < 20; flag = line.find("--", flag + 2))
      names.insert(line.substr(flag, line.find_first_of(" ,{", flag) - flag));
  }
  names.erase("--help");
  return names;
}

// Whether a program takes the file; it is skipped where it is not installed.
void expect_taken(const std::string& program, const std::string& arguments, const std::string& file) {
  if (std::system(("command -v " + program + " > /dev/null").c_str()) != 0) return;
  EXPECT_EQ(std::system((program + " " + arguments + " " + file).c_str()), 0) << program << " " << arguments << " " << file;
}

TEST(ToolPages, CompletionsHaveEveryCommandAndOption) {
  const NetFolder folder("");
  for (const char* const shell : {"bash", "zsh", "fish"}) {
    const std::string text = heddle({"completion", shell}).out, file = folder.file(shell);
    write_text(file, text);
    expect_taken(shell, "-n", file);
    EXPECT_EQ(heddle_json({"completion", shell})["text"].get<std::string>() + "\n", text);
    for (const Words& command : all_commands()) {
      EXPECT_NE(text.find(command.back()), std::string::npos) << shell << ": " << command.back();
      for (const std::string& option : options_of(command))
        EXPECT_NE(text.find(shell == std::string("fish") ? " -l " + option.substr(2) : option), std::string::npos)
            << shell << ": " << option;
    }
  }
  EXPECT_EQ(heddle({"completion", "powershell"}).status, 2);
}

// Bash offers the words that complete a few beginnings of lines.
TEST(ToolPages, CompletionsOfBashComplete) {
  const NetFolder folder("");
  write_text(folder / "heddle", heddle({"completion", "bash"}).out);
  const auto offered = [&](const std::string& words, int at) {
    const std::string script = "source " + folder.file("heddle") + "; COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(at) +
                               "; _heddle; echo ${COMPREPLY[@]}";
    write_text(folder / "script", script);
    EXPECT_EQ(std::system(("bash " + folder.file("script") + " > " + folder.file("out")).c_str()), 0);
    return read_text(folder / "out");
  };
  EXPECT_EQ(offered("heddle pl", 1), "plan plugin\n");
  EXPECT_EQ(offered("heddle run --repe", 2), "--repeat\n");
  EXPECT_EQ(offered("heddle plugin ch", 2), "check\n");
  EXPECT_EQ(offered("heddle plugin check --stri", 3), "--strict\n");
  EXPECT_EQ(offered("heddle run " + folder.file("hed"), 2), folder.file("heddle") + "\n") << "files";
}

// "plugin run" has a command's name within it: fish must not offer the options of "run" there.
TEST(ToolPages, CompletionsOfFishTellCommandsFromThoseOfGroups) {
  const std::string text = heddle({"completion", "fish"}).out;
  EXPECT_NE(text.find("-n '__fish_seen_subcommand_from run; and not __fish_seen_subcommand_from plugin' -l report"), std::string::npos);
  EXPECT_NE(text.find("-n '__fish_seen_subcommand_from plugin; and __fish_seen_subcommand_from run' -l"), std::string::npos);
  EXPECT_EQ(text.find("-n '__fish_seen_subcommand_from run' "), std::string::npos);
}

TEST(ToolPages, ManualsHaveEveryCommandAndOption) {
  const NetFolder folder("");
  write_text(folder / "heddle.1", heddle({"manual"}).out);
  expect_taken("mandoc", "-T lint -W warning", folder.file("heddle.1"));
  const auto roff = [](const std::string& text) {
    std::string out;
    for (const char c : text) out += c == '-' ? std::string("\\-") : std::string(1, c);
    return out;
  };
  std::string page;
  for (const Words& command : all_commands()) {
    EXPECT_NE(read_text(folder / "heddle.1").find(roff(command[0])), std::string::npos) << command[0];
    if (command.size() == 1) {
      page = heddle({"manual", command[0]}).out;
      write_text(folder / "page.1", page);
      expect_taken("mandoc", "-T lint -W warning", folder.file("page.1"));
      EXPECT_EQ(heddle_json({"manual", command[0]})["text"].get<std::string>() + "\n", page);
    } else {
      EXPECT_NE(page.find("\n.Ss " + roff(command[1]) + "\n"), std::string::npos) << command[1];
    }
    for (const std::string& option : options_of(command))
      EXPECT_NE(page.find("Fl " + roff(option.substr(1))), std::string::npos) << command[0] << " " << option;
  }
  EXPECT_GE(all_commands().size(), 15u);
  EXPECT_EQ(codes(heddle_json({"manual", "runn"}, 2)), Words{"unknown-name"});
}

// A slip is answered with what may have been meant.
TEST(ToolPages, SlipsAreAnsweredWithWhatMayBeMeant) {
  const auto says = [](const Words& words) { return heddle(words).err; };
  EXPECT_EQ(says({"runn", "x"}), "error[unknown-option]: there is no command \"runn\"; did you mean \"run\"? see heddle --help\n");
  EXPECT_EQ(says({"plugin", "chek"}),
            "error[unknown-option]: there is no command \"chek\"; did you mean \"check\"? see heddle plugin --help\n");
  EXPECT_NE(says({"run", "x", "--repet", "5"}).find("did you mean \"--repeat\""), std::string::npos);
  EXPECT_NE(says({"plan", "x", "--svgg=1"}).find("did you mean \"--svg\"? see heddle plan --help"), std::string::npos);
  EXPECT_NE(says({"plugin", "check", "x", "--strct"}).find("see heddle plugin check --help"), std::string::npos);
  EXPECT_EQ(says({"zzzzzz"}), "error[unknown-option]: there is no command \"zzzzzz\"; see heddle --help\n");
  EXPECT_EQ(heddle({"runn"}).status, 2);
}

}  // namespace
}  // namespace heddle::tool_tests
