#include "charts/small_rectangles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace heddle::tool {
namespace {

constexpr double cell = 2;

size_t cells(double length) {
  return std::max<size_t>(1, static_cast<size_t>(std::ceil(length / cell)));
}

}  // namespace

SmallRectangles::SmallRectangles(double left, double top, double right, double bottom)
    : left_(left), top_(top), columns_(cells(right - left)), rows_(cells(bottom - top)), covered_(columns_ * rows_) {}

void SmallRectangles::add(double x, double y, double width, double height) {
  ++count_;
  const auto index = [](double place, size_t limit) {
    return std::min(limit - 1, static_cast<size_t>(std::max(0.0, std::floor(place / cell))));
  };
  const size_t last_column = index(std::max(x, x + width - 1e-6) - left_, columns_),
               last_row = index(std::max(y, y + height - 1e-6) - top_, rows_);
  for (size_t column = index(x - left_, columns_); column <= last_column; ++column)
    for (size_t row = index(y - top_, rows_); row <= last_row; ++row) covered_[column * rows_ + row] = 1;
}

void SmallRectangles::draw(Svg& svg, std::string_view classes, std::string_view title) const {
  std::string data;
  for (size_t column = 0; column < columns_; ++column)
    for (size_t row = 0; row < rows_; ++row) {
      size_t end = row;
      while (end < rows_ && covered_[column * rows_ + end]) ++end;
      if (end == row) continue;
      data += fmt::format("M{} {}h{}v{}h-{}z", coordinate(left_ + cell * static_cast<double>(column)),
                          coordinate(top_ + cell * static_cast<double>(row)), cell, cell * static_cast<double>(end - row), cell);
      row = end;
    }
  if (!data.empty()) svg.path(data, classes, title);
}

}  // namespace heddle::tool
