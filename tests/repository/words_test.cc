// Words of comments that slow a stranger down may only become fewer: tests/repository/words.txt says how many comment lines of each folder
// have "behind" (which is to be said of places in space alone), and how many begin with a fragment that has no subject.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "sources.h"

namespace heddle::testing_repository {
namespace {

const std::vector<std::string> rooms = {"examples", "plugins", "runtime", "tests", "tools"};
const std::set<std::string> extensions = {".h", ".cc", ".cu", ".cuh"};

struct Counts {
  size_t behind = 0, fragments = 0, comments = 0;
};

// What a line says to its reader: the text of its comment; empty: it has none. `whole`: it has nothing else.
std::string comment_of(const std::string& line, bool* whole) {
  static const std::regex alone(R"(^\s*(?://|/\*|\*)\s?(.*)$)"), beside(R"(^.*[^:"]//\s?(.*)$)");
  std::smatch match;
  *whole = std::regex_match(line, match, alone);
  if (*whole || std::regex_match(line, match, beside)) return match[1];
  return "";
}

std::map<std::string, Counts> counted() {
  static const std::regex behind(R"(\b[Bb]ehind\b)"), fragment(R"(^(Of|Those|What|That|As|The same)\b.*)");
  std::map<std::string, Counts> folders;
  for (const std::string& name : sources_of(rooms, extensions)) {
    const std::string folder = name.starts_with("runtime/include/") ? "runtime/include" : name.substr(0, name.find('/'));
    Counts& counts = folders[folder];
    for (const std::string& line : lines_of(name)) {
      bool whole = false;
      const std::string comment = comment_of(line, &whole);
      counts.comments += whole ? 1 : 0;
      counts.behind += std::regex_search(comment, behind) ? 1 : 0;
      counts.fragments += whole && std::regex_match(comment, fragment) ? 1 : 0;
    }
  }
  return folders;
}

TEST(Words, ThatSlowAStrangerDownOnlyBecomeFewer) {
  std::map<std::string, Counts> allowed;
  std::ifstream file(checkout / "tests/repository/words.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string folder;
    if (line.starts_with("#") || !(words >> folder)) continue;
    words >> allowed[folder].behind >> allowed[folder].fragments;
  }
  Counts all;
  for (const auto& [folder, counts] : counted()) {
    std::printf("%-16s %5zu comment lines, %4zu with \"behind\", %4zu fragments\n", folder.c_str(), counts.comments, counts.behind,
                counts.fragments);
    all.behind += counts.behind, all.fragments += counts.fragments, all.comments += counts.comments;
    for (const auto& [what, now, before] : {std::tuple("\"behind\"", counts.behind, allowed[folder].behind),
                                            std::tuple("a fragment", counts.fragments, allowed[folder].fragments)}) {
      EXPECT_LE(now, before) << folder << ": " << now << " comment lines have " << what
                             << ": write a sentence with a subject, and after, past the end of, fused into or outside";
      EXPECT_GE(now, before) << folder << ": fewer have " << what << " now: write " << now << " into tests/repository/words.txt";
    }
  }
  std::printf("%-16s %5zu comment lines, %4zu with \"behind\", %4zu fragments (%.1f%%)\n", "all", all.comments, all.behind, all.fragments,
              100.0 * static_cast<double>(all.fragments) / static_cast<double>(all.comments));
  EXPECT_GE(all.comments, 5000u) << "this test no longer sees the comments";
}

// Bounds are called max_ and min_.
TEST(Words, BoundsAreCalledMaxAndMin) {
  const std::regex bound(R"(\b(most|least)_[a-z]\w*)");
  std::smatch found;
  for (const std::string& name : sources_of(rooms, extensions)) {
    if (name.ends_with("words_test.cc")) continue;
    for (const std::string& line : lines_of(name)) EXPECT_FALSE(std::regex_search(line, found, bound)) << name << ": " << found[0];
  }
}

}  // namespace
}  // namespace heddle::testing_repository
