// tests/COVERAGE.md and docs/security.md against the existing tests: a renamed or lost test is found here, and a row without a test must
// say so.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
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

// Returns "Suite.Name" of every GoogleTest and the names that the folders' CMakeLists.txt give to ctest.
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
  const std::regex cells(R"(^\| ([^|]*) \| ([^|]*) \|$)");
  std::smatch match;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("|", 0) != 0 || line.rfind("| ---", 0) == 0 || line.rfind("| item ", 0) == 0 || line.rfind("| of ", 0) == 0) continue;
    EXPECT_TRUE(std::regex_match(line, match, cells)) << "not a row of two cells: " << line;
    if (match.size() == 3) rows.push_back({match[1].str(), match[2].str()});
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

// The rows of docs/security.md, "| what holds | tests |": a promise without a test must be marked "not yet".
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

TEST(Coverage, NoItemHasTwoRows) {
  std::set<std::string> items;
  for (const Row& row : rows()) EXPECT_TRUE(items.insert(row.item).second) << row.item << " has two rows";
}

// All sources of tests, one after the other.
std::string test_sources() {
  std::string text;
  for (const auto& entry : fs::recursive_directory_iterator(root / "tests")) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".cc" || extension == ".h" || extension == ".py" || extension == ".sh") text += content(entry.path());
  }
  return text;
}

// Returns whether `word` is in the text and does not continue there as a longer name.
bool contains_name(const std::string& text, const std::string& word) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if (end == text.size() || (text[end] != '_' && std::isalnum(static_cast<unsigned char>(text[end])) == 0)) return true;
  }
  return false;
}

// The code is written as Code::shape_mismatch, or as the tool prints it, in quotes or brackets.
TEST(Coverage, EveryCodeOfDiagnosticsIsExpectedSomewhere) {
  const std::string header = content(root / "runtime/include/heddle/status.h"), tests = test_sources();
  const size_t begin = header.find("enum class Code");
  const std::string body = header.substr(begin, header.find("};", begin) - begin);
  std::set<std::string> codes;
  add_matches(body, std::regex(R"(\n  ([a-z_]+),)"), "", &codes);
  ASSERT_GT(codes.size(), 40u);
  for (const std::string& code : codes) {
    std::string printed = code;
    std::replace(printed.begin(), printed.end(), '_', '-');
    EXPECT_TRUE(contains_name(tests, "Code::" + code) || tests.find("\"" + printed + "\"") != std::string::npos ||
                tests.find("[" + printed + "]") != std::string::npos)
        << "no test expects " << printed;
  }
}

// A listed struct has all its fields: layout_test.cc does not compile otherwise.
TEST(Coverage, EveryStructOfTheBoundaryHasItsFieldsListed) {
  const std::string fields = content(root / "tests/abi/fields.inc");
  std::set<std::string> structs;
  for (const char* header : {"abi.h", "device_plugin.h"})
    add_matches(content(root / "runtime/include/heddle" / header), std::regex(R"(\ntypedef struct (heddle_\w+) \{)"), "", &structs);
  ASSERT_GT(structs.size(), 15u);
  for (const std::string& name : structs)
    EXPECT_NE(fields.find("HEDDLE_STRUCT(" + name + ")"), std::string::npos) << name << " is missing in tests/abi/fields.inc";
}

}  // namespace
