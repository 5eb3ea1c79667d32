#include "charts/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/text/text.h"
#include "charts/chart_axis.h"
#include "charts/svg.h"

namespace heddle::tool {
namespace {

constexpr double picture_width = 900, picture_margin = 12, panel_height = 260;
constexpr const char* empty_text = "nothing to draw";

struct Extent {
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
  void take(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  bool is_empty() const { return most < least; }
};

// Returns the number as it is drawn: differences of larger ones are no doubles, and smaller ones have no place on a logarithmic axis.
double drawn(double value) {
  constexpr double largest = 1e300, smallest = 1e-300;
  return std::abs(value) < smallest ? 0 : std::clamp(value, -largest, largest);
}

// Calls f(x, y) for each point that is finite.
template <typename F>
void each_point(const ChartLine& line, F&& f) {
  for (const auto& [x, y] : line.points)
    if (std::isfinite(x) && std::isfinite(y)) f(x, drawn(y));
}

ChartAxis x_axis(const LineChart& chart) {
  Extent all;
  for (const ChartPanel& panel : chart.panels)
    for (const ChartLine& line : panel.lines) each_point(line, [&](double x, double) { all.take(x); });
  if (all.is_empty()) return {};
  constexpr double early = 0.1;  // a training that begins at step 1 has an axis from 0 on
  const double first = all.least > 0 && all.least <= early * all.most ? 0 : all.least;
  return linear_axis(first, all.most, all.most < 1e7 ? 8 : 4, true);
}

// The axis of a panel, with some room above and below the lines. None: it has no point.
std::optional<ChartAxis> y_axis(const ChartPanel& panel) {
  constexpr double decades = 100, room = 0.05;
  Extent all;
  for (const ChartLine& line : panel.lines) each_point(line, [&](double, double y) { all.take(y); });
  if (all.is_empty()) return std::nullopt;
  if (all.least > 0 && all.most / decades > all.least) {
    const double more = room * (std::log(all.most) - std::log(all.least));  // their quotient may be too great for a double
    const double least = std::exp(std::log(all.least) - more), most = std::exp(std::log(all.most) + more);
    return logarithmic_axis(std::max(least, std::numeric_limits<double>::min()), std::min(most, std::numeric_limits<double>::max()));
  }
  const double more = room * (all.most - all.least);
  return linear_axis(all.least >= 0 ? std::max(0.0, all.least - more) : all.least - more, all.most + more, 6);
}

std::string label_text(const ChartPanel& panel, const ChartAxis& axis) {
  return axis.is_logarithmic ? fmt::format("{} (logarithmic)", panel.label) : panel.label;
}

// The lines of one panel, within a frame of the picture.
class PanelPicture {
 public:
  PanelPicture(Svg& svg, const ChartPanel& panel, const ChartAxis& x, double left, double top)
      : svg_(svg), panel_(panel), x_(x), y_(y_axis(panel)), left_(left), top_(top + 24), bottom_(top + panel_height - 22) {}

  void draw() {
    if (!y_) {
      svg_.text((left_ + right_) / 2, (top_ + bottom_) / 2, fmt::format("{}: {}", panel_.label, empty_text), Anchor::middle);
      return;
    }
    draw_axes();
    draw_legend();
    for (size_t i = 0; i < panel_.lines.size(); ++i) draw_line(panel_.lines[i], i);
  }

 private:
  static std::string series(size_t i, const char* also = "") { return fmt::format("series{} {}", i % 6, also); }
  double x(double value) const { return left_ + x_.place(value) * (right_ - left_); }
  double y(double value) const { return bottom_ - y_->place(value) * (bottom_ - top_); }

  void draw_axes() {
    for (const ChartAxis::Tick& tick : y_->ticks) {
      svg_.line(left_, y(tick.value), right_, y(tick.value), "grid");
      svg_.text(left_ - 7, y(tick.value) + 4, tick.text, Anchor::end);
    }
    double last = 0;  // where the text before ends
    for (const ChartAxis::Tick& tick : x_.ticks) {
      svg_.line(x(tick.value), top_, x(tick.value), bottom_, "grid");
      const double half = text_width(tick.text) / 2;
      if (x(tick.value) - half < last || x(tick.value) + half > picture_width - 2) continue;
      svg_.text(x(tick.value), bottom_ + 17, tick.text, Anchor::middle);
      last = x(tick.value) + half + 4;
    }
    svg_.line(left_, top_, left_, bottom_, "axis");
    svg_.line(left_, bottom_, right_, bottom_, "axis");
    svg_.upward_text(16, (top_ + bottom_) / 2, label_text(panel_, *y_));
  }

  void draw_legend() {
    double at = left_;
    for (size_t i = 0; i < panel_.lines.size(); ++i) {
      std::optional<double> last;
      each_point(panel_.lines[i], [&](double, double y) { last = y; });
      if (!last) continue;
      const std::string name = fmt::format("{}, last {:.4g}", fitting_text(panel_.lines[i].name, 260), *last);
      if (at + 28 + text_width(name) > right_) continue;
      svg_.line(at, top_ - 12, at + 20, top_ - 12, series(i, "thick"));
      svg_.text(at + 26, top_ - 8, name);
      at += 26 + text_width(name) + 18;
    }
  }

