// The library's hints name options as a program writes them; the tool's hints name its flags.
#include "options/option_flags.h"

#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

using tool::option_flags;
using tool::with_flags;

TEST(OptionFlags, EveryNameOfAnOptionHasAFlagThatSomeCommandTakes) {
  std::string help;
  for (const char* command : {"run", "check", "plan", "train"}) help += heddle({command, "--help"}).out;
  for (const OptionName* option : option_names::all) {
    const std::string name = option->text("entry");
    const Diagnostic shown = with_flags(Status(Code::internal, "wrong", hint_with("mend ", name, " now")).diagnostic());
    EXPECT_EQ(shown.hint.find("::"), std::string::npos) << shown.hint;
    ASSERT_EQ(shown.hint.find("mend --"), 0u) << name << ": " << shown.hint;
    EXPECT_NE(shown.hint.find(" now"), std::string::npos) << shown.hint;
    const std::string flag = shown.hint.substr(5, shown.hint.find_first_of(" =", 5) - 5);
    EXPECT_NE(help.find("  " + flag + " "), std::string::npos) << flag;
  }
  EXPECT_EQ(option_flags().size(), std::size(option_names::all));
}

TEST(OptionFlags, AnEntryOfManyKeepsItsName) {
  const auto hint = [](const OptionName& option, const std::string& entry) {
    return with_flags(Status(Code::internal, "wrong", hint_with("give ", option.text(entry), ", or less")).diagnostic()).hint;
  };
  EXPECT_EQ(hint(option_names::symbols, "N"), "give --symbol N=N, or less");
  EXPECT_EQ(hint(option_names::input_shape, "x"), "give --shape x=..., or less");
  EXPECT_EQ(hint(option_names::input_data, "a\"]b"), "give --input a\"]b=FILE, or less");
  EXPECT_EQ(hint(option_names::limits, "nodes"), "give --limit nodes=VALUE, or less");
  EXPECT_EQ(hint(option_names::max_bad_samples, ""), "give --skip-bad N, or less");
  EXPECT_EQ(hint(option_names::automatic_copies, ""), "give --copies auto, or less");
}

TEST(OptionFlags, WhatIsAttachedHasItsOwn) {
  Status status(Code::internal, "wrong", hint_with("raise ", option_names::memory_limit));
  status.diagnostic().attached.push_back(Status(Code::internal, "too", hint_with("check ", option_names::plugin_folders)).diagnostic());
  status.diagnostic().attached.push_back(Status(Code::internal, "none", "raise SessionOptions::memory_limit").diagnostic());
  const Diagnostic shown = with_flags(status.diagnostic());
  EXPECT_EQ(shown.hint, "raise --memory-limit");
  EXPECT_EQ(shown.attached[0].hint, "check --plugin-dir");
  EXPECT_EQ(shown.attached[1].hint, "raise SessionOptions::memory_limit");  // the hint names no option
}

// The hints appear on stderr and in the object.
TEST(OptionFlags, AreWhatTheToolSays) {
  const NetFolder two(net_text("two", R"("x")", R"("y")", input("x", "\"N\""), node("Relu", R"("x")", "y")));
  const auto says = [&](const Words& words, const std::string& hint) {
    const Outcome plain = heddle(words);
    EXPECT_NE(plain.err.find("; " + hint), std::string::npos) << plain.err;
    Words in_json = words;
    in_json.emplace_back("--json");
    const Outcome object = heddle(in_json);
    const Json diagnostics = Json::parse(object.out)["diagnostics"];
    EXPECT_EQ(diagnostics[0]["hint"].get<std::string>().find(hint), 0u) << diagnostics;
  };
  says({"run", two.net(), "--random", "1", "--shape", "x=2", "--memory-limit", "1"}, "raise --memory-limit to ");
  says({"check", two.net()}, "bind it with --symbol N=N or give the input's shape");
  says({"check", two.net(), "--symbol", "N=2", "--limit", "tensor_bytes=1B"},
       "if you trust it, raise the limit with --limit tensor_bytes=VALUE");
  says({"check", two.net(), "--symbol", "N=2", "--device", "none:0"}, "load its plugin with --plugin, or choose cpu");
  says({"check", two.net(), "--plugin-dir", two.file("nowhere")}, "check --plugin-dir");
  says({"check", two.net(), "--plugin", two.file("nowhere.so")}, "check the path given with --plugin");
}

}  // namespace
}  // namespace heddle::tool_tests
