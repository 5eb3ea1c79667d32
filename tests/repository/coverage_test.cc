// tests/COVERAGE.md and docs/security.md against the tests that exist: a renamed or lost test is found here, and a row that nothing covers
// says so.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
const fs::path root = HEDDLE_SOURCE_DIR;

std::string content(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void add_matches(const std::string& text, const std::regex& pattern, const std::string& between, std::set<std::string>* names) {
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match)
    names->insert((*match)[1].str() + between + (match->size() > 2 ? (*match)[2].str() : ""));
}

// "Suite.Name" of every GoogleTest and the names that the folders' CMakeLists.txt give to ctest.
std::set<std::string> existing_tests() {
  const std::regex google(R"(\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\))");
  const std::regex ctest(R"(add_test\(\s*NAME\s+([\w.-]+))");
  const std::regex package(R"(\bpackage_test\((\w+))");
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(root / "tests")) {
    const std::string file = entry.path().filename().string();
    if (file.ends_with("_test.cc")) add_matches(content(entry.path()), google, ".", &names);
    if (file != "CMakeLists.txt") continue;
    add_matches(content(entry.path()), ctest, "", &names);
    std::set<std::string> packages;
    add_matches(content(entry.path()), package, "", &packages);
    for (const std::string& name : packages) names.insert("package." + name);
  }
  return names;
}

struct Row {
  std::string item;
  std::string tests;
};

std::vector<Row> rows() {
  std::vector<Row> rows;
  std::ifstream file(root / "tests" / "COVERAGE.md");
  const std::regex cells(R"(^\| ([^|]*) \| ([^|]*) \| ?([^|]*) ?\|$)");
  std::smatch match;
  for (std::string line; std::getline(file, line);)
    if (line.rfind("|", 0) == 0 && line.rfind("| ---", 0) != 0 && line.rfind("| item ", 0) != 0) {
      EXPECT_TRUE(std::regex_match(line, match, cells)) << "not a row of three cells: " << line;
      if (match.size() == 4) rows.push_back({match[1].str(), match[3].str()});
    }
  return rows;
}

void expect_exists(const std::string& test, const std::set<std::string>& tests, const std::string& where) {
  const bool exists = test.find('/') != std::string::npos ? fs::exists(root / test) : tests.count(test) > 0;
  EXPECT_TRUE(exists) << where << " names " << test << ", which does not exist";
}

TEST(Coverage, EveryNamedTestExists) {
  const std::set<std::string> tests = existing_tests();
  ASSERT_GT(tests.size(), 100u);
  const std::regex name("`([^`]+)`");
  size_t named = 0;
  for (const Row& row : rows()) {
    const bool open = row.tests.find("open: ") != std::string::npos;
    std::set<std::string> names;
    add_matches(row.tests, name, "", &names);
    EXPECT_TRUE(open || !names.empty()) << row.item << " names no test and does not say what is open";
    for (const std::string& test : names) {
      expect_exists(test, tests, row.item);
      ++named;
    }
  }
  EXPECT_GT(named, 50u);
}

// docs/security.md, "| what holds | tests |": a promise without a test says that it is none yet.
TEST(Security, EveryLineNamesTestsThatExist) {
  const std::set<std::string> tests = existing_tests();
  std::ifstream file(root / "docs" / "security.md");
  const std::regex cells(R"(^\| ([^|]*) \| ([^|]*) \|$)"), name("`([^`]+)`");
  std::smatch match;
  size_t held = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("|", 0) != 0 || line.rfind("| ---", 0) == 0 || line.rfind("| what holds ", 0) == 0) continue;
    ASSERT_TRUE(std::regex_match(line, match, cells)) << "not a row of two cells: " << line;
    const std::string what = match[1].str(), by = match[2].str();
    if (by.rfind("not yet: ", 0) == 0) continue;
    std::set<std::string> names;
    add_matches(by, name, "", &names);
    EXPECT_FALSE(names.empty()) << "nothing proves: " << what;
    for (const std::string& test : names) expect_exists(test, tests, what);
    ++held;
  }
  EXPECT_GT(held, 15u) << "the page has changed: nothing is compared any more";
}

TEST(Coverage, EveryItemHasARow) {
  std::set<std::string> items;
  for (const Row& row : rows()) EXPECT_TRUE(items.insert(row.item).second) << row.item << " has two rows";
  for (const char* item : {"1",  "2",  "3",  "4",  "5",  "6",  "7",  "8",  "9",  "10",  "A3",  "A8",  "A9",  "B1",  "B2",
                           "B3", "B4", "B5", "H1", "H2", "D2", "D3", "D4", "D5", "D13", "D14", "D15", "D16", "D18", "D24"})
    EXPECT_TRUE(items.count(item)) << item << " has no row";
}

}  // namespace
