// Where the boxes of a graph without cycles go, and the lines between them.
#pragma once

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

// Asks Graphviz's `dot`, where it is installed. False: it is not, or it has failed or taken longer than ten seconds; `graph` is as it was.
bool lay_out_by_graphviz(GraphLayout& graph);

}  // namespace heddle::tool
