// Histograms: every value is in one range, and outliers do not hide the others.
#include "charts/histogram.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "charts/drawn_boxes.h"

namespace heddle::tool {
namespace {

int64_t total(const Histogram& h) {
  return std::accumulate(h.counts.begin(), h.counts.end(), h.above);
}

TEST(Histogram, CountsEachValueOnce) {
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(20000 + i * 7 % 1000);
  values.push_back(9e9);
  const Histogram h = histogram_of(values);
  EXPECT_EQ(total(h), 1001);
  EXPECT_EQ(h.width, 50);
  EXPECT_EQ(h.from, 20000);
  EXPECT_GE(h.counts.size(), 10u);
  EXPECT_LE(h.counts.size(), 40u);
  EXPECT_GE(h.above, 1);
  for (const std::vector<double>& few : {std::vector<double>{5}, std::vector<double>{5, 5, 5}, std::vector<double>{0, 1e12}})
    EXPECT_EQ(total(histogram_of(few)), static_cast<int64_t>(few.size()));
}

TEST(Histogram, IsALinePerRange) {
  Histogram h;
  h.from = 1000;
  h.width = 500;
  h.counts = {4, 0, 1};
  h.above = 2;
  EXPECT_EQ(histogram_text(h, 40),
            "          1.0 - 1.5 us       4 ########\n"
            "          1.5 - 2.0 us       0\n"
            "          2.0 - 2.5 us       1 ##\n"
            "                 above       2 ####");
}

TEST(Histogram, IsDrawnWithItsMedian) {
  std::vector<double> values;
  for (int i = 0; i < 300; ++i) values.push_back(1e6 + 1000.0 * i);
  const std::string svg = histogram_svg("Times", {{"1 threads", histogram_of(values), 1150000}, {"2 threads", histogram_of({2e6}), 2e6}});
  EXPECT_EQ(overlaps(svg, 900), std::vector<std::string>());
  for (const char* const text : {">Times<", ">2 threads<", ">median<", ">ms<"}) EXPECT_NE(svg.find(text), std::string::npos) << text;
}

}  // namespace
}  // namespace heddle::tool
