// `heddle plugin check` names the mistake of each operator of tests/plugins/mistaken/mistakes.cc.
#include <map>
#include <set>
#include <sstream>

#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

TEST(ToolMistakes, EachIsFoundAndNamed) {
  const std::map<std::string, std::string> rows = {{"ReadsBehind", "read-beyond"},
                                                   {"ReadsBefore", "read-beyond"},
                                                   {"ReadsBehindTheOptional", "read-beyond"},
                                                   {"WritesFarBehind", "write-beyond"},
                                                   {"WritesBefore", "write-beyond"},
                                                   {"WritesBehindInAMode", "write-beyond"},
                                                   {"WritesItsInput", "writes-input"},
                                                   {"ReadsScratch", "uninitialised"},
                                                   {"ReadsThreadScratch", "uninitialised"},
                                                   {"LeavesTheTail", "unwritten"},
                                                   {"UnwrittenExtent", "extent"},
                                                   {"ByThread", "threads"},
                                                   {"ByThreads", "threads"},
                                                   {"Restarts", "tiles"},
                                                   {"Draws", "nondeterministic"},
                                                   {"Counts", "nondeterministic"},
                                                   {"Seeded", "random-undeclared"},
                                                   {"Unchecked", "index-unchecked"},
                                                   {"CheckedAbove", "index-unchecked"},
                                                   {"Allocates", "allocates"},
                                                   {"AllocatesByMalloc", "allocates"},
                                                   {"StartsAThread", "starts-threads"},
                                                   {"SaysHello", "prints"},
                                                   {"LeaksInCreate", "leak"},
                                                   {"LeaksAFile", "leak"},
                                                   {"LeaksWhenItRefuses", "leak"},
                                                   {"EpilogueOtherWayRound", "epilogue-differs"},
                                                   {"EpilogueLosesNan", "epilogue-differs"},
                                                   {"EpilogueOfAnother", "epilogue-differs"},
                                                   {"AcceptsAndRefuses", "epilogue-differs"},
                                                   {"HonestWithAnEpilogue", ""},
                                                   {"CommutativeMinus", "commutative"},
                                                   {"CommutativeButForNan", "commutative"},
                                                   {"CommutativeButForDims", "commutative"},
                                                   {"HonestPlus", ""},
                                                   {"OtherThanItsExample", "value"},
                                                   {"RefusesItsExample", "example"},
                                                   {"UnreadableExample", "example"},
                                                   {"BehindAnExample", "write-beyond"},
                                                   {"Honest", ""}};
  const Json object = heddle_json({"plugin", "check", test_plugin("mistakes")}, 1);
  ASSERT_EQ(object["operators"].size(), rows.size()) << "an operator without a row";
  const std::set<std::string> not_examined = object["not_examined"];
  for (const Json& one : object["operators"]) {
    const std::string name = one["operator"], type = name.substr(name.rfind(':') + 1);
    ASSERT_TRUE(rows.contains(type)) << type;
    const std::string& mistake = rows.at(type);
    if (not_examined.contains(mistake)) continue;  // sanitizers have a malloc of their own
    EXPECT_EQ(one["status"], mistake.empty() ? "pass" : "fail") << one;
    EXPECT_EQ(one["mistake"], mistake.empty() ? Json(nullptr) : Json(mistake)) << one;
  }
}

// These were planted in operators before the checker was written to find them, by an author who had only the documentation.
TEST(ToolMistakes, ThosePlantedByOthersAreFoundAndNamed) {
  const std::string folder = HEDDLE_SOURCE_DIR "/tests/authors/mistakes";
  std::map<std::string, std::map<std::string, std::string>> rows;  // by plugin and operator
  std::istringstream lines(read_text(folder + "/mistakes.txt"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string file, type, number, mistake;
    if (line.rfind('#', 0) == 0 || !(words >> file >> type >> number >> mistake)) continue;
    rows[file.substr(0, file.find('.'))][type] = mistake;
  }
  size_t planted = 0, found = 0, left_out = 0;  // left out: those that a build with sanitizers does not look for
  for (const auto& [plugin, mistakes] : rows) planted += mistakes.size();
  for (const auto& [plugin, mistakes] : rows) {
    const Json object = heddle_json({"plugin", "check", test_plugin("planted_" + plugin)}, 1);
    const bool sanitized = !object["not_examined"].empty();  // a sanitizer ends the process with a message of its own
    const std::set<std::string> not_examined = object["not_examined"];
    std::set<std::string> seen;
    for (const Json& one : object["operators"]) {
      const std::string name = one["operator"], type = name.substr(name.rfind(':') + 1);
      const auto row = mistakes.find(type);
      seen.insert(type);
      if (row == mistakes.end()) {
        EXPECT_EQ(one["status"], "pass") << plugin << ": " << one;
        continue;
      }
      if (not_examined.contains(row->second)) {
        ++left_out;
        continue;
      }
      EXPECT_EQ(one["status"], "fail") << plugin << " has " << row->second << ": " << one;
      if (!sanitized) {
        EXPECT_EQ(one["mistake"], Json(row->second)) << plugin << ": " << one;
      }
      ++found;
    }
    for (const auto& [type, mistake] : mistakes) EXPECT_TRUE(seen.contains(type)) << plugin << " has no " << type;
  }
  RecordProperty("planted", static_cast<int>(planted));
  EXPECT_EQ(found + left_out, planted);
  EXPECT_GE(planted, 150u);
}

}  // namespace
}  // namespace heddle::tool_tests
