// The picture of a training: its axes, and what it shows of the losses.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "commands/train/chart_axis.h"
#include "commands/train/loss_curve.h"
#include "load/temporary_folder.h"

namespace heddle::tool {
namespace {

using testing::TemporaryFolder;

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

struct Drawn {
  explicit Drawn(const LossLines& lines, const std::string& title = "net.heddle") {
    const TemporaryFolder folder;
    const std::string file = (folder / "curve.svg").string();
    const Status status = write_loss_curve(file, title, lines);
    EXPECT_TRUE(status.ok()) << status.text();
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    svg = text.str();
  }
  bool has(const std::string& part) const { return svg.find(part) != std::string::npos; }
  std::string svg;
};

LossLines falling(double factor, double tests) {
  LossLines lines;
  for (int64_t step = 1; step <= 100; ++step) lines.steps.add(step, 4 * std::pow(factor, step));
  for (int64_t step = 10; tests > 0 && step <= 100; step += 10) lines.tests.add(step, tests);
  return lines;
}

TEST(LossCurve, NamesItsAxesAndLines) {
  const Drawn both(falling(0.99, 3));
  for (const char* const part :
       {">net.heddle<", ">step<", ">loss<", ">training loss<", ">test loss<", ">0<", ">20<", ">100<", ">2.0<", "<circle"})
    EXPECT_TRUE(both.has(part)) << part << both.svg;
  const Drawn one(falling(0.99, 0));
  EXPECT_FALSE(one.has(">test loss<"));
  EXPECT_FALSE(one.has("<circle")) << "a line of many points has no dots";
}

TEST(LossCurve, IsLogarithmicWherePositiveLossesSpanMoreThanTwoDecades) {
  EXPECT_TRUE(Drawn(falling(0.9, 3)).has(">loss (logarithmic)<"));
  EXPECT_FALSE(Drawn(falling(0.97, 3)).has("logarithmic")) << "a factor of 20";
  LossLines zero = falling(0.9, 3);
  zero.steps.add(101, 0);
  EXPECT_FALSE(Drawn(zero).has("logarithmic"));
  EXPECT_FALSE(Drawn(zero).has("-0.")) << "losses that are not negative have an axis from 0 on";
}

TEST(LossCurve, LeavesOutWhatIsNotFinite) {
  LossLines lines = falling(0.99, 3);
  lines.steps.add(101, std::numeric_limits<double>::infinity());
  lines.tests.add(101, std::numeric_limits<double>::quiet_NaN());
  const Drawn drawn(lines);
  EXPECT_FALSE(drawn.has("inf"));
  EXPECT_FALSE(drawn.has("nan"));
  LossLines none;
  none.steps.add(1, std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(Drawn(none).has(">no losses<"));
  EXPECT_TRUE(Drawn(LossLines()).has(">no losses<"));
}

TEST(LossCurve, ShowsASingleStep) {
  LossLines lines;
  lines.steps.add(1, 0.25);
  EXPECT_TRUE(Drawn(lines).has("<circle")) << "a line of one point is not seen";
}

TEST(LossCurve, WritesAnyTitleAsText) {
  EXPECT_TRUE(Drawn(falling(0.99, 0), "a<b>&\"c\".json").has(">a&lt;b>&amp;\"c\".json<"));
  const Drawn drawn(falling(0.99, 0), std::string(300, 'x') + "/net.heddle");
  EXPECT_TRUE(drawn.has("/net.heddle<"));
  EXPECT_FALSE(drawn.has(std::string(100, 'x'))) << "there is no room for it";
}

}  // namespace
}  // namespace heddle::tool
