// Words of comments that slow a stranger down may only become fewer: tests/repository/words.txt says how many comment lines of each folder
// have "behind" (which is to be said of places in space alone), and how many begin with a fragment that has no subject.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
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

// Returns the text of a line's comment; empty: it has none. `whole`: the line has nothing else.
std::string_view comment_of(std::string_view line, bool* whole) {
  const size_t first = std::min(line.find_first_not_of(" \t"), line.size());
  for (const std::string_view mark : {"//", "/*", "*"})
    if (*whole = line.substr(first).starts_with(mark); *whole) {
      const std::string_view text = line.substr(first + mark.size());
      return text.starts_with(" ") ? text.substr(1) : text;
    }
  const size_t beside = line.rfind("//");
  const bool is_comment = beside != std::string_view::npos && beside > 0 && line[beside - 1] != ':' && line[beside - 1] != '"';
  return is_comment ? line.substr(beside + 2) : std::string_view();
}

bool is_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool has_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    if ((at == 0 || !is_letter(text[at - 1])) && (at + word.size() == text.size() || !is_letter(text[at + word.size()]))) return true;
  return false;
}

bool is_fragment(std::string_view text) {
  for (const std::string_view begin : {"Of", "Those", "What", "That", "As", "The same"})
    if (text.starts_with(begin) && (text.size() == begin.size() || !is_letter(text[begin.size()]))) return true;
  return false;
}

std::map<std::string, Counts> counted() {
  std::map<std::string, Counts> folders;
  for (const std::string& name : sources_of(rooms, extensions)) {
    const std::string folder = name.starts_with("runtime/include/") ? "runtime/include" : name.substr(0, name.find('/'));
    Counts& counts = folders[folder];
    for (const std::string& line : lines_of(name)) {
      bool whole = false;
      const std::string_view comment = comment_of(line, &whole);
      counts.comments += whole ? 1 : 0;
      counts.behind += has_word(comment, "behind") || has_word(comment, "Behind") ? 1 : 0;
      counts.fragments += whole && is_fragment(comment) ? 1 : 0;
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
  for (const std::string& name : sources_of(rooms, extensions)) {
    if (name.ends_with("words_test.cc")) continue;
    for (const std::string& line : lines_of(name))
      for (const std::string word : {"most_", "least_"})
        for (size_t at = line.find(word); at != std::string::npos; at = line.find(word, at + 1))
          EXPECT_TRUE(at > 0 && is_letter(line[at - 1])) << name << ": " << line;
  }
}

}  // namespace
}  // namespace heddle::testing_repository
