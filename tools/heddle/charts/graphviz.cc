#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sstream>

#include "charts/graph_layout.h"
#include "charts/svg.h"
#include "process/external_program.h"

namespace heddle::tool {
namespace {

constexpr double units_per_inch = 72;

std::string question(const GraphLayout& graph) {
  std::string text =
      "digraph {\n  graph [nodesep=0.2, ranksep=0.35];\n  node [shape=box, fixedsize=true, label=\"\"];\n  edge [arrowhead=none];\n";
  for (size_t i = 0; i < graph.boxes.size(); ++i)
    text += fmt::format("  b{} [width={:.4f}, height={:.4f}];\n", i, graph.boxes[i].width / units_per_inch,
                        graph.boxes[i].height / units_per_inch);
  for (const GraphLine& line : graph.lines) text += fmt::format("  b{} -> b{};\n", line.from, line.to);
  return text + "}\n";
}

// A number that a picture can have.
bool is_place(double number) {
  return std::abs(number) < 1e6;
}

// Reads the answer in the format "plain": lines of a graph, its nodes and its edges, in inches, y upwards.
bool read_answer(const std::string& answer, GraphLayout& graph) {
  std::istringstream lines(answer);
  std::vector<char> placed(graph.boxes.size());
  std::vector<char> drawn(graph.lines.size());
  bool has_size = false;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind, name;
    double scale = 0;
    words >> kind;
    const auto box_of = [&](std::string_view text) {
      size_t i = SIZE_MAX;
      return text.size() > 1 && text[0] == 'b' && std::istringstream(std::string(text.substr(1))) >> i ? i : SIZE_MAX;
    };
    if (kind == "graph") {
      words >> scale >> graph.width >> graph.height;
      graph.width *= units_per_inch;
      graph.height *= units_per_inch;
      if (!words || !is_place(graph.width) || !is_place(graph.height)) return false;
      has_size = true;
    } else if (kind == "node") {
      double x = 0, y = 0;
      words >> name >> x >> y;
      const size_t i = box_of(name);
      if (!words || i >= graph.boxes.size() || !is_place(x) || !is_place(y)) return false;
      graph.boxes[i].x = x * units_per_inch;
      graph.boxes[i].y = graph.height - y * units_per_inch;
      placed[i] = 1;
    } else if (kind == "edge") {
      std::string to;
      size_t points = 0;
      words >> name >> to >> points;
      size_t at = 0;
      while (at < graph.lines.size() && (drawn[at] || graph.lines[at].from != box_of(name) || graph.lines[at].to != box_of(to))) ++at;
      if (!words || at == graph.lines.size()) return false;
      std::string path;
      for (size_t p = 0; p < points; ++p) {
        double x = 0, y = 0;
        words >> x >> y;
        if (!words || !is_place(x) || !is_place(y)) return false;
        path += fmt::format("{}{} {}",
                            p == 0   ? "M"
                            : p == 1 ? "C"
                                     : " ",
                            coordinate(x * units_per_inch), coordinate(graph.height - y * units_per_inch));
      }
      graph.lines[at].path = path;
      drawn[at] = 1;
    }
  }
  const auto all = [](const std::vector<char>& done) { return done.end() == std::find(done.begin(), done.end(), 0); };
  return has_size && all(placed) && all(drawn);
}

}  // namespace

bool Graphviz::lay_out(GraphLayout& graph) {
  if (!is_usable_) return false;
  const size_t max_answer = (size_t{1} << 20) + (graph.boxes.size() + graph.lines.size()) * 4096;
  const auto begin = std::chrono::steady_clock::now();
  std::string answer;
  GraphLayout found = graph;
  is_usable_ = run_external({"dot", "-Tplain"}, question(graph), left_, max_answer, &answer) && read_answer(answer, found);
  left_ -= std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  if (is_usable_) graph = std::move(found);
  return is_usable_;
}

}  // namespace heddle::tool
