// Messages for people are written as whole sentences, so that one can be found by searching for its words; and files about different things
// have different names.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "sources.h"

namespace heddle::testing_repository {
namespace {

// Installed headers are exempt: they are built by people who may not have fmt.
TEST(Sentences, AreFormattedWholeAndNotGlued) {
  const std::regex glued(R"re("[^"]* [^"]*" \+ |\+ "[^"]* [^"]*"|std::string\("[^"]* [^"]*"\) \+|std::to_string\()re");
  size_t formatted = 0;
  for (const std::string& name : sources_of({"runtime", "tools"})) {
    if (name.starts_with("runtime/include/")) continue;
    std::ifstream file(checkout / name);
    size_t number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      formatted += line.find("fmt::format(") != std::string::npos ? 1 : 0;
      EXPECT_FALSE(std::regex_search(line, glued)) << name << ":" << number << ": write this sentence with fmt::format:" << line;
    }
  }
  EXPECT_GT(formatted, 300u) << "this test no longer sees the sources";
}

TEST(FileNames, AreThereOnce) {
  std::map<std::string, std::set<std::string>> folders;  // by name without extension
  for (const std::string& name : sources_of({"runtime", "plugins", "tools"})) {
    const std::string folder = std::filesystem::path(name).parent_path().string();
    // Commands have the names that users type, operators those of ONNX.
    if (folder.starts_with("tools/heddle/commands") || folder.starts_with("plugins/cpu/")) continue;
    folders[std::filesystem::path(name).stem().string()].insert(folder);
  }
  for (const auto& [name, in] : folders) {
    // A public header may have a source of its name.
    if (in.size() == 1 || (in.size() == 2 && in.contains("runtime/include/heddle"))) continue;
    std::string all;
    for (const std::string& folder : in) all += " " + folder;
    ADD_FAILURE() << name << " is a file of" << all << ": say in its name what it is about there";
  }
}

}  // namespace
}  // namespace heddle::testing_repository
