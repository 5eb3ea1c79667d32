// From main to a kernel: the functions and files that a call goes through, as a kernel finds them on its stack in the built `heddle`.
//
// tests/plugins/backtrace.cc records the addresses that it was called from, addr2line gives their lines, also of inlined calls, and the
// sources give the functions that contain the lines. Only our functions count: the standard library's in between are left out, and so is
// guard, which runs the lambda it is given. A lambda is part of the function that contains it.
#include <cctype>
#include <regex>
#include <set>

#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

const std::filesystem::path source = HEDDLE_SOURCE_DIR;
// Functions from main to the call of the author's function, which is not counted.
constexpr size_t max_functions = 8;
constexpr size_t max_files = 6;

struct Call {
  std::string function, file;
  friend bool operator==(const Call&, const Call&) = default;
};

// Returns `path` relative to the repository; empty if it is outside. An object from a compiler's cache may name another checkout.
std::string relative_to_source(const std::filesystem::path& path) {
  const std::filesystem::path normal = path.lexically_normal();
  for (auto first = normal.begin(); first != normal.end(); ++first) {
    if (*first != "runtime" && *first != "plugins" && *first != "tools" && *first != "tests") continue;
    std::filesystem::path beneath;
    for (auto part = first; part != normal.end(); ++part) beneath /= *part;
    if (std::filesystem::exists(source / beneath)) return beneath.string();
  }
  return {};
}

// Returns the function that contains `line` (from 1) of a file. Definitions begin in the first column, those within a class in the third.
std::string function_at(const std::string& file, size_t line) {
  std::vector<std::string> lines(1);
  std::ifstream in(source / file);
  for (std::string text; lines.size() <= line && std::getline(in, text);) lines.push_back(text);
  const std::regex name(R"(([\w:~]+)\()"), type(R"(^(?:struct|class) (\w+))");
  std::string method;
  std::smatch match;
  for (size_t i = lines.size() - 1; i > 0; --i) {
    const std::string& text = lines[i];
    const bool outermost = !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0;
    const bool member = text.size() > 2 && text.starts_with("  ") && std::isalpha(static_cast<unsigned char>(text[2])) != 0;
    if (outermost && std::regex_search(text, match, type)) return match[1].str() + "::" + method;
    if (outermost && std::regex_search(text, match, name)) return match[1];
    if (member && method.empty() && text.ends_with("{") && std::regex_search(text, match, name)) method = match[1];
  }
  return file + ":" + std::to_string(line);
}

std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  char buffer[4096];
  while (const size_t n = std::fread(buffer, 1, sizeof(buffer), pipe)) text.append(buffer, n);
  ::pclose(pipe);
  return text;
}

// Returns the calls on the way from main to the function that wrote `trace`, outermost first.
std::vector<Call> calls_in(const std::string& trace) {
  std::vector<Call> calls;
  std::istringstream frames(trace);
  for (std::string binary, address; frames >> binary >> address;) {
    std::ostringstream command;
    command << "addr2line -i -e '" << binary << "' 0x" << std::hex << std::stoull(address);
    std::istringstream places(output_of(command.str()));
    for (std::string place; std::getline(places, place);) {
      const size_t colon = place.rfind(':');
      const std::string file = relative_to_source(place.substr(0, colon));
      if (file.empty() || file == "runtime/include/heddle/op/guard.h") continue;
      const Call call = {function_at(file, std::strtoul(place.c_str() + colon + 1, nullptr, 10)), file};
      if (calls.empty() || calls.front() != call) calls.insert(calls.begin(), call);
    }
  }
  return calls;
}

// Returns "Function  file" of the lines of the block under "From `main` to a kernel" in docs/architecture.md.
std::vector<Call> documented_calls() {
  const std::string page = read_text(HEDDLE_SOURCE_DIR "/docs/architecture.md");
  const size_t begin = page.find("```\n", page.find("From `main` to a kernel")) + 4;
  std::istringstream lines(page.substr(begin, page.find("```", begin) - begin));
  std::vector<Call> calls;
  for (std::string line; std::getline(lines, line);) {
    Call call;
    std::istringstream(line) >> call.function >> call.file;
    calls.push_back(call);
  }
  return calls;
}

std::string text_of(const std::vector<Call>& calls) {
  std::string text;
  for (const Call& call : calls)
    text += call.function + std::string(call.function.size() < 20 ? 20 - call.function.size() : 1, ' ') + call.file + "\n";
  return text;
}

TEST(ToolCallDepth, FromMainToAKernel) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers compile other frames: the preset dev counts";
#endif
  if (output_of("command -v addr2line").empty()) GTEST_SKIP() << "there is no addr2line here: install binutils";
  const NetFolder folder(net_text("traced", R"("x")", R"("y")", input("x", "4"),
                                  R"({"name": "y", "type": "Backtrace", "domain": "backtrace", "inputs": ["x"], "outputs": ["y"]})"));
  const std::string trace = folder.file("trace");
  const Outcome outcome = Tool({"run", folder.net(), "--random", "1", "--threads", "1", "--plugin", test_plugin("backtrace")})
                              .set("HEDDLE_BACKTRACE_FILE", trace)
                              .run();
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::vector<Call> calls = calls_in(read_text(trace));
  if (calls.empty()) GTEST_SKIP() << "this build has no line tables: the preset dev has";
  ASSERT_GE(calls.size(), 3u) << text_of(calls);
  EXPECT_EQ(calls.front().function, "main");
  EXPECT_EQ(calls[calls.size() - 2].function, "ClassKernel::run");
  EXPECT_EQ(calls.back().function, "Backtrace::run");
  EXPECT_LE(calls.size() - 1, max_functions) << text_of(calls);
  std::set<std::string> files;
  for (size_t i = 0; i + 1 < calls.size(); ++i) files.insert(calls[i].file);
  EXPECT_LE(files.size(), max_files) << text_of(calls);
  EXPECT_EQ(text_of(documented_calls()), text_of(calls)) << "docs/architecture.md shows another way";
}

}  // namespace
}  // namespace heddle::tool_tests
