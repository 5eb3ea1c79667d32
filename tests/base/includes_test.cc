// The way of a net shows in the includes: a folder of runtime/ includes earlier stages and what stands beside them, never a later stage.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
const std::vector<std::string> beside = {"base", "net", "plugin", "device", "memory", "weights"};
const std::vector<std::string> stages = {"load", "resolve", "infer", "transform", "verify", "compile", "run"};

// The folders that files of `folder` include from.
std::set<std::string> included_from(const fs::path& folder) {
  const std::regex include(R"re(^#include "(\w+)/[\w/.]+")re");
  std::set<std::string> folders;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    std::smatch match;
    for (std::string line; std::getline(file, line);)
      if (std::regex_search(line, match, include)) folders.insert(match[1]);
  }
  return folders;
}

TEST(Includes, PointToEarlierStagesOnly) {
  const fs::path runtime = fs::path(HEDDLE_SOURCE_DIR) / "runtime";
  std::set<std::string> allowed(beside.begin(), beside.end());
  allowed.insert("heddle");  // the public headers
  const auto check = [&](const std::string& folder) {
    const std::set<std::string> folders = included_from(runtime / folder);
    EXPECT_FALSE(folders.empty()) << folder;
    for (const std::string& other : folders) EXPECT_TRUE(allowed.count(other) > 0) << folder << " includes files of " << other;
  };
  for (const std::string& folder : beside) check(folder);
  for (const std::string& folder : stages) {
    allowed.insert(folder);
    check(folder);
  }
}

}  // namespace
