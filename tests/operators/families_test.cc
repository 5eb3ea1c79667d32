// The table of the CPU plugin's families names every family that a file defines, and operators say where they are and give examples.
#include "families.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "pointwise_support.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;
const fs::path source = HEDDLE_SOURCE_DIR;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns the sources of the families, by their path beneath plugins/cpu.
std::map<std::string, std::string> family_sources() {
  std::map<std::string, std::string> sources;
  for (const auto& entry : fs::recursive_directory_iterator(source / "plugins/cpu"))
    if (entry.path().extension() == ".cc") sources[fs::relative(entry.path(), source / "plugins/cpu").string()] = text_of(entry.path());
  return sources;
}

// Returns the content of group `group` in every match.
std::vector<std::string> matches(const std::string& text, const std::regex& expression, size_t group) {
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), expression), end; it != end; ++it) found.push_back((*it)[group]);
  return found;
}

TEST(Families, TableNamesEveryFamilyThatAFileDefines) {
  const std::regex definition(R"(void add_(\w+)\((?:plugin::)?Builder& plugin\) \{)");
  std::vector<std::string> defined;
  for (const auto& [file, text] : family_sources())
    for (const std::string& name : matches(text, definition, 1)) defined.push_back(name);
#define HEDDLE_FAMILY_NAME(name) #name,
  std::vector<std::string> listed = {HEDDLE_CPU_FAMILIES(HEDDLE_FAMILY_NAME)};
#undef HEDDLE_FAMILY_NAME
  std::sort(defined.begin(), defined.end());
  std::sort(listed.begin(), listed.end());
  EXPECT_EQ(listed, defined) << "plugins/cpu/families.h has one line for each add_NAME(Builder& plugin) below plugins/cpu";
}

// Operators say which file declares them: one that has their name.
TEST(Families, EveryOperatorNamesTheFileThatDeclaresIt) {
  const std::shared_ptr<const RegistrySnapshot> registry = cpu_registry().snapshot();
  for (const std::string& domain : registry->domains())
    for (const std::string& name : registry->operator_names(domain)) {
      const char* const file = registry->find_operator(domain, name)->op->file;
      ASSERT_TRUE(file) << name;
      EXPECT_EQ(std::string(file).rfind("plugins/cpu/", 0), 0u) << name << " is declared in " << file;
      EXPECT_NE(text_of(source / file).find('"' + name + '"'), std::string::npos) << file << " does not name " << name;
    }
}

// Examples document an operator, and `heddle plugin check` runs it with them.
TEST(Families, EveryOperatorHasExamplesWhoseValuesHaveASource) {
  const std::set<std::string> subnets = {"If", "Loop", "Scan"};  // checked only in sessions so far
  const std::shared_ptr<const RegistrySnapshot> registry = cpu_registry().snapshot();
  for (const std::string& domain : registry->domains())
    for (const std::string& name : registry->operator_names(domain)) {
      if (subnets.contains(name)) continue;
      const OperatorSchema& schema = *registry->find_operator(domain, name);
      bool says_values = false;
      for (uint32_t i = 0; i < schema.op->example_count; ++i) {
        const heddle_example& example = *schema.op->examples[i];
        const std::string text = example.text;
        const size_t outputs = text.find("->");
        says_values = says_values || (outputs != std::string::npos && text.find('=', outputs) != std::string::npos);
        EXPECT_TRUE(outputs == std::string::npos || (example.source && *example.source)) << name << ": " << text;
      }
      EXPECT_TRUE(says_values || (schema.op->example_count > 0 && schema.has_trait(HEDDLE_TRAIT_RANDOM))) << name << " has none";
    }
}

}  // namespace
}  // namespace heddle::testing
