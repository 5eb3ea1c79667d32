// The includes follow the way of a net. The rule is the table "The rooms" of docs/architecture.md: a folder of runtime/ includes its own
// files and those of the rows above it, the public headers include public headers alone, and plugins include those and their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
const fs::path source = HEDDLE_SOURCE_DIR;

// Returns the first column of the table, from its top.
std::vector<std::string> rooms_in_order() {
  std::ifstream file(source / "docs/architecture.md");
  const std::regex row(R"(^\| `(\w+)` \|.*)");
  std::vector<std::string> rooms;
  std::smatch match;
  bool within = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) within = line == "## The rooms";
    if (within && std::regex_match(line, match, row)) rooms.push_back(match[1]);
  }
  return rooms;
}

std::vector<fs::path> sources_beneath(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (entry.is_regular_file() && (extension == ".h" || extension == ".cc" || extension == ".cu")) files.push_back(entry.path());
  }
  return files;
}

// Returns the files that `file` includes between quotes.
std::vector<std::string> included(const fs::path& file) {
  const std::regex include(R"re(^\s*#\s*include\s*"([^"]+)")re");
  std::ifstream in(file);
  std::vector<std::string> names;
  std::smatch match;
  for (std::string line; std::getline(in, line);)
    if (std::regex_search(line, match, include)) names.push_back(match[1]);
  return names;
}

std::string relative_name(const fs::path& file) {
  return fs::relative(file, source).string();
}

TEST(Includes, EveryFolderOfTheRuntimeIsARoomOfTheTable) {
  const std::vector<std::string> rooms = rooms_in_order();
  std::set<std::string> folders;
  for (const auto& entry : fs::directory_iterator(source / "runtime"))
    if (entry.is_directory() && entry.path().filename() != "include") folders.insert(entry.path().filename());
  EXPECT_EQ(std::set<std::string>(rooms.begin(), rooms.end()), folders);
  EXPECT_EQ(rooms.size(), folders.size());
}

TEST(Includes, PointToRowsAboveOnly) {
  const std::vector<std::string> rooms = rooms_in_order();
  std::set<std::string> allowed = {"heddle"};  // the public headers
  std::map<std::string, std::set<std::string>> includes;
  size_t exceptions = 0;
  for (const std::string& room : rooms) {
    allowed.insert(room);
    for (const fs::path& file : sources_beneath(source / "runtime" / room))
      for (const std::string& name : included(file)) {
        const size_t slash = name.find('/');
        if (slash == std::string::npos && name == "net_generated.h" && room == "load") continue;  // made from schemas/net.fbs
        const std::string folder = slash == std::string::npos ? "" : name.substr(0, slash);
        if (folder != room && folder != "heddle") includes[room].insert(folder);
        if (allowed.count(folder) == 0) {
          ++exceptions;
          ADD_FAILURE() << relative_name(file) << " includes \"" << name << "\": its folder does not stand above " << room;
        }
      }
  }
  for (const std::string& room : rooms) {
    std::string line = room + " ->";
    for (const std::string& folder : includes[room]) line += " " + folder;
    std::printf("%s\n", line.c_str());
  }
  std::printf("%zu rooms, %zu exceptions\n", rooms.size(), exceptions);
}

TEST(Includes, OfPublicHeadersArePublicHeaders) {
  for (const fs::path& file : sources_beneath(source / "runtime/include"))
    for (const std::string& name : included(file))
      EXPECT_TRUE(fs::exists(source / "runtime/include" / name)) << relative_name(file) << " includes \"" << name << "\"";
}

TEST(Includes, OfPluginsArePublicHeadersAndTheirOwn) {
  for (const auto& plugin : fs::directory_iterator(source / "plugins")) {
    if (!plugin.is_directory()) continue;
    for (const fs::path& file : sources_beneath(plugin.path()))
      for (const std::string& name : included(file))
        EXPECT_TRUE(fs::exists(source / "runtime/include" / name) || fs::exists(plugin.path() / name) ||
                    fs::exists(file.parent_path() / name) || (name.starts_with("shared/") && fs::exists(source / "plugins" / name)))
            << relative_name(file) << " includes \"" << name << "\"";
  }
}

// The rooms that each part of the tool may include. Parts that run nets are clients of the installed headers; parts that read, write and
// examine nets and plugins may include these rooms.
const std::map<std::string, std::set<std::string>> rooms_of_tools = {
    {"tools/heddle/main.cc", {"base"}},
    {"tools/heddle/charts", {"base"}},
    {"tools/heddle/common", {"base", "load", "net"}},
    {"tools/heddle/options", {"base", "derive", "infer", "load", "plugin", "resolve"}},
    {"tools/heddle/process", {"base"}},
    {"tools/heddle/tensors", {"base", "infer", "net", "weights"}},
    {"tools/heddle/commands/run", {"base"}},
    {"tools/heddle/commands/plan/plan_buffers.cc", {"base", "memory"}},  // the offset planner alone: no net is run
    {"tools/heddle/commands/plan", {"base"}},
    {"tools/heddle/commands/bench.cc", {"base"}},
    {"tools/heddle/commands/completion.cc", {"base"}},
    {"tools/heddle/commands/manual.cc", {"base"}},
    {"tools/heddle/commands/op", {"base", "plugin"}},
    {"tools/heddle/commands/bench_collectives.cc", {"base", "net"}},
    {"tools/heddle/commands/train", {"base", "net", "state", "train"}},
    {"tools/heddle/commands/predictor.cc", {"base", "derive", "load", "net", "state"}},
    {"tools/heddle/commands/verify_onnx", {"base", "load"}},
    {"tools/heddle/commands/check.cc", {"base", "load"}},
    {"tools/heddle/commands/convert.cc", {"base", "load", "weights"}},
    {"tools/heddle/commands/import.cc", {"base", "load", "plugin", "resolve"}},
    {"tools/heddle/commands/model.cc", {"base", "load"}},
    {"tools/heddle/commands/inspect", {"base", "derive", "infer", "load", "net", "plugin", "resolve", "weights"}},
    {"tools/heddle/commands/devices.cc", {"base", "device", "plugin"}},
    {"tools/heddle/commands/plugin", {"base", "device", "infer", "load", "net", "operator_runner", "plugin", "resolve"}},
    {"tools/models", {"base", "net", "weights"}},
    {"tools/onnx", {"base", "net", "weights"}},
    {"tools/trainable", {"base", "derive", "infer", "net", "plugin", "resolve"}},
};

TEST(Includes, OfToolsAreInstalledHeadersAndTheRoomsListed) {
  std::map<std::string, std::set<std::string>> used;
  for (const fs::path& file : sources_beneath(source / "tools")) {
    const std::string name = relative_name(file);
    const std::pair<const std::string, std::set<std::string>>* entry = nullptr;
    for (const auto& one : rooms_of_tools)
      if (name.starts_with(one.first) && (!entry || one.first.size() > entry->first.size())) entry = &one;
    for (const std::string& include : included(file)) {
      const std::string folder = include.substr(0, include.find('/'));
      EXPECT_FALSE(include.starts_with("plugins/")) << name << " includes \"" << include << "\"";
      if (!fs::exists(source / "runtime" / include)) continue;  // a tool's own, or an installed one
      ASSERT_TRUE(entry) << name << " includes \"" << include << "\": no line says what it may include";
      EXPECT_TRUE(entry->second.count(folder) > 0) << name << " includes \"" << include << "\"";
      used[entry->first].insert(folder);
    }
  }
  EXPECT_EQ(used, rooms_of_tools) << "a line allows what nothing includes";
  for (const auto& [file, rooms] : used) {
    EXPECT_EQ(rooms.count("run") + rooms.count("session") + rooms.count("schedule") + rooms.count("compile"), 0u) << file;
    std::string line = file + ":";
    for (const std::string& room : rooms) line += " " + room;
    std::printf("%s\n", line.c_str());
  }
}

}  // namespace
