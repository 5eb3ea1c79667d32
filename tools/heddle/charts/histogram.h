// How often values fall into ranges of the same width, as characters and as a picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::tool {

struct Histogram {
  double from = 0, width = 1;   // of the first range, and of each
  std::vector<int64_t> counts;  // by range
  int64_t above = 0;            // values after the last range
};

// Returns at most about twenty ranges at round numbers, from the smallest value to where one in twenty is larger: outliers are counted as
// `above`, lest they make all others one range. REQUIRES: at least one value, all of them finite.
Histogram histogram_of(std::vector<double> values);

// Returns a line for each range with its count and a bar, at most `columns` characters wide; values are nanoseconds.
std::string histogram_text(const Histogram& histogram, size_t columns = 80);

struct NamedHistogram {
  std::string name;
  Histogram histogram;
  double median = 0;
};

// Returns an SVG of several histograms of nanoseconds below each other, with a line at each median.
std::string histogram_svg(const std::string& title, const std::vector<NamedHistogram>& histograms);

}  // namespace heddle::tool
