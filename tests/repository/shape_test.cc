// The shape of files and functions: no folder has more than thirty sources, and no function more than sixty lines, unless it is a table.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sources.h"

namespace heddle::testing_repository {
namespace {

size_t indentation(const std::string& line) {
  const size_t first = line.find_first_not_of(' ');
  return first == std::string::npos ? 0 : first;
}

// That of the first line of the declaration whose body opens in line `i`.
size_t declaration_indentation(const std::vector<std::string>& lines, size_t i) {
  const auto goes_on = [](const std::string& line) { return !line.empty() && (line.back() == '(' || line.back() == ','); };
  while (i > 0 && (lines[i][indentation(lines[i])] == ':' || goes_on(lines[i - 1]))) --i;
  return indentation(lines[i]);
}

// By "file: first line of the body", how many lines functions have from their brace to the other.
std::map<std::string, size_t> long_functions(size_t limit) {
  static const std::regex opens(R"(^.*\)( const)?( noexcept)?( override| final)?( try| ->[^;]*)?( \{)$|^ *: .*\) \{$|^.*\}\) \{$)");
  static const std::regex other(
      R"(^ *(namespace|class|struct|enum|union|extern|if|for|while|switch|do|else|try|catch|\}|return|const auto|auto)\b.*|^ *(//|\[|\}).*)");
  std::map<std::string, size_t> found;
  for (const std::string& name : sources_of({"runtime", "plugins", "tools"})) {
    const std::vector<std::string> lines = lines_of(name);
    for (size_t i = 0; i < lines.size(); ++i) {
      if (!std::regex_match(lines[i], opens) || std::regex_match(lines[i], other)) continue;
      const size_t indent = declaration_indentation(lines, i);
      if (indent > 4) continue;
      size_t end = i + 1;
      const std::string close = std::string(indent, ' ') + "}";
      while (end < lines.size() && !lines[end].starts_with(close)) ++end;
      if (end - i + 1 > limit) found[name + ": " + lines[i].substr(indentation(lines[i]))] = end - i + 1;
    }
  }
  return found;
}

TEST(Shape, FunctionsHaveAtMostSixtyLines) {
  // Operators one after the other, each with its ports, attributes and examples: tables, though they are functions.
  const std::set<std::string> tables = {"void add_activation(Builder& plugin) {",
                                        "void add_pooling(Builder& plugin) {",
                                        "void add_normalization_channel(Builder& plugin) {",
                                        "void add_reshape(Builder& plugin) {",
                                        "void add_optimizer_rows(Builder& plugin) {",
                                        "void add_recurrent_gradient(Builder& plugin) {",
                                        "void add_normalization(Builder& plugin) {",
                                        "void add_recurrent(Builder& plugin) {"};
  std::set<std::string> seen;
  EXPECT_GE(long_functions(30).size(), 50u) << "this test no longer sees the functions";
  for (const auto& [where, lines] : long_functions(60)) {
    const std::string head = where.substr(where.find(": ") + 2);
    if (tables.contains(head))
      seen.insert(head);
    else
      ADD_FAILURE() << where << " ... has " << lines << " lines: part it where it does a second thing";
  }
  EXPECT_EQ(seen, tables) << "a table that is listed is short now";
}

TEST(Shape, AFolderHasAtMostThirtySources) {
  std::map<std::string, size_t> sources;
  for (const std::string& name : sources_of({"runtime", "plugins", "tools", "tests", "examples"}))
    ++sources[std::filesystem::path(name).parent_path().string()];
  EXPECT_GE(sources.size(), 40u) << "this test no longer sees the folders";
  for (const auto& [folder, count] : sources) EXPECT_LE(count, 30u) << folder << ": part it by what its files are about";
}

}  // namespace
}  // namespace heddle::testing_repository
