// An axis of a chart: where numbers are on it, and which of them are written at it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::tool {

struct ChartAxis {
  struct Tick {
    double value = 0;
    std::string text;
  };
  double least = 0, most = 1;  // its ends: least < most
  bool is_logarithmic = false;
  std::vector<Tick> ticks;  // at round numbers, 1, 2 or 5 times a power of ten apart; or, of a logarithmic one, at such numbers
  // Returns where a number is, from 0 at `least` to 1 at `most`.
  double place(double value) const;
};

// An axis for numbers from `least` to `most`, with about `count` ticks. `whole`: these are whole numbers. REQUIRES: finite numbers, least
// <= most.
ChartAxis linear_axis(double least, double most, int count, bool whole = false);
// An axis for bytes from 0 to `most`, with about `count` ticks at round numbers of the unit in which they are written: "256 KiB".
ChartAxis byte_axis(int64_t most, int count);
// REQUIRES: 0 < least < most.
ChartAxis logarithmic_axis(double least, double most);

}  // namespace heddle::tool
