// Where the boxes of a graph without cycles go, and the lines between them.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace heddle::tool {

struct GraphBox {
  double width = 0, height = 0;
  double x = 0, y = 0;  // of its centre: what a layout finds
};

struct GraphLine {
  size_t from = 0, to = 0;  // boxes; a later one always: from < to
  std::string path;         // as SVG writes it: what a layout finds
};

struct GraphLayout {
  std::vector<GraphBox> boxes;
  std::vector<GraphLine> lines;
  double width = 0, height = 0;
};

// Puts each box in a layer after those that it depends on, so that few lines cross (Sugiyama, Tagawa and Toda, "Methods for visual
// understanding of hierarchical system structures", 1981), and lines go down. Always the same for the same graph.
void lay_out_in_layers(GraphLayout& graph);

// Graphviz's `dot`, where it is installed, for the graphs of one picture.
class Graphviz {
 public:
  explicit Graphviz(std::chrono::milliseconds limit = std::chrono::seconds(10)) : left_(limit) {}
  // False: it is not installed, or has failed, once, or all graphs have taken it longer than the limit; `graph` is as it was.
  bool lay_out(GraphLayout& graph);

 private:
  std::chrono::milliseconds left_;
  bool is_usable_ = true;
};

}  // namespace heddle::tool
