// An SVG picture that fits any width, is read on light and dark paper, and needs nothing but its own file.
#pragma once

#include <string>
#include <string_view>

namespace heddle::tool {

// Escapes text of a file for a page or a picture.
std::string escape_xml(std::string_view text);

// Returns a number of a picture: at most two digits after the point.
std::string coordinate(double value);

// Text of a picture is set in a font whose characters have one width, so that what fits can be known before it is drawn.
constexpr double text_size = 12;

// Returns how wide a line of text may be at most, in the unit of `size`. What is not ASCII counts as two characters.
double text_width(std::string_view text, double size = text_size);

// Returns the text, or its first characters and "..." where it is wider than `width`. Empty: not even one has room.
std::string fitting_text(std::string_view text, double width, double size = text_size);

enum class Anchor { start, middle, end };

// Returns the name, or, where it is wider, its last parts from a '.', '/' or ':' on: ".conv3" of "layer1.0.conv3", at least three
// characters after it; else its beginning. Empty: not even five characters have room.
std::string fitting_name(std::string_view name, double width, double size = text_size);

// Collects the elements of a picture in the order in which they are drawn. Classes choose colours, for light and dark paper: see svg.cc.
// Elements that have a title show it at the pointer. Not thread-safe.
class Svg {
 public:
  explicit Svg(double width) : width_(width) {}
  double width() const { return width_; }

  void rectangle(double x, double y, double width, double height, std::string_view classes, std::string_view title = {});
  void line(double x1, double y1, double x2, double y2, std::string_view classes);
  // `points`: "x,y x,y ..."; `data`: the commands of a path.
  void polyline(std::string_view points, std::string_view classes);
  void path(std::string_view data, std::string_view classes, std::string_view title = {});
  void circle(double x, double y, double radius, std::string_view classes, std::string_view title = {});
  void text(double x, double y, std::string_view what, Anchor anchor = Anchor::start, std::string_view classes = {},
            std::string_view title = {});
  // Text that reads upwards.
  void upward_text(double x, double y, std::string_view what);
  // Elements until end_group() belong together: `attributes` as SVG writes them.
  void begin_group(std::string_view attributes);
  void end_group() { body_ += "</g>\n"; }

  // Returns the picture, `height` high. `name` says what it is to who can't see it; `id` is the element's in a page. `natural`: a unit is a
  // pixel, so that text of a picture of any size can be read; else the picture is as wide as its place.
  std::string finish(double height, std::string_view name, std::string_view id = {}, bool natural = false) &&;

 private:
  void close(std::string_view element, std::string_view title);
  const double width_;
  std::string body_;
};

}  // namespace heddle::tool
