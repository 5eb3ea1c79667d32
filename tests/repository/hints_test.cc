// The library addresses programs: none of its texts names a flag of the tool. Hints name options (base/text/option_names.h), and the tool
// has a table of its flags for them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

namespace {

namespace fs = std::filesystem;

// Returns the first text between quotes of that line that has a flag in it; empty: none.
std::string text_with_flag(const std::string& line) {
  static const std::regex literal(R"re("(?:[^"\\]|\\.)*")re"), flag(R"re((^"|[\s(\[{=,;:])--[a-z])re");
  for (std::sregex_iterator it(line.begin(), line.end(), literal), end; it != end; ++it)
    if (const std::string text = it->str(); std::regex_search(text, flag)) return text;
  return {};
}

TEST(Hints, AFlagInATextIsSeen) {
  EXPECT_EQ(text_with_flag(R"(  return {code, "a \"b\"", "raise --memory-limit to " + text};)"), R"("raise --memory-limit to ")");
  EXPECT_EQ(text_with_flag(R"(say("--plugin");)"), R"("--plugin")");
  EXPECT_EQ(text_with_flag(R"(say("x") + --count + "y"; // --plugin)"), "");
}

TEST(Hints, NoTextOfTheLibraryNamesAFlagOfTheTool) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(HEDDLE_SOURCE_DIR) / "runtime")) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".cc" && extension != ".h") continue;
    ++files;
    std::ifstream in(entry.path());
    int number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      EXPECT_EQ(text_with_flag(line), "") << entry.path() << ":" << number << ": name the option, as base/text/option_names.h has it";
    }
  }
  EXPECT_GT(files, 100);
}

}  // namespace
