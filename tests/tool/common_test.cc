// The common part of every command: options, diagnostics, exit status, the one object.
#include <sys/stat.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

// Returns the commands that `heddle --help` lists.
Words commands() {
  const std::string help = heddle({"--help"}).out;
  const size_t begin = help.find("Subcommands:\n"), end = help.find("\n\n", begin);
  EXPECT_NE(end, std::string::npos) << help;
  Words names;
  std::istringstream lines(help.substr(begin, end - begin));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) names.push_back(line.substr(2, line.find(' ', 2) - 2));
  EXPECT_GE(names.size(), 13u) << help;
  return names;
}

std::string loaded_plugins(const Json& object) {
  std::string names;
  for (const Json& plugin : object["plugins"]) names += plugin["name"].get<std::string>() + " ";
  return names;
}

// The shell finds the tool by PATH; plugins in the current folder are not loaded.
TEST(ToolCommon, PluginsAreFoundBesideTheProgramHoweverItIsCalled) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "heddle/plugins");
  std::filesystem::create_symlink(std::filesystem::canonical(example_plugin), folder / "heddle/plugins/example.so");
  const std::string command = "cd " + folder.path().string() +
                              " && env -u HEDDLE_PLUGIN_DIR PATH=" HEDDLE_BINARY_DIR "/bin:$PATH heddle plugin list --json > list.json";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const Json list = Json::parse(read_text(folder / "list.json"), nullptr, false);
  EXPECT_EQ(loaded_plugins(list), bundled_plugins);
}

