// The pages about learning: every command on them runs, in order, in one folder for each page, and prints the lines that follow it on the
// page. Arrays of a few samples and fewer steps replace those whose numbers the pages give.
#include <algorithm>
#include <filesystem>
#include <random>
#include <regex>
#include <sstream>

#include "image/picture_files.h"
#include "tool/onnx_bytes.h"
#include "tool/tool_runner.h"

namespace heddle::tool_tests {
namespace {

struct Shown {
  std::string command;
  Words lines;
};

// Returns the lines without what differs from machine to machine: losses, and the instruction set after the version of cpu.so.
Words stable_lines(std::istream& text) {
  Words lines;
  for (std::string line; std::getline(text, line);)
    if (!line.starts_with("step ") && line.find(" is the best") == std::string::npos)
      lines.push_back(std::regex_replace(line, std::regex(R"(\+(sse|avx2|avx512)\b)"), ""));
  return lines;
}

// Returns the commands of a page of docs/, or of its sections whose headings begin with one of `sections`.
std::vector<Shown> shown_commands(const std::string& page, const Words& sections) {
  std::vector<Shown> commands;
  std::istringstream text(read_text(HEDDLE_SOURCE_DIR "/docs/" + page));
  bool in_block = false, of_commands = false, is_wanted = sections.empty();  // blocks with a language show no commands
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("## ") && !in_block && !sections.empty())
      is_wanted = std::any_of(sections.begin(), sections.end(), [&](const std::string& s) { return line.starts_with("## " + s); });
    if (line.starts_with("```")) {
      in_block = !in_block;
      of_commands = is_wanted && in_block && line == "```";
    } else if (of_commands && line.starts_with("$ ")) {
      commands.push_back({line.substr(2), {}});
      while (commands.back().command.ends_with('\\') && std::getline(text, line)) commands.back().command += "\n" + line;
    } else if (of_commands && !commands.empty()) {
      std::istringstream one(line);
      for (const std::string& stable : stable_lines(one)) commands.back().lines.push_back(stable);
    }
  }
  return commands;
}

// "..." matches any number of lines.
bool matches(const std::string* shown, const std::string* shown_end, const std::string* printed, const std::string* printed_end) {
  if (shown == shown_end) return printed == printed_end;
  if (*shown != "...") return printed != printed_end && *shown == *printed && matches(shown + 1, shown_end, printed + 1, printed_end);
  for (const std::string* rest = printed;; ++rest) {
    if (matches(shown + 1, shown_end, rest, printed_end)) return true;
    if (rest == printed_end) return false;
  }
}

void run_as_shown(const std::filesystem::path& folder, const Shown& shown) {
  const std::string command = std::regex_replace(shown.command, std::regex("--steps [0-9]+"), "--steps 3");
  const std::string script = (folder / "script.sh").string(), output = (folder / "printed.txt").string();
  write_text(script, "set -eo pipefail; unset HEDDLE_PLUGIN_DIR HEDDLE_CPU_ISA; heddle() { '" + tool_path + "' \"$@\"; }; cd '" +
                         folder.string() + "'\n" + command);
  const bool is_refused = std::any_of(shown.lines.begin(), shown.lines.end(), [](const auto& l) { return l.starts_with("error["); });
  const int status = std::system(("bash '" + script + "' >'" + output + "' 2>&1").c_str());
  const std::string printed = read_text(output);
  EXPECT_EQ(status != 0, is_refused) << command << "\n" << printed;
  std::istringstream text(printed);
  const Words lines = stable_lines(text), &wanted = shown.lines;
  EXPECT_TRUE(matches(wanted.data(), wanted.data() + wanted.size(), lines.data(), lines.data() + lines.size()))
      << "the page does not show what this prints:\n"
      << command << "\n..." << printed.substr(printed.size() - std::min<size_t>(printed.size(), 2000));
}

// The page must show at least `least` commands, so that a page of another form does not pass unchecked.
void run_page(const std::filesystem::path& folder, const std::string& page, size_t least, const Words& sections = {}) {
  std::filesystem::create_directory_symlink(HEDDLE_SOURCE_DIR "/examples", folder / "examples");
  std::filesystem::create_directory(folder / "build");
  std::filesystem::create_directory_symlink(HEDDLE_BINARY_DIR, folder / "build" / "dev");
  const std::vector<Shown> commands = shown_commands(page, sections);
  EXPECT_GE(commands.size(), least) << page;
  for (const Shown& shown : commands) run_as_shown(folder, shown);
}

