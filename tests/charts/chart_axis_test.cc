// The axes of charts: where their ticks are.
#include "charts/chart_axis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace heddle::tool {
namespace {

std::vector<std::string> texts(const ChartAxis& axis) {
  std::vector<std::string> all;
  for (const ChartAxis::Tick& tick : axis.ticks) all.push_back(tick.text);
  return all;
}

using Texts = std::vector<std::string>;

TEST(ChartAxis, HasTicksAtRoundNumbers) {
  EXPECT_EQ(texts(linear_axis(0, 1500, 8, true)), (Texts{"0", "200", "400", "600", "800", "1000", "1200", "1400"}));
  EXPECT_EQ(texts(linear_axis(1, 5, 8, true)), (Texts{"1", "2", "3", "4", "5"})) << "steps are whole numbers";
  EXPECT_EQ(texts(linear_axis(0.012, 0.049, 6)), (Texts{"0.02", "0.03", "0.04"}));
  EXPECT_EQ(texts(linear_axis(-1.1, 1.1, 6)), (Texts{"-1.0", "-0.5", "0", "0.5", "1.0"}));
  EXPECT_EQ(texts(linear_axis(0.99995, 1.00005, 4)), (Texts{"0.99995", "1.00000", "1.00005"}));
  EXPECT_EQ(texts(linear_axis(2e7, 5e7, 4)), (Texts{"2e+07", "3e+07", "4e+07", "5e+07"}));
  EXPECT_EQ(texts(linear_axis(1.2e-9, 2.1e-9, 4)), (Texts{"1.5e-09", "2.0e-09"}));
  EXPECT_EQ(texts(linear_axis(3000000000, 4000000000, 4, true)), (Texts{"3000000000", "3500000000", "4000000000"}));
}

// One number has room on either side.
TEST(ChartAxis, ShowsASingleNumber) {
  for (const double number : {0.0, 2.5, -3.0, 1e-300, 1e300}) {
    const ChartAxis axis = linear_axis(number, number, 6);
    EXPECT_LT(axis.least, number);
    EXPECT_GT(axis.most, number);
    EXPECT_NEAR(axis.place(number), 0.5, 1e-9);
    EXPECT_FALSE(axis.ticks.empty()) << number;
  }
  EXPECT_EQ(texts(linear_axis(7, 7, 8, true)), (Texts{"6", "7", "8"}));
}

TEST(ChartAxis, OfDecadesIsLogarithmic) {
  const ChartAxis few = logarithmic_axis(0.03, 4);
  EXPECT_EQ(texts(few), (Texts{"0.05", "0.1", "0.2", "0.5", "1", "2"}));
  EXPECT_NEAR(few.place(std::sqrt(0.03 * 4)), 0.5, 1e-12);
  EXPECT_EQ(texts(logarithmic_axis(2e-6, 20)), (Texts{"1e-05", "0.0001", "0.001", "0.01", "0.1", "1", "10"}));
  const ChartAxis many = logarithmic_axis(1e-300, 1e300);
  EXPECT_LE(many.ticks.size(), 10u);
  EXPECT_GE(many.ticks.size(), 5u);
}

TEST(ChartAxis, OfBytesHasRoundNumbersOfAUnit) {
  EXPECT_EQ(texts(byte_axis(700000, 6)), (Texts{"0 KiB", "200 KiB", "400 KiB", "600 KiB"}));
  EXPECT_EQ(texts(byte_axis(int64_t{12} << 20, 6)), (Texts{"0 MiB", "2 MiB", "4 MiB", "6 MiB", "8 MiB", "10 MiB", "12 MiB"}));
  EXPECT_EQ(texts(byte_axis(3 << 20, 6)), (Texts{"0 MiB", "0.5 MiB", "1 MiB", "1.5 MiB", "2 MiB", "2.5 MiB", "3 MiB"}));
  EXPECT_EQ(texts(byte_axis(3, 6)), (Texts{"0 B", "1 B", "2 B", "3 B"}));
  EXPECT_EQ(texts(byte_axis(0, 6)), (Texts{"0 B", "1 B"}));
  EXPECT_LE(byte_axis(INT64_MAX, 6).ticks.size(), 10u);
}

}  // namespace
}  // namespace heddle::tool
