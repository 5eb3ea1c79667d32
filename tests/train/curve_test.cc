// The picture of a training: what it shows of its numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "commands/train/training_curves.h"

namespace heddle::tool {
namespace {

struct Drawn {
  explicit Drawn(const TrainingCurves& curves, const std::string& title = "net.heddle")
      : svg(line_chart_svg(training_chart(title, "loss", curves))) {}
  bool has(const std::string& part) const { return svg.find(part) != std::string::npos; }
  std::string svg;
};

TrainingCurves falling(double factor, double tests) {
  TrainingCurves lines;
  for (int64_t step = 1; step <= 100; ++step) lines.loss.add(step, 4 * std::pow(factor, step));
  for (int64_t step = 10; tests > 0 && step <= 100; step += 10) lines.add_test("loss", step, tests);
  return lines;
}

TEST(LossCurve, NamesItsAxesAndLines) {
  const Drawn both(falling(0.99, 3));
  for (const char* const part : {">net.heddle<", ">step<", ">loss<", ">training loss, last 1.464<", ">test loss, last 3<", ">0<", ">20<",
                                 ">100<", ">2.0<", "<circle"})
    EXPECT_TRUE(both.has(part)) << part << both.svg;
  const Drawn one(falling(0.99, 0));
  EXPECT_FALSE(one.has(">test loss,"));
  EXPECT_FALSE(one.has("<circle")) << "a line of many points has no dots";
}

TEST(LossCurve, IsLogarithmicWherePositiveLossesSpanMoreThanTwoDecades) {
  EXPECT_TRUE(Drawn(falling(0.9, 3)).has(">loss (logarithmic)<"));
  EXPECT_FALSE(Drawn(falling(0.97, 3)).has("logarithmic")) << "a factor of 20";
  TrainingCurves zero = falling(0.9, 3);
  zero.loss.add(101, 0);
  EXPECT_FALSE(Drawn(zero).has("logarithmic"));
  EXPECT_FALSE(Drawn(zero).has("-0.")) << "losses that are not negative have an axis from 0 on";
}

TEST(LossCurve, LeavesOutWhatIsNotFinite) {
  TrainingCurves lines = falling(0.99, 3);
  lines.loss.add(101, std::numeric_limits<double>::infinity());
  lines.add_test("loss", 101, std::numeric_limits<double>::quiet_NaN());
  const Drawn drawn(lines);
  EXPECT_FALSE(drawn.has("inf"));
  EXPECT_FALSE(drawn.has("nan"));
  TrainingCurves none;
  none.loss.add(1, std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(Drawn(none).has(">loss: nothing to draw<"));
  EXPECT_TRUE(Drawn(TrainingCurves()).has(">loss: nothing to draw<"));
}

TEST(LossCurve, ShowsASingleStep) {
  TrainingCurves lines;
  lines.loss.add(1, 0.25);
  EXPECT_TRUE(Drawn(lines).has("<circle")) << "a line of one point is not seen";
}

TEST(LossCurve, WritesAnyTitleAsText) {
  EXPECT_TRUE(Drawn(falling(0.99, 0), "a<b>&\"c\".json").has(">a&lt;b&gt;&amp;&quot;c&quot;.json<"));
  EXPECT_TRUE(Drawn(falling(0.99, 0), std::string(300, 'x')).has("xxx...<")) << "there is no room for it";
}

// Means of tests from 0 to 1 share a panel; others, the rate and the norm have one each, where they change.
TEST(TrainingChart, HasAPanelForWhatSharesAnAxis) {
  TrainingCurves curves = falling(0.99, 3);
  for (int64_t step = 10; step <= 100; step += 10) {
    curves.add_test("accuracy", step, 0.5 + 0.001 * static_cast<double>(step));
    curves.add_test("top5", step, 0.9);
    curves.add_test("perplexity", step, 20);
    curves.learning_rate.add(step, 0.1);
    curves.gradient_norm.add(step, static_cast<double>(step));
  }
  const LineChart chart = training_chart("net", "loss", curves);
  std::vector<std::string> labels;
  for (const ChartPanel& panel : chart.panels) labels.push_back(panel.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"loss", "test means", "test perplexity", "gradient norm"})) << "the rate is constant";
  EXPECT_EQ(chart.panels[0].lines.size(), 2u);
  EXPECT_EQ(chart.panels[1].lines.size(), 2u);
}

TEST(TrainingChart, GoesToATerminalInCharacters) {
  const std::string text = line_chart_text(training_chart("net.heddle", "loss", falling(0.99, 3)), 60, 8);
  EXPECT_EQ(text.rfind("net.heddle\nloss   * training loss   o test loss\n", 0), 0u) << text;
  for (size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
    EXPECT_LE(text.find('\n', begin) - begin, 60u) << text.substr(begin);
  EXPECT_NE(text.find("| *"), std::string::npos) << text;
  EXPECT_NE(text.find("step\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace heddle::tool
