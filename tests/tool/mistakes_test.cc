// `heddle plugin check` names what is wrong with each operator of tests/plugins/mistakes.cc.
#include <map>
#include <set>

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
    if (not_examined.contains(mistake)) continue;  // sanitizers keep their own malloc
    EXPECT_EQ(one["status"], mistake.empty() ? "pass" : "fail") << one;
    EXPECT_EQ(one["mistake"], mistake.empty() ? Json(nullptr) : Json(mistake)) << one;
  }
}

}  // namespace
}  // namespace heddle::tool_tests
