#include "charts/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/text.h"
#include "charts/chart_axis.h"
#include "charts/svg.h"
#include "charts/timeline.h"

namespace heddle::tool {
namespace {

constexpr int max_ranges = 20, min_ranges = 5;

// Nanoseconds in the unit of the largest, for the ticks of an axis.
struct Unit {
  double ns = 1;
  const char* name = "ns";
  explicit Unit(double largest) {
    if (largest >= 1e9)
      ns = 1e9, name = "s";
    else if (largest >= 1e6)
      ns = 1e6, name = "ms";
    else if (largest >= 1e3)
      ns = 1e3, name = "us";
  }
};

}  // namespace

Histogram histogram_of(std::vector<double> values) {
  constexpr double share = 0.95;
  std::sort(values.begin(), values.end());
  const double first = values.front(), last = values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
  const int ranges = std::clamp(static_cast<int>(2 * std::sqrt(static_cast<double>(values.size()))), min_ranges, max_ranges);
  const ChartAxis axis = linear_axis(first, last, ranges);
  Histogram made;
  made.width = axis.ticks.size() > 1 ? axis.ticks[1].value - axis.ticks[0].value : 1;
  made.from = std::floor(first / made.width) * made.width;
  made.counts.resize(static_cast<size_t>(std::floor((last - made.from) / made.width)) + 1);
  for (const double value : values) {
    const auto range = static_cast<size_t>(std::floor((value - made.from) / made.width));
    if (range < made.counts.size())
      ++made.counts[range];
    else
      ++made.above;
  }
  return made;
}

std::string histogram_text(const Histogram& histogram, size_t columns) {
  const Unit unit(histogram.from + histogram.width * static_cast<double>(histogram.counts.size()));
  const int digits = std::clamp(static_cast<int>(std::ceil(-std::log10(histogram.width / unit.ns) - 1e-9)), 0, 6);
  const int64_t largest = std::max<int64_t>(1, *std::max_element(histogram.counts.begin(), histogram.counts.end()));
  const size_t room = columns > 40 ? columns - 32 : 8;
  std::string out;
  const auto line = [&](const std::string& range, int64_t count) {
    const auto bar = static_cast<size_t>(
        std::lround(static_cast<double>(room) * static_cast<double>(std::min(count, largest)) / static_cast<double>(largest)));
    out += fmt::format("{}  {:>20} {:>7}{}{}", out.empty() ? "" : "\n", range, count, bar > 0 ? " " : "", std::string(bar, '#'));
  };
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    const double begin = histogram.from + static_cast<double>(i) * histogram.width;
    line(fmt::format("{:.{}f} - {:.{}f} {}", begin / unit.ns, digits, (begin + histogram.width) / unit.ns, digits, unit.name),
         histogram.counts[i]);
  }
  if (histogram.above > 0) line("above", histogram.above);
  return out;
}

std::string histogram_svg(const std::string& title, const std::vector<NamedHistogram>& histograms) {
  constexpr double picture_width = 900, panel_height = 200, left = 70, right = picture_width - 30;
  double from = 0, to = 1;
  for (const NamedHistogram& named : histograms) {
    const Histogram& h = named.histogram;
    const double end = h.from + h.width * static_cast<double>(h.counts.size());
    from = &named == histograms.data() ? h.from : std::min(from, h.from);
    to = std::max(to, end);
  }
  const Unit unit(to);
  const ChartAxis axis = linear_axis(from / unit.ns, to / unit.ns, 10);
  const auto x = [&](double ns) { return left + axis.place(ns / unit.ns) * (right - left); };
  Svg svg(picture_width);
  svg.text(left, 22, fitting_text(title, right - left, 14), Anchor::start, "title");
  double top = 34;
  for (const NamedHistogram& named : histograms) {
    const Histogram& h = named.histogram;
    const double bottom = top + panel_height - 30, plot = top + 20;
    const ChartAxis counts =
        linear_axis(0, 1.1 * static_cast<double>(std::max<int64_t>(1, *std::max_element(h.counts.begin(), h.counts.end()))), 4, true);
    const auto y = [&](double count) { return bottom - counts.place(count) * (bottom - plot); };
    svg.text(
        left, top + 12,
        fitting_text(h.above > 0 ? fmt::format("{}; {} runs took longer than is shown", named.name, h.above) : named.name, right - left));
    for (const ChartAxis::Tick& tick : counts.ticks) {
      svg.line(left, y(tick.value), right, y(tick.value), "grid");
      svg.text(left - 7, y(tick.value) + 4, tick.text, Anchor::end);
    }
    for (size_t i = 0; i < h.counts.size(); ++i) {
      const double begin = h.from + static_cast<double>(i) * h.width, count = static_cast<double>(h.counts[i]);
      if (h.counts[i] > 0)
        svg.rectangle(x(begin), y(count), x(begin + h.width) - x(begin), bottom - y(count), "value box",
                      fmt::format("{} - {}: {}", duration_text(begin), duration_text(begin + h.width), counted(h.counts[i], "run")));
    }
    svg.upward_text(16, (plot + bottom) / 2, "runs");
    svg.line(x(named.median), plot, x(named.median), bottom, "peak");
    svg.line(left, bottom, right, bottom, "axis");
    top += panel_height;
  }
  const double bottom = top - 30;
  for (const ChartAxis::Tick& tick : axis.ticks) {
    const double at = left + axis.place(tick.value) * (right - left);
    if (at + text_width(tick.text) / 2 > right - text_width("xx")) continue;
    svg.text(at, bottom + 17, tick.text, Anchor::middle);
  }
  svg.text(right, bottom + 17, unit.name, Anchor::end);
  svg.line(left, bottom + 34, left + 20, bottom + 34, "peak");
  svg.text(left + 26, bottom + 38, "median");
  return std::move(svg).finish(bottom + 50, title, "histogram");
}

}  // namespace heddle::tool
