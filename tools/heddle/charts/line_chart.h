// Lines over a common horizontal axis: as an SVG, and as characters for a terminal.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace heddle::tool {

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  // (x, y), x ascending; what is not finite is left out
};

// Lines that share an axis; it is logarithmic where all numbers are positive and span more than two decades.
struct ChartPanel {
  std::string label;  // of the axis
  std::vector<ChartLine> lines;
};

// The panels are drawn below each other; x are whole numbers.
struct LineChart {
  std::string title, x_label;
  std::vector<ChartPanel> panels;
};

// Returns an SVG with axes, ticks at round numbers, and a legend in each panel.
std::string line_chart_svg(const LineChart& chart);

// Returns the chart as characters, at most `columns` wide beside its title and legends, with `rows` of them for each panel's lines and an
// ASCII mark for each line.
std::string line_chart_text(const LineChart& chart, size_t columns = 100, size_t rows = 14);

}  // namespace heddle::tool
