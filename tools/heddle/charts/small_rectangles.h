// Rectangles that are too small to be seen one by one, drawn together.
#pragma once

#include <string_view>
#include <vector>

#include "charts/svg.h"

namespace heddle::tool {

// Collects rectangles of a part of a picture in cells of two units, so that any number of them takes a bounded part of the file.
class SmallRectangles {
 public:
  SmallRectangles(double left, double top, double right, double bottom);
  void add(double x, double y, double width, double height);
  size_t count() const { return count_; }
  // Draws all cells that a rectangle covers; nothing if there is none.
  void draw(Svg& svg, std::string_view classes, std::string_view title) const;

 private:
  const double left_, top_;
  const size_t columns_, rows_;
  std::vector<char> covered_;  // by column, then by row
  size_t count_ = 0;
};

}  // namespace heddle::tool