  // Dots where a line has few points.
  void draw_line(const ChartLine& line, size_t i) {
    constexpr size_t few = 64;
    std::string places;
    each_point(line, [&](double at, double value) { places += fmt::format("{},{} ", coordinate(x(at)), coordinate(y(value))); });
    if (places.empty()) return;
    places.pop_back();
    svg_.polyline(places, series(i));
    if (line.points.size() > few) return;
    each_point(line, [&](double at, double value) {
      svg_.circle(x(at), y(value), 2.5, series(i, "dot"), fmt::format("{} {}: {}", line.name, shortest(at), shortest(value)));
    });
  }

  Svg& svg_;
  const ChartPanel& panel_;
  const ChartAxis& x_;
  const std::optional<ChartAxis> y_;
  const double left_, top_, bottom_, right_ = picture_width - 2 * picture_margin;
};

// The characters of one panel.
class PanelText {
 public:
  PanelText(const ChartPanel& panel, const ChartAxis& x, const ChartAxis& y, size_t columns, size_t rows)
      : panel_(panel), x_(x), y_(y), columns_(columns), rows_(rows), cells_(rows, std::string(columns, ' ')) {}

  std::string text(size_t left) && {
    for (size_t i = 0; i < panel_.lines.size(); ++i) draw(panel_.lines[i], marks[i % marks.size()]);
    std::string out = label_text(panel_, y_);
    for (size_t i = 0; i < panel_.lines.size(); ++i)
      if (!panel_.lines[i].points.empty()) out += fmt::format("   {} {}", marks[i % marks.size()], printable_line(panel_.lines[i].name));
    out += '\n';
    std::vector<std::string> labels(rows_);
    for (const ChartAxis::Tick& tick : y_.ticks) labels[row(tick.value)] = tick.text;
    for (size_t r = 0; r < rows_; ++r) {
      std::string line = fmt::format("{:>{}} |{}", labels[r], left, cells_[r]);
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    return out;
  }

 private:
  static constexpr std::string_view marks = "*o+x#@";
  size_t row(double value) const {
    const double place = std::clamp(1 - y_.place(value), 0.0, 1.0);
    return static_cast<size_t>(std::lround(place * static_cast<double>(rows_ - 1)));
  }
  size_t column(double value) const {
    return static_cast<size_t>(std::lround(std::clamp(x_.place(value), 0.0, 1.0) * static_cast<double>(columns_ - 1)));
  }

  // Marks each column that has points of the line, at their mean.
  void draw(const ChartLine& line, char mark) {
    std::vector<std::pair<double, size_t>> sums(columns_);
    each_point(line, [&](double at, double value) {
      sums[column(at)].first += value;
      ++sums[column(at)].second;
    });
    for (size_t c = 0; c < columns_; ++c)
      if (sums[c].second > 0) cells_[row(sums[c].first / static_cast<double>(sums[c].second))][c] = mark;
  }

  const ChartPanel& panel_;
  const ChartAxis &x_, &y_;
  const size_t columns_, rows_;
  std::vector<std::string> cells_;
};

}  // namespace

std::string line_chart_svg(const LineChart& chart) {
  Svg svg(picture_width);
  const ChartAxis x = x_axis(chart);
  double left = 0;
  for (const ChartPanel& panel : chart.panels)
    if (const auto y = y_axis(panel))
      for (const ChartAxis::Tick& tick : y->ticks) left = std::max(left, text_width(tick.text));
  left += 40;
  svg.text(left, 24, fitting_text(chart.title, picture_width - left - picture_margin, 14), Anchor::start, "title");
  double top = 32;
  for (const ChartPanel& panel : chart.panels) {
    PanelPicture(svg, panel, x, left, top).draw();
    top += panel_height;
  }
  svg.text((left + picture_width - 2 * picture_margin) / 2, top + 14, chart.x_label, Anchor::middle);
  return std::move(svg).finish(top + 26, chart.title, "curve");
}

std::string line_chart_text(const LineChart& chart, size_t columns, size_t rows) {
  const ChartAxis x = x_axis(chart);
  size_t left = 0;
  for (const ChartPanel& panel : chart.panels)
    if (const auto y = y_axis(panel))
      for (const ChartAxis::Tick& tick : y->ticks) left = std::max(left, tick.text.size());
  const size_t plot = columns > left + 22 ? columns - left - 2 : 20;
  std::string out = printable_line(chart.title) + "\n";
  for (const ChartPanel& panel : chart.panels) {
    const auto y = y_axis(panel);
    out += y ? PanelText(panel, x, *y, plot, rows).text(left) : fmt::format("{}: {}\n", panel.label, empty_text);
  }
  out += fmt::format("{:>{}} +{}\n", "", left, std::string(plot, '-'));
  std::string ticks(left + 2, ' ');
  for (const ChartAxis::Tick& tick : x.ticks) {
    const auto at = left + 2 + static_cast<size_t>(std::lround(x.place(tick.value) * static_cast<double>(plot - 1)));
    const size_t begin = at > tick.text.size() / 2 ? at - tick.text.size() / 2 : 0;
    if (begin < ticks.size() + (ticks.size() > left + 2 ? 1 : 0) || begin + tick.text.size() + 2 + chart.x_label.size() > columns) continue;
    ticks.resize(begin, ' ');
    ticks += tick.text;
  }
  return fmt::format("{}{}  {}\n", out, ticks, chart.x_label);
}

}  // namespace heddle::tool