// Writes numbers from 0 to 1 of "<f4", or labels below `classes` of "<i8".
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

// Writes 40 pictures of eight kinds, and two lists of them.
void write_pictures(const std::filesystem::path& folder) {
  std::filesystem::create_directory(folder);
  const Words kinds = {"animals", "food", "household", "plants", "seasonal", "symbols", "town", "vehicles"};
  std::string list = "file,kind\n";
  for (int i = 0; i < 40; ++i) {
    const std::string file = std::to_string(i) + ".png";
    write_text(folder / file, pictures::png_of(pictures::random_bytes(300), 10, 10));
    list += file + "," + kinds[static_cast<size_t>(i) % 8] + "\n";
  }
  for (const char* name : {"train.csv", "test.csv"}) write_text(folder / name, list);
}

// Returns the model that the page lets PyTorch export, with other weights.
std::string exported_model() {
  namespace onnx = onnx_bytes;
  const auto weight = [](const std::string& name, const onnx::Dims& dims, size_t count) {
    return onnx::tensor(name, dims, std::vector<float>(count, 0.125F));
  };
  const Words statistics = {"0", "1.weight", "1.bias", "1.running_mean", "1.running_var"};
  const std::string halves = onnx::ints_attribute("kernel_shape", {2, 2}) + onnx::ints_attribute("strides", {2, 2});
  onnx::Graph graph = onnx::Graph()
                          .input(onnx::batch("image", {1, 8, 8}))
                          .output(onnx::batch("logits", {10}))
                          .constant(weight("0.weight", {16, 1, 3, 3}, 144))
                          .constant(weight("6.weight", {10, 256}, 2560))
                          .constant(weight("6.bias", {10}, 10))
                          .constant(weight("ratio", {}, 1));
  for (size_t i = 1; i < statistics.size(); ++i) graph.constant(weight(statistics[i], {16}, 16));
  graph.node(onnx::node("Conv", {"image", "0.weight"}, {"0"}, "", onnx::ints_attribute("pads", {1, 1, 1, 1})))
      .node(onnx::node("BatchNormalization", statistics, {"1"}))
      .node(onnx::node("Relu", {"1"}, {"2"}))
      .node(onnx::node("MaxPool", {"2"}, {"3"}, "", halves))
      .node(onnx::node("Flatten", {"3"}, {"4"}))
      .node(onnx::node("Dropout", {"4", "ratio"}, {"5"}))
      .node(onnx::node("Gemm", {"5", "6.weight", "6.bias"}, {"logits"}, "", onnx::int_attribute("transB", 1)));
  return graph.model(17);
}

TEST(TrainingPages, TrainingShowsWhatItsCommandsPrint) {
  const TemporaryFolder folder;
  for (const std::string part : {"train", "test"}) {
    write_array(folder / (part + "_images.npy"), "<f4", {80, 1, 8, 8}, 0);
    write_array(folder / (part + "_labels.npy"), "<i8", {80}, 10);
  }
  write_array(folder / "points.npy", "<f4", {80, 2}, 0);
  write_array(folder / "ring.npy", "<i8", {80}, 2);
  write_text(folder / "net.onnx", exported_model());
  write_pictures(folder / "stamps");
  run_page(folder.path(), "training.md", 15);
}

TEST(TrainingPages, GradientsShowsWhatItsCommandsPrint) {
  const TemporaryFolder folder;
  run_page(folder.path(), "gradients.md", 2);
}

TEST(TrainingPages, DistributedShowsWhatItsCommandsPrint) {
  const TemporaryFolder folder;
  run_page(folder.path(), "distributed.md", 5);
}

TEST(TrainingPages, TheCommandLineShowsWhatItsCommandsOfLearningPrint) {
  const TemporaryFolder folder;
  run_page(folder.path(), "command_line.md", 4, {"heddle model ", "heddle train ", "heddle predictor "});
}

}  // namespace
}  // namespace heddle::tool_tests
