// The code that the documentation shows is code of this tree: a block under "<!-- from FILE -->" is in FILE, line by line.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace {

std::string trimmed(const std::string& line) {
  const size_t first = line.find_first_not_of(" \t");
  return first == std::string::npos ? "" : line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

// Returns the non-empty lines of a file, without indentation.
std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (!trimmed(line).empty()) lines.push_back(trimmed(line));
  return lines;
}

bool stands_in(const std::vector<std::string>& block, const std::vector<std::string>& file) {
  for (size_t at = 0; at + block.size() <= file.size(); ++at)
    if (std::equal(block.begin(), block.end(), file.begin() + static_cast<std::ptrdiff_t>(at))) return true;
  return false;
}

// Returns the number of marked blocks in `path`; fails for those that are not in their file.
size_t check(const std::filesystem::path& path) {
  const std::filesystem::path root = HEDDLE_SOURCE_DIR;
  const std::vector<std::string> lines = lines_of(path);
  size_t blocks = 0;
  const std::string mark = "<!-- from ", end = " -->";
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    if (lines[i].rfind(mark, 0) != 0) continue;
    const std::string source = lines[i].substr(mark.size(), lines[i].size() - mark.size() - end.size());
    EXPECT_TRUE(std::filesystem::exists(root / source)) << path << " shows code of " << source << ", which is not there";
    EXPECT_EQ(lines[i + 1].rfind("```", 0), 0u) << path << ": no code block follows " << lines[i];
    std::vector<std::string> block;
    for (i += 2; i < lines.size() && lines[i] != "```"; ++i) block.push_back(lines[i]);
    EXPECT_FALSE(block.empty());
    EXPECT_TRUE(stands_in(block, lines_of(root / source))) << path << ": this block is not in " << source << ":\n"
                                                           << block.front() << "\n...";
    ++blocks;
  }
  return blocks;
}

// Every trait of abi.h has its row in the guide's table, and the table has no other.
TEST(Docs, TheGuideTellsOfEveryTrait) {
  const std::filesystem::path root = HEDDLE_SOURCE_DIR;
  const std::string prefix = "HEDDLE_TRAIT_";
  std::set<std::string> declared, told;
  for (const std::string& line : lines_of(root / "runtime/include/heddle/abi.h"))
    if (line.rfind(prefix, 0) == 0 && line.find(" = ") != std::string::npos) declared.insert(line.substr(0, line.find(' ')));
  for (const std::string& line : lines_of(root / "docs/operator_guide.md"))
    if (line.rfind("| `" + prefix, 0) == 0) told.insert(line.substr(3, line.find('`', 3) - 3));
  EXPECT_GE(declared.size(), 8u);
  EXPECT_EQ(told, declared);
}

TEST(Docs, CodeBlocksStandInTheFilesTheyName) {
  size_t blocks = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HEDDLE_SOURCE_DIR "/docs"))
    if (entry.path().extension() == ".md") blocks += check(entry.path());
  if (std::filesystem::exists(HEDDLE_SOURCE_DIR "/README.md")) blocks += check(HEDDLE_SOURCE_DIR "/README.md");
  EXPECT_GE(blocks, 5u) << "the marks have changed: nothing is compared any more";
}

}  // namespace
