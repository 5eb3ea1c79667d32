#include "commands/train/loss_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/file.h"
#include "base/text/text.h"
#include "commands/train/chart_axis.h"

namespace heddle::tool {
namespace {

constexpr double chart_width = 720, chart_height = 400, chart_top = 52, chart_bottom = 54;
constexpr const char *steps_color = "steelblue", *tests_color = "darkorange";
constexpr double character_width = 7;  // of the widest digits at this size of the font

struct Extent {
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
  void take(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

// Returns the loss as it is drawn: differences of larger ones are no doubles, and smaller ones have no place on a logarithmic axis.
double drawn(double loss) {
  constexpr double largest = 1e300, smallest = 1e-300;
  return std::abs(loss) < smallest ? 0 : std::clamp(loss, -largest, largest);
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

// Returns the axes of steps and of losses, with some room above and below the lines.
std::pair<ChartAxis, ChartAxis> axes_of(const Extent& steps, const Extent& losses) {
  constexpr double decades = 100, room = 0.05, early = 0.1;
  const double first = steps.least > 0 && steps.least <= early * steps.most ? 0 : steps.least;
  const ChartAxis x = linear_axis(first, steps.most, steps.most < 1e7 ? 8 : 4, true);
  if (losses.least > 0 && losses.most > decades * losses.least) {
    const double factor = std::pow(losses.most / losses.least, room);
    return {x, logarithmic_axis(losses.least / factor, losses.most * factor)};
  }
  const double more = room * (losses.most - losses.least);
  return {x, linear_axis(losses.least >= 0 ? std::max(0.0, losses.least - more) : losses.least - more, losses.most + more, 6)};
}

class Picture {
 public:
  Picture(const std::string& title, ChartAxis x, ChartAxis y) : x_(std::move(x)), y_(std::move(y)) {
    size_t longest = 0;
    for (const ChartAxis::Tick& tick : y_.ticks) longest = std::max(longest, tick.text.size());
    left_ = 40 + character_width * static_cast<double>(longest);
    for (const ChartAxis::Tick& tick : x_.ticks)  // half of the last one may stand beyond the axis
      right_ = std::min(right_, chart_width - 4 - character_width * static_cast<double>(tick.text.size()) / 2);
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" "
        "font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
        chart_width, chart_height);
    text(left_, 22, "start", title, " font-size=\"14\"");
  }

  void draw_axes() {
    const double bottom = chart_height - chart_bottom;
    for (const ChartAxis::Tick& tick : y_.ticks) {
      line(left_, y(tick.value), right_, y(tick.value), "#e4e4e4");
      text(left_ - 7, y(tick.value) + 4, "end", tick.text);
    }
    for (const ChartAxis::Tick& tick : x_.ticks) {
      line(x(tick.value), chart_top, x(tick.value), bottom, "#e4e4e4");
      text(x(tick.value), bottom + 17, "middle", tick.text);
    }
    line(left_, chart_top, left_, bottom, "#606060");
    line(left_, bottom, right_, bottom, "#606060");
    text((left_ + right_) / 2, chart_height - 14, "middle", "step");
    const double middle = (chart_top + bottom) / 2;
    text(16, middle, "middle", y_.is_logarithmic ? "loss (logarithmic)" : "loss",
         fmt::format(" transform=\"rotate(-90 16 {:.1f})\"", middle));
  }

  // Draws the line, with dots where it has few points.
  void draw(const Losses& losses, const char* color) {
    constexpr size_t few = 64;
    std::string places, dots;
    const std::vector<LossPoint> points = losses.points();
    for (const LossPoint& p : points) {
      if (!std::isfinite(p.loss)) continue;
      const double at = x(static_cast<double>(p.step));
      places += fmt::format("{:.1f},{:.1f} ", at, y(drawn(p.loss)));
      if (points.size() <= few)
        dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\"/>\n", at, y(drawn(p.loss)), color);
    }
    if (!places.empty())
      svg_ += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" stroke-linejoin=\"round\" points=\"{}\"/>\n{}", color,
                          places, dots);
  }

  // Says what a line is, to the left of what was said before.
  void explain(const Losses& losses, const char* color, const std::string& name) {
    if (losses.empty()) return;
    legend_ -= character_width * static_cast<double>(name.size());
    text(legend_, 40, "start", name);
    svg_ += fmt::format("<line x1=\"{:.1f}\" y1=\"36\" x2=\"{:.1f}\" y2=\"36\" stroke=\"{}\" stroke-width=\"3\"/>\n", legend_ - 28,
                        legend_ - 6, color);
    legend_ -= 44;
  }

  void text(double at_x, double at_y, const char* anchor, const std::string& what, const std::string& more = "") {
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", at_x, at_y, anchor, more, escaped(what));
  }
  std::string finish() && { return std::move(svg_) + "</svg>\n"; }

 private:
  double x(double value) const { return left_ + x_.place(value) * (right_ - left_); }
  double y(double value) const { return chart_height - chart_bottom - y_.place(value) * (chart_height - chart_bottom - chart_top); }
  void line(double x1, double y1, double x2, double y2, const char* color) {
    svg_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2, y2, color);
  }
  const ChartAxis x_, y_;
  std::string svg_;
  double left_ = 0, right_ = chart_width - 24, legend_ = right_;
};

// Returns the end of a title that has no room.
std::string shortened(const std::string& title) {
  constexpr size_t room = 80;  // characters; bytes of one are not parted
  size_t begin = title.size() > room ? title.size() - room : 0;
  while (begin > 0 && begin < title.size() && (static_cast<unsigned char>(title[begin]) & 0xC0U) == 0x80U) ++begin;
  return begin > 0 ? "..." + title.substr(begin) : title;
}

}  // namespace

void Losses::add(int64_t step, double loss) {
  last_ = {step, loss};
  if (count_++ % every_ != 0) return;
  kept_.push_back(last_);
  if (kept_.size() < max_kept) return;
  for (size_t i = 0; i < kept_.size() / 2; ++i) kept_[i] = kept_[2 * i];
  kept_.resize(kept_.size() / 2);
  every_ *= 2;
}

std::vector<LossPoint> Losses::points() const {
  std::vector<LossPoint> points = kept_;
  if (!empty() && points.back().step != last_.step) points.push_back(last_);
  return points;
}

Status write_loss_curve(const std::string& file, const std::string& title, const LossLines& losses) {
  Extent steps, values;
  for (const Losses* const line : {&losses.steps, &losses.tests})
    for (const LossPoint& p : line->points()) {
      if (!std::isfinite(p.loss)) continue;
      steps.take(static_cast<double>(p.step));
      values.take(drawn(p.loss));
    }
  const bool is_empty = steps.most < steps.least;
  auto [x, y] = is_empty ? std::pair(ChartAxis(), ChartAxis()) : axes_of(steps, values);
  Picture picture(shortened(printable_line(title)), std::move(x), std::move(y));
  picture.draw_axes();
  if (is_empty) picture.text(chart_width / 2, chart_height / 2, "middle", "no losses");
  picture.draw(losses.steps, steps_color);
  picture.draw(losses.tests, tests_color);  // on top: it has fewer points
  picture.explain(losses.tests, tests_color, "test loss");
  picture.explain(losses.steps, steps_color, "training loss");
  HEDDLE_TRY(FileReplacement out, FileReplacement::create(file));
  HEDDLE_CHECK(out.write(std::move(picture).finish()));
  return out.commit();
}

}  // namespace heddle::tool
