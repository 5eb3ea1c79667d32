#include "charts/chart_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace heddle::tool {
namespace {

// Returns 1, 2 or 5 times a power of ten, the least that is no smaller.
double round_up(double number) {
  const double power = std::pow(10, std::floor(std::log10(number)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= number * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

// Returns the number with as many digits as tell it from its neighbours, `step` away.
std::string tick_text(double value, double step, double largest) {
  constexpr double too_long = 1e6, too_fine = 1e-5;
  const auto digits_of = [](double number) { return static_cast<int>(std::floor(std::log10(number) + 1e-9)); };
  if (value == 0) return "0";
  if (largest < too_long && step >= too_fine) return fmt::format("{:.{}f}", value, std::max(0, -digits_of(step)));
  return fmt::format("{:.{}e}", value, std::max(0, digits_of(std::abs(value)) - digits_of(step)));
}

}  // namespace

double ChartAxis::place(double value) const {
  if (is_logarithmic) return (std::log(value) - std::log(least)) / (std::log(most) - std::log(least));
  return (value - least) / (most - least);
}

ChartAxis linear_axis(double least, double most, int count, bool whole) {
  ChartAxis axis;
  if (!(most - least > std::abs(most) * 1e-9)) {  // one number, or no two that differ in what is written
    const double around = whole ? 1 : least == 0 ? 1 : std::abs(least) / 10;
    least -= around;
    most += around;
  }
  axis.least = least;
  axis.most = most;
  const double apart = round_up((most - least) / count), step = whole ? std::max(1.0, apart) : apart;
  const double largest = std::max(std::abs(least), std::abs(most)), slack = step * 1e-6;
  for (double i = std::ceil((least - slack) / step); i * step <= most + slack; ++i) {
    const double value = i == 0 ? 0 : i * step;  // not -0
    axis.ticks.push_back({value, whole ? fmt::format("{:.0f}", value) : tick_text(value, step, largest)});
  }
  return axis;
}

ChartAxis byte_axis(int64_t most, int count) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  ChartAxis axis;
  axis.least = 0;
  axis.most = std::max<double>(1, static_cast<double>(most));
  double unit = 1;
  size_t power = 0;
  for (; axis.most >= 1024 * unit && power + 1 < std::size(units); ++power) unit *= 1024;
  // Ticks are powers of two of the unit where there are few of it, else 1, 2 or 5 times a power of ten: 3 MiB has
  // ticks at 0.5 MiB, and none at 0.6.
  const double apart =
      axis.most / unit < 8 ? std::exp2(std::ceil(std::log2(axis.most / unit / count))) : round_up(axis.most / unit / count);
  const double step = power == 0 ? std::max(1.0, std::ceil(apart)) : apart;
  for (double i = 0; i * step * unit <= axis.most; ++i)
    axis.ticks.push_back({i * step * unit, fmt::format("{:g} {}", i * step, units[power])});
  return axis;
}

ChartAxis logarithmic_axis(double least, double most) {
  ChartAxis axis;
  axis.is_logarithmic = true;
  axis.least = least;
  axis.most = most;
  constexpr double few = 4;  // decades, in which 2 and 5 have room
  constexpr int max_ticks = 9;
  const double first = std::floor(std::log10(least)), last = std::ceil(std::log10(most)), every = std::ceil((last - first) / max_ticks);
  for (double power = first; power <= last; power += every)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10, power);
      if (factor > 1 && last - first > few) break;
      if (value >= least * (1 - 1e-9) && value <= most * (1 + 1e-9)) axis.ticks.push_back({value, fmt::format("{:g}", value)});
    }
  return axis;
}

}  // namespace heddle::tool
