#include "commands/train/loss_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/file.h"
#include "base/text/text.h"

namespace heddle::tool {
namespace {

constexpr double width = 640, height = 360, left = 60, bottom = 40, top = 30, right = 20;

struct Range {
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
  void take(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  // Position from 0 to 1; if there is only one value, the middle.
  double place(double value) const { return most > least ? (value - least) / (most - least) : 0.5; }
};

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

Status write_loss_curve(const std::string& file, const std::string& title, const Losses& steps, const Losses& tests) {
  Range x, y;
  for (const Losses* const losses : {&steps, &tests})
    for (const LossPoint& p : losses->points()) {
      if (!std::isfinite(p.loss)) continue;
      x.take(static_cast<double>(p.step));
      y.take(p.loss);
    }
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n<text x=\"{2}\" y=\"18\">{3}</text>\n",
      width, height, left, escaped(printable(title)));
  const auto line = [&](const Losses& losses, const char* color) {
    svg += fmt::format("<polyline fill=\"none\" stroke=\"{}\" points=\"", color);
    for (const LossPoint& p : losses.points())
      if (std::isfinite(p.loss))
        svg += fmt::format("{:.1f},{:.1f} ", left + x.place(static_cast<double>(p.step)) * (width - left - right),
                           height - bottom - y.place(p.loss) * (height - top - bottom));
    svg += "\"/>\n";
  };
  if (x.most >= x.least) {
    line(steps, "steelblue");
    line(tests, "darkorange");
    svg += fmt::format("<text x=\"4\" y=\"{:.1f}\">{:.4g}</text>\n<text x=\"4\" y=\"{:.1f}\">{:.4g}</text>\n", top + 10, y.most,
                       height - bottom, y.least);
    svg += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\">step {:.0f}</text>\n<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.0f}</text>\n", left,
        height - 14, x.least, width - right, height - 14, x.most);
  }
  svg += "</svg>\n";
  HEDDLE_TRY(FileReplacement out, FileReplacement::create(file));
  HEDDLE_CHECK(out.write(svg));
  return out.commit();
}

}  // namespace heddle::tool
