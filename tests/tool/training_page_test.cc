// docs/training.md: every command that it shows runs, in order, in one folder, and prints what it shows of nets and files. Arrays of a few
// samples and fewer steps take the place of those whose numbers the page gives.
#include <filesystem>
#include <random>
#include <regex>
#include <sstream>

#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

struct Shown {
  std::string command;
  Words lines;  // what the page says it prints, but for numbers of training
};

std::vector<Shown> shown_commands() {
  std::vector<Shown> commands;
  std::istringstream page(read_text(HEDDLE_SOURCE_DIR "/docs/training.md"));
  bool in_block = false, of_commands = false;  // blocks that say a language show no commands
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```")) {
      in_block = !in_block;
      of_commands = in_block && line == "```";
    } else if (of_commands && line.starts_with("$ ")) {
      commands.push_back({line.substr(2), {}});
      while (commands.back().command.ends_with('\\') && std::getline(page, line)) commands.back().command += "\n" + line;
    } else if (of_commands && !commands.empty() && line.find('"') != std::string::npos) {
      commands.back().lines.push_back(line);
    }
  }
  return commands;
}

// Numbers from 0 to 1 of "<f4", or labels below `classes` of "<i8".
void write_array(const std::filesystem::path& file, const std::string& type, const std::vector<size_t>& dims, int classes) {
  std::string shape, data;
  size_t count = 1;
  for (const size_t dim : dims) shape += std::to_string(dim) + ",", count *= dim;
  std::mt19937 random(1);
  for (size_t i = 0; i < count; ++i) {
    const auto label = static_cast<int64_t>(random() % static_cast<unsigned>(std::max(1, classes)));
    const auto number = static_cast<float>(random() % 1000) / 1000;
    data += type == "<i8" ? std::string(reinterpret_cast<const char*>(&label), 8) : std::string(reinterpret_cast<const char*>(&number), 4);
  }
  write_text(file, npy_of(type, shape, data.data(), data.size()));
}

TEST(TrainingPage, EveryCommandRunsAndSaysWhatIsShownOfNetsAndFiles) {
  const TemporaryFolder folder;
  for (const std::string part : {"train", "test"}) {
    write_array(folder / (part + "_images.npy"), "<f4", {80, 1, 8, 8}, 0);
    write_array(folder / (part + "_labels.npy"), "<i8", {80}, 10);
  }
  write_array(folder / "points.npy", "<f4", {80, 2}, 0);
  write_array(folder / "ring.npy", "<i8", {80}, 2);
  std::filesystem::create_directory_symlink(HEDDLE_SOURCE_DIR "/examples", folder / "examples");
  const std::vector<Shown> commands = shown_commands();
  EXPECT_GE(commands.size(), 9u);
  for (const Shown& shown : commands) {
    const std::string command = std::regex_replace(shown.command, std::regex("--steps [0-9]+"), "--steps 3");
    const std::string printed = (folder / "printed.txt").string();
    const std::string script = "set -eo pipefail; unset HEDDLE_PLUGIN_DIR HEDDLE_CPU_ISA; heddle() { '" + tool_path + "' \"$@\"; }; cd '" +
                               folder.path().string() + "'\n" + command;
    write_text(folder / "script.sh", script);
    EXPECT_EQ(std::system(("bash '" + (folder / "script.sh").string() + "' >'" + printed + "' 2>&1").c_str()), 0) << command << "\n"
                                                                                                                  << read_text(printed);
    for (const std::string& line : shown.lines)
      EXPECT_NE(("\n" + read_text(printed)).find("\n" + line + "\n"), std::string::npos) << command << "\n" << read_text(printed);
  }
}

}  // namespace
}  // namespace heddle::tool_tests
