// Checks the differential fuzzer's lists: operators.txt has every operator that importer and plugin have, each class of classes.toml has a
// rule and a test that exists.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "onnx/operators/operators.h"
#include "operators/pointwise_support.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(DifferentialLists, EveryOperatorIsMade) {
  std::set<std::string> made;
  std::istringstream lines(read(fs::path(HEDDLE_SOURCE_DIR) / "tests/differential/operators.txt"));
  for (std::string line; std::getline(lines, line);) made.insert(line);
  const std::vector<std::string> have = cpu_registry().snapshot()->operator_names("");
  for (const std::string& name : importer::known_names()) {
    const bool runs = importer::implemented_version(name) == 0 || std::find(have.begin(), have.end(), name) != have.end();
    EXPECT_EQ(made.contains(name), runs) << name << ": tests/differential makes no cases of it, or lists what cannot run";
  }
}

TEST(DifferentialLists, EveryClassHasARuleAndATest) {
  std::string sources;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(HEDDLE_SOURCE_DIR) / "tests"))
    if (entry.path().extension() == ".cc") sources += read(entry.path());
  const std::string text = read(fs::path(HEDDLE_SOURCE_DIR) / "tests/differential/classes.toml");
  const std::regex field(R"-(\n(id|rule|right|test|operators|kinds|judges) = "(.*)")-");
  std::set<std::string> ids;
  size_t classes = 0;
  for (size_t at = text.find("\n[[class]]"); at != std::string::npos;) {
    const size_t next = text.find("\n[[class]]", at + 1);
    const std::string row = text.substr(at, next == std::string::npos ? next : next - at);
    std::map<std::string, std::string> fields;
    for (std::sregex_iterator it(row.begin(), row.end(), field), end; it != end; ++it) fields[(*it)[1]] = (*it)[2];
    EXPECT_TRUE(ids.insert(fields["id"]).second) << fields["id"];
    for (const char* name : {"id", "rule", "right", "test", "operators", "kinds", "judges"}) EXPECT_FALSE(fields[name].empty()) << row;
    const std::string& test = fields["test"];
    const size_t dot = test.find('.');
    ASSERT_NE(dot, std::string::npos) << row;
    EXPECT_NE(sources.find("TEST(" + test.substr(0, dot) + ", " + test.substr(dot + 1) + ")"), std::string::npos)
        << fields["id"] << " names a test that is not there: " << test;
    ++classes;
    at = next;
  }
  EXPECT_GT(classes, 10u);
}

// tests/fuzz/planted: every line that a patch removes is still in its file (the surrounding lines may differ).
TEST(DifferentialLists, PlantedBugsStillFit) {
  const fs::path source = HEDDLE_SOURCE_DIR;
  size_t patches = 0;
  for (const auto& entry : fs::directory_iterator(source / "tests/fuzz/planted")) {
    if (entry.path().extension() != ".patch") continue;
    ++patches;
    std::istringstream lines(read(entry.path()));
    std::string text;
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("+++ b/", 0) == 0) text = read(source / line.substr(6));
      if (line.rfind("-", 0) != 0 || line.rfind("--- ", 0) == 0) continue;
      EXPECT_NE(text.find(line.substr(1) + "\n"), std::string::npos) << entry.path() << ": " << line;
    }
  }
  EXPECT_EQ(patches, 10u);
}

}  // namespace
}  // namespace heddle::testing