TEST(ToolCommon, VersionNamesProductAbiFormatCommitAndBackends) {
  const Outcome outcome = heddle({"--version"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(
      std::regex_search(outcome.out, std::regex(R"(^heddle \d+\.\d+\.\d+, ABI \d+\.\d+, net format \d+, commit \w+, backends: cpu)")))
      << outcome.out;
}

TEST(ToolCommon, HelpOfEveryCommandHasAnExample) {
  const Outcome whole = heddle({"--help"});
  EXPECT_EQ(whole.status, 0);
  for (const std::string& command : commands()) {
    EXPECT_NE(whole.out.find("  " + command + " "), std::string::npos) << command;
    const Outcome help = heddle({command, "--help"});
    EXPECT_EQ(help.status, 0);
    if (command != "plugin") {
      EXPECT_NE(help.out.find("Example: heddle " + command), std::string::npos) << help.out;
      for (const char* option : {"--plugin", "--plugin-dir", "--threads", "--json", "--quiet", "--no-progress", "--werror"})
        EXPECT_NE(help.out.find(option), std::string::npos) << command << " " << option;
    }
  }
  for (const char* inner : {"list", "check", "new", "run"})
    EXPECT_NE(heddle({"plugin", inner, "--help"}).out.find("Example: heddle plugin " + std::string(inner)), std::string::npos) << inner;
}

// Returns the part of docs/command_line.md under the heading that begins so, and the part about all commands.
std::string documentation_of(const std::string& command) {
  const std::string page = read_text(HEDDLE_SOURCE_DIR "/docs/command_line.md");
  const size_t shared_end = page.find("\n## heddle "), begin = page.find("\n## heddle " + command);
  EXPECT_NE(begin, std::string::npos) << command << " has no section";
  return page.substr(0, shared_end) + page.substr(begin, page.find("\n## ", begin + 1) - begin);
}

TEST(ToolCommon, EveryOptionIsDocumented) {
  const std::regex option(R"((?:^|[ ,])(--?[a-z][a-z-]*))");
  const std::string coverage = read_text(HEDDLE_SOURCE_DIR "/tests/COVERAGE.md");
  for (const std::string& command : commands()) {
    const std::string documentation = documentation_of(command);
    std::vector<Words> calls = {{command}};
    for (const char* inner : {"list", "check", "new", "run"})
      if (command == "plugin") calls.push_back({command, inner});
    for (const Words& call : calls) {
      Words arguments = call;
      arguments.push_back("--help");
      std::string help = heddle(arguments).out;
      help = help.substr(0, help.find("Example:"));
      size_t options = 0;
      for (std::sregex_iterator it(help.begin(), help.end(), option), end; it != end; ++it, ++options) {
        const std::string name = (*it)[1].str();
        if (name == "-h") continue;
        EXPECT_NE(documentation.find("`" + name), std::string::npos) << command << " " << name << " is not documented";
        const std::string who = call.size() > 1 ? call[0] + " " + call[1] : command;
        if (name.rfind("--", 0) != 0) continue;  // the short form of an option that is checked
        EXPECT_TRUE(coverage.find("| " + who + " " + name + " |") != std::string::npos ||
                    coverage.find("| common " + name + " |") != std::string::npos)
            << who << " " << name << " has no row in tests/COVERAGE.md";
      }
      EXPECT_GE(options, command == "plugin" ? 1u : 8u);
    }
  }
}

TEST(ToolCommon, DeviceOptionsAreThoseOfEveryCommandThatCompiles) {
  const NetFolder folder(two_outputs());
  for (const Words& command : {Words{"run", "--random", "1"}, Words{"check"}, Words{"plan"}}) {
    const auto with = [&](const char* option, const char* value) {
      Words arguments = command;
      arguments.insert(arguments.end(), {folder.net(), option, value});
      return heddle(arguments);
    };
    EXPECT_EQ(with("--streams", "0").status, 2) << command[0];
    EXPECT_EQ(with("--copies", "sometimes").status, 2) << command[0];
    EXPECT_NE(with("--device", "nowhere:0").err.find("no-such-device"), std::string::npos) << command[0];
  }
}

TEST(ToolCommon, PluginLoadsAFile) {
  EXPECT_EQ(loaded_plugins(heddle_json({"plugin", "list"})), bundled_plugins);
  EXPECT_EQ(loaded_plugins(heddle_json({"plugin", "list", "--plugin", example_plugin})), "example " + bundled_plugins);
  // The option is repeatable, with one value each: the words after that are the command's own.
  const NetFolder folder(two_outputs());
  const Json checked = heddle_json({"check", "--plugin", example_plugin, "--plugin", test_plugin("awkward_provider"), folder.net()});
  EXPECT_EQ(checked["operators"], 2);
  EXPECT_EQ(codes(heddle_json({"plugin", "list", "--plugin", folder.file("nowhere.so")}, 3)), Words{"plugin-unreadable"});
}

TEST(ToolCommon, PluginDirLoadsEveryFile) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(example_plugin, folder / "example.so");
  EXPECT_EQ(loaded_plugins(heddle_json({"plugin", "list", "--plugin-dir", folder.path().string()})), "example " + bundled_plugins);
  // The variable names the default folder; an option overrides it.
  const Outcome outcome = Tool({"plugin", "list", "--json"}).set("HEDDLE_PLUGIN_DIR", folder.path().string()).run();
  EXPECT_EQ(loaded_plugins(checked_object(outcome, "plugin_list.json")), "example ");
}

TEST(ToolCommon, ThreadsAreAsAskedOrAsTheMachineAllows) {
  const NetFolder folder(two_outputs());
  const Json all = heddle_json({"run", folder.net(), "--random", "1"})["threads"];
  EXPECT_EQ(heddle_json({"run", folder.net(), "--random", "1", "--threads", "1"})["threads"], 1);
  EXPECT_EQ(heddle_json({"run", folder.net(), "--random", "1", "--threads", "2"})["threads"], std::min(2, all.get<int>()));
  const Outcome alone = Tool({"run", folder.net(), "--random", "1", "--json"}).on_one_processor().run();
  EXPECT_EQ(checked_object(alone, "run.json")["threads"], 1);
  for (const char* threads : {"0", "-1", "65", "99999999999"})
    EXPECT_EQ(codes(heddle_json({"run", folder.net(), "--random", "1", "--threads", threads}, 2)), Words{"unknown-option"}) << threads;
}

TEST(ToolCommon, QuietLeavesErrorsAndWhatIsAskedFor) {
  const NetFolder folder(two_outputs());
  EXPECT_NE(heddle({"run", folder.net(), "--random", "1"}).out, "");
  const Outcome quiet = heddle({"run", folder.net(), "--random", "1", "--quiet", "--print", "a"});
  EXPECT_EQ(quiet.out.rfind("\"a\" f32[2, 3] =", 0), 0u) << quiet.out;
  EXPECT_EQ(quiet.out.find("latency"), std::string::npos);
  EXPECT_EQ(heddle({"check", folder.net(), "--quiet"}).out, "");
  const Outcome failed = heddle({"run", folder.net(), "--quiet"});
  EXPECT_EQ(failed.status, 2);
  EXPECT_EQ(failed.err.rfind("error[missing-input]", 0), 0u) << failed.err;
}

TEST(ToolCommon, ProgressIsForTerminalsOnly) {
  HEDDLE_NEEDS_TERMINAL();
  const NetFolder folder(two_outputs());
  const Words run = {"run", folder.net(), "--random", "1"};
  EXPECT_EQ(heddle(run).err, "");
  EXPECT_NE(Tool(run).on_terminal().run().err.find("compiling"), std::string::npos);
  for (const char* option : {"--no-progress", "--quiet"}) {
    Words silent = run;
    silent.push_back(option);
    EXPECT_EQ(Tool(silent).on_terminal().run().err, "") << option;
  }
}

// Long work says how far it has come, how fast it goes, and how long it will take.
TEST(ToolCommon, ProgressHasCountRateAndTimeLeft) {
  HEDDLE_NEEDS_TERMINAL();
  const NetFolder folder(net_text("product", R"("x")", R"("y")", input("x", "128, 128"), node("MatMul", R"("x", "x")", "y")));
  const std::regex of_runs("run [0-9]+ of [0-9]+, [0-9]+/s, [0-9]+ s left");
  const Words run = {"run", folder.net(), "--random", "1", "--threads", "1", "--repeat", "40000"};
  for (const Words& words : {run, Words{"bench", folder.net(), "--repeat", "40000"}}) {
    const Outcome outcome = Tool(words).on_terminal().run();
    EXPECT_TRUE(std::regex_search(outcome.err, of_runs)) << words[0] << outcome.err.substr(0, 500);
  }
  const Outcome check = Tool({"plugin", "check", example_plugin}).on_terminal().run();
  EXPECT_NE(check.err.find("operator 0 of "), std::string::npos) << check.err.substr(0, 500);
  EXPECT_EQ(Tool(run).run().err, "") << "nothing where stderr is no terminal";
}

TEST(ToolCommon, ColoursAreForTerminalsWithoutNoColor) {
  HEDDLE_NEEDS_TERMINAL();
  const Words wrong = {"check", "/nowhere/net.json", "--no-progress"};
  EXPECT_EQ(heddle(wrong).err.find('\033'), std::string::npos);
  EXPECT_EQ(Tool(wrong).on_terminal().run().err.rfind("\033[1;31merror[file-not-found]\033[0m", 0), 0u);
  EXPECT_EQ(Tool(wrong).on_terminal().set("NO_COLOR", "1").run().err.rfind("error[file-not-found]", 0), 0u);
}

TEST(ToolCommon, WerrorMakesWarningsFail) {
  // A value that no operator reads is a warning.
  const NetFolder folder(
      net_text("unused", R"("x")", R"("y")", input("x", "2"), node("Relu", R"("x")", "y") + ", " + node("Exp", R"("x")", "z")));
  const Json warned = heddle_json({"check", folder.net()});
  ASSERT_EQ(codes(warned), Words{"unused-operator"});
  EXPECT_EQ(warned["diagnostics"][0]["severity"], "warning");
  EXPECT_EQ(warned["diagnostics"][0]["operator"], "z");
  EXPECT_EQ(heddle_json({"check", folder.net(), "--werror"}, 1)["status"], "failed");
}

TEST(ToolCommon, JsonIsOneObjectOnFailureToo) {
  // checked_object() checks each against its schema: all keys are there, null where unknown.
  EXPECT_TRUE(heddle_json({"run", "/nowhere/net.heddle"}, 3)["outputs"].is_null());
  EXPECT_TRUE(heddle_json({"plan", "--buffers", "/nowhere/b.csv"}, 3)["peak_bytes"].is_null());
  EXPECT_TRUE(heddle_json({"verify-onnx", "/nowhere"}, 2)["folders"].is_null());
  EXPECT_TRUE(heddle_json({"plugin", "check", "/nowhere/p.so"}, 3)["operators"].is_null());
  for (const char* command : {"check", "plan", "inspect", "bench"}) heddle_json({command, "/nowhere/net.heddle"}, 3);
  heddle_json({"import", "/nowhere/m.onnx", "-o", "/tmp/heddle_never.heddle"}, 3);
  heddle_json({"convert", "/nowhere/a.heddle", "/tmp/heddle_never.json"}, 3);
  heddle_json({"model", "no_such_recipe", "-o", "/tmp/heddle_never.heddle"}, 2);
  heddle_json({"plugin", "run", "NoSuchOperator"}, 3);
  heddle_json({"plugin", "new", "no name"}, 2);
}

TEST(ToolCommon, ExitStatusByKind) {
  const NetFolder folder(two_outputs());
  EXPECT_EQ(heddle({}).status, 2);
  EXPECT_EQ(heddle({"no-such-command"}).status, 2);
  EXPECT_EQ(heddle({"run"}).status, 2);
  EXPECT_EQ(heddle({"run", folder.net(), "--no-such-option"}).status, 2);
  EXPECT_EQ(heddle({"run", folder.net(), "--repeat", "many"}).status, 2);
  EXPECT_EQ(heddle({"run", folder.net()}).status, 2);
  EXPECT_EQ(heddle({"run", folder.file("nowhere.json"), "--random", "1"}).status, 3);
  EXPECT_EQ(heddle({"run", folder.path().string(), "--random", "1"}).status, 3);
  EXPECT_EQ(heddle({"run", folder.net(), "--random", "1", "--memory-limit", "1"}).status, 4);
  EXPECT_EQ(heddle({"run", folder.net(), "--random", "1", "--device", "nonesuch"}).status, 1);
  EXPECT_EQ(heddle({"run", folder.net(), "--random", "1"}).status, 0);
  // stdout is closed early: no signal ends the tool.
  EXPECT_LT(heddle({"plan", folder.net()}).status, 1000);
}

TEST(ToolCommon, OutOfMemoryIsSaidLikeAnythingElse) {
  const NetFolder folder(symbolic());
  if (heddle_json({"run", folder.net(), "--random", "1", "--symbol", "N=1", "--repeat", "2"})["steady_state_allocations"]["heap"].is_null())
    GTEST_SKIP() << "sanitizers need more address space than can be limited";
  const Outcome outcome =
      Tool({"run", folder.net(), "--random", "1", "--shape", "x=700000000x3", "--json"}).within_memory(rlim_t{4} << 30).run();
  EXPECT_EQ(outcome.status, 4) << outcome.err;
  EXPECT_EQ(codes(checked_object(outcome, "run.json")), Words{"out-of-memory"});
}

TEST(ToolCommon, NamesOfFilesAreEscaped) {
  const std::string name = R"(\u001b[31m\n\"x\")";
  const NetFolder folder(
      net_text("n" + name, "\"" + name + "\"", R"("y")", input(name, "2"), node("NoSuch" + name, "\"" + name + "\"", "y")));
  for (const char* command : {"check", "run", "plan", "inspect"}) {
    const Outcome outcome = heddle({command, folder.net()});
    EXPECT_EQ((outcome.out + outcome.err).find('\033'), std::string::npos) << command << outcome.out << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

// A pipe without a writer, a device without an end, a folder: every option that reads a file refuses them, and none waits.
TEST(ToolCommon, WhatIsNoRegularFileIsRefusedByEveryOption) {
  const NetFolder folder(two_outputs());
  const Words command_lines[] = {{"run", "FILE.heddle", "--random", "1"},
                                 {"run", "NET", "--input", "x=FILE.npy"},
                                 {"run", "NET", "--input", "x=FILE.pb"},
                                 {"run", "NET", "--input", "x=FILE.safetensors"},
                                 {"run", "PICTURES", "--input", "x=FILE.jpg"},
                                 {"run", "NET", "--random", "1", "--param", "w=FILE.npy"},
                                 {"run", "NET", "--random", "1", "--plugin", "FILE.so"},
                                 {"check", "FILE.json"},
                                 {"check", "NET", "--input", "x=FILE.npy"},
                                 {"plan", "FILE.heddle"},
                                 {"plan", "NET", "--diff", "FILE.heddle"},
                                 {"plan", "--buffers", "FILE.csv"},
                                 {"import", "FILE.onnx", "-o", "OUT.heddle"},
                                 {"inspect", "FILE.heddle"},
                                 {"inspect", "FILE.safetensors"},
                                 {"inspect", "FILE.so"},
                                 {"convert", "FILE.heddle", "OUT.json"},
                                 {"bench", "NET", "--compare", "FILE.json"},
                                 {"plugin", "check", "FILE.so"},
                                 {"plugin", "run", "Relu", "--input", "FILE.npy"}};
  const NetFolder variable(
      net_text("v", R"("x")", R"("y")", input("x", "2") + R"(, {"name": "w", "kind": "variable", "variable": "w", "version": 0})",
               node("Add", R"("x", "w")", "y"), R"(, "variables": [{"name": "w", "dtype": "f32", "dims": [2], "data": [1, 2]}])"));
  const NetFolder pictures(net_text("p", R"("x")", R"("y")", input("x", "1, 3, 8, 8"), node("Relu", R"("x")", "y")));
  for (const Words& line : command_lines) {
    for (const char* kind : {"pipe", "device", "folder"}) {
      Words arguments = line;
      for (std::string& word : arguments) {
        if (word == "NET") word = std::find(line.begin(), line.end(), "--param") == line.end() ? folder.net() : variable.net();
        if (word == "PICTURES") word = pictures.net();
        if (word.rfind("OUT", 0) == 0) word = folder.file(word);
        const size_t at = word.find("FILE");
        if (at == std::string::npos) continue;
        const std::string file = folder.file(kind + word.substr(at + 4));
        std::filesystem::remove(file);
        if (kind == std::string("pipe")) {
          ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
        }
        if (kind == std::string("device")) std::filesystem::create_symlink("/dev/zero", file);
        if (kind == std::string("folder")) std::filesystem::create_directory(file);
        word = word.substr(0, at) + file;
      }
      const Outcome outcome = heddle(arguments);
      EXPECT_EQ(outcome.status, 3) << kind << " " << ::testing::PrintToString(arguments) << outcome.err;
      const bool named = outcome.err.find("-unreadable]") != std::string::npos ||
                         outcome.err.find("[weights-outside]") != std::string::npos;  // the device, through a link
      EXPECT_TRUE(named) << kind << " " << outcome.err;
    }
  }
}

TEST(ToolCommon, AnArrayLargerThanMemoryHasAddressesIsALimit) {
  const NetFolder folder(net_text("n", R"("x")", R"("y")", input("x", "2, 2"), node("Relu", R"("x")", "y")));
  const std::string most = std::to_string(INT64_MAX);
  write_text(folder / "x.npy", npy(most + ", " + most, {}));
  const Json object = heddle_json({"run", folder.net(), "--input", "x=" + folder.file("x.npy")}, 4);
  EXPECT_EQ(codes(object), Words{"limit-exceeded"}) << object;
}

TEST(ToolCommon, NameAndValueAreSplitAtTheLastEqualsSign) {
  const NetFolder folder(net_text("odd", R"("a=b")", R"("y")", input("a=b", R"("N=M")"), node("Relu", R"("a=b")", "y")));
  write_text(folder / "x.npy", npy("2,", {-1, 2}));
  EXPECT_EQ(heddle_json({"run", folder.net(), "--input", "a=b=" + folder.file("x.npy")})["outputs"]["y"]["shape"], Json({2}));
  EXPECT_EQ(heddle_json({"run", folder.net(), "--random", "1", "--symbol", "N=M=5"})["outputs"]["y"]["shape"], Json({5}));
  EXPECT_EQ(heddle_json({"run", folder.net(), "--random", "1", "--shape", "a=b=7"})["outputs"]["y"]["shape"], Json({7}));
  EXPECT_EQ(codes(heddle_json({"run", folder.net(), "--input", "x"}, 2)), Words{"invalid-argument"});
}

TEST(ToolCommon, SizesTakeUnits) {
  const NetFolder folder(two_outputs());
  for (const char* size : {"512MiB", "2GB", "100000"})
    EXPECT_EQ(heddle({"run", folder.net(), "--random", "1", "--memory-limit", size}).status, 0) << size;
  EXPECT_EQ(codes(heddle_json({"run", folder.net(), "--random", "1", "--memory-limit", "much"}, 2)), Words{"invalid-argument"});
}

TEST(ToolCommon, FilesAreReplacedAsAWhole) {
  const NetFolder folder(two_outputs());
  write_text(folder / "a.npy", "before");
  std::filesystem::create_hard_link(folder / "a.npy", folder / "link");
  ASSERT_EQ(heddle({"run", folder.net(), "--random", "1", "--output", "a=" + folder.file("a.npy")}).status, 0);
  // Another file took the name; a link to the old one still has the old content.
  EXPECT_EQ(read_text(folder / "link"), "before");
  EXPECT_EQ(npy_values(folder / "a.npy").size(), 6u);
  EXPECT_EQ(codes(heddle_json({"run", folder.net(), "--random", "1", "--output", "a=/nowhere/a.npy"}, 3)), Words{"file-unwritable"});
}

TEST(ToolCommon, DevicesListsTheProcessor) {
  const Json object = heddle_json({"devices"});
  std::set<std::string> names;
  for (const Json& device : object["devices"]) names.insert(device["name"].get<std::string>());
  EXPECT_TRUE(names.contains("cpu:0"));
  EXPECT_EQ(heddle({"devices"}).out.rfind("cpu:0 ", 0), 0u);
}

// No other test would find a command that can not be called.
TEST(ToolCommon, EveryCommandIsInTheTable) {
  const std::filesystem::path folder = HEDDLE_SOURCE_DIR "/tools/heddle/commands";
  std::set<std::string> defined, listed;
  const std::regex definition(R"(const Command (\w+)_command =)"), line(R"(  COMMAND\((\w+)\))");
  std::smatch match;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".cc") continue;
    const std::string text = read_text(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), definition), end; it != end; ++it) defined.insert((*it)[1]);
  }
  const std::string table = read_text(folder / "commands.h");
  for (std::sregex_iterator it(table.begin(), table.end(), line), end; it != end; ++it) listed.insert((*it)[1]);
  EXPECT_GE(defined.size(), 11u);
  EXPECT_EQ(defined, listed) << "commands/commands.h has a line for each command";
  const std::string help = Tool({"--help"}).run().out;
  for (std::string name : listed) {
    std::replace(name.begin(), name.end(), '_', '-');
    EXPECT_NE(help.find("\n  " + name + " "), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace heddle::tool_tests
