// The table of public calls has all that the installed headers declare for programs, and nothing else.
#include "public_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

namespace heddle::testing_memory {
namespace {

std::string without_comments(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string text, line;
  while (std::getline(file, line)) {
    const size_t comment = line.find("//");
    if (line.rfind('#', 0) != 0) text += line.substr(0, comment) + "\n";
  }
  return text;
}

// Returns the public part of a class, up to its private part or its end.
std::string public_part(const std::string& text, size_t begin) {
  const size_t end = std::min(text.find("\n};", begin), text.find("private:", begin));
  std::string part = std::regex_replace(text.substr(begin, end - begin), std::regex(R"( = \{\})"), "");
  // Functions with a body are inline.
  const std::regex body(R"(\{[^{}]*\})");
  while (std::regex_search(part, body)) part = std::regex_replace(part, body, "");
  return part;
}

// Returns the functions that a program calls and the library defines: members of exported classes, and exported functions. Inline functions
// are part of the program.
std::set<std::string> declared() {
  const std::regex exported(R"(class HEDDLE_API (\w+)[^;{]*\{)"),
      member(R"((~?\w+|operator=)\(([^;()]*(?:\([^;()]*\)[^;()]*)*)\)\s*(?:const)?\s*(?:noexcept)?\s*;)"),
      function(R"(HEDDLE_API [\w:<>*&\s]*?(\w+)\()"), record(R"((?:class|struct) (\w+)[^;{()]*\{)");
  std::set<std::string> names;
  for (const char* header : {"session.h", "training.h", "checkpoint.h", "dataset.h", "trainer.h", "observe.h", "plan_info.h", "status.h",
                             "tensor.h", "limits.h"}) {
    const std::string text = without_comments(std::filesystem::path(HEDDLE_SOURCE_DIR) / "runtime/include/heddle" / header);
    for (std::sregex_iterator it(text.begin(), text.end(), exported), end; it != end; ++it) {
      const std::string part = public_part(text, static_cast<size_t>(it->position() + it->length()));
      for (std::sregex_iterator m(part.begin(), part.end(), member); m != end; ++m) {
        const std::string name = (*m)[1];
        if (name[0] == '~') continue;  // every call that makes one also destroys it
        names.insert((*it)[1].str() + "::" + name);
      }
    }
    for (std::sregex_iterator it(text.begin(), text.end(), function), end; it != end; ++it) {
      const auto at = static_cast<size_t>(it->position());
      if (text.compare(at - std::min<size_t>(at, 6), 6, "class ") == 0) continue;
      // The name is qualified by the record that it is a member of: the last one that begins before it and has not ended.
      std::string of;
      for (std::sregex_iterator r(text.begin(), text.end(), record); r != end && static_cast<size_t>(r->position()) < at; ++r)
        if (text.find("\n};", static_cast<size_t>(r->position())) > at) of = (*r)[1].str() + "::";
      const std::string name = (*it)[1];
      if (name != "no_value" && name != "no_diagnostic") names.insert(of + name);  // called only to end a program that has made a mistake
    }
  }
  return names;
}

TEST(PublicCalls, TheTableHasWhatTheHeadersDeclare) {
  const std::set<std::string> headers = declared();
  std::set<std::string> table;
  for (const PublicCall& call : public_calls()) table.insert(call.name);
  EXPECT_GT(headers.size(), 50u) << "the headers were not understood";
  std::ostringstream missing, unknown;
  for (const std::string& name : headers)
    if (table.count(name) == 0) missing << " " << name;
  for (const std::string& name : table)
    if (headers.count(name) == 0) unknown << " " << name;
  EXPECT_EQ(missing.str(), "") << "declared, and no allocation of theirs is failed";
  EXPECT_EQ(unknown.str(), "") << "in the table, and not in the headers";
}

}  // namespace
}  // namespace heddle::testing_memory
