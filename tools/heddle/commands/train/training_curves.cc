#include "commands/train/training_curves.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/standard_streams.h"

namespace heddle::tool {
namespace {

ChartLine line_of(const std::string& name, const Series& series) {
  ChartLine line = {name, {}};
  for (const SeriesPoint& p : series.points()) line.points.emplace_back(static_cast<double>(p.step), p.value);
  return line;
}

bool is_share(const Series& series) {
  const std::vector<SeriesPoint> points = series.points();
  return std::all_of(points.begin(), points.end(), [](const SeriesPoint& p) { return p.value >= 0 && p.value <= 1; });
}

bool changes(const Series& series) {
  const std::vector<SeriesPoint> points = series.points();
  return std::any_of(points.begin(), points.end(), [&](const SeriesPoint& p) { return p.value != points.front().value; });
}

}  // namespace

void Series::add(int64_t step, double value) {
  last_ = {step, value};
  if (count_++ % every_ != 0) return;
  kept_.push_back(last_);
  if (kept_.size() < max_kept) return;
  for (size_t i = 0; i < kept_.size() / 2; ++i) kept_[i] = kept_[2 * i];
  kept_.resize(kept_.size() / 2);
  every_ *= 2;
}

std::vector<SeriesPoint> Series::points() const {
  std::vector<SeriesPoint> points = kept_;
  if (!empty() && points.back().step != last_.step) points.push_back(last_);
  return points;
}

void TrainingCurves::add(const TrainingStep& step) {
  loss.add(step.step, step.loss);
  if (step.learning_rate) learning_rate.add(step.step, *step.learning_rate);
  if (step.gradient_norm) gradient_norm.add(step.step, *step.gradient_norm);
}

void TrainingCurves::add(const Evaluation& test) {
  for (const auto& [name, value] : test.means) add_test(name, test.step, value);
}

void TrainingCurves::add_test(const std::string& mean, int64_t step, double value) {
  auto at = std::find_if(tests.begin(), tests.end(), [&](const auto& test) { return test.first == mean; });
  if (at == tests.end()) at = tests.insert(tests.end(), {mean, Series()});
  at->second.add(step, value);
}

LineChart training_chart(const std::string& title, const std::string& loss, const TrainingCurves& curves) {
  ChartPanel losses = {"loss", {line_of("training loss", curves.loss)}}, shares = {"test means", {}};
  std::vector<ChartPanel> others;
  for (const auto& [mean, series] : curves.tests) {
    const std::string name = mean == loss ? "test loss" : fmt::format("test {}", mean);
    ChartLine line = line_of(name, series);
    if (mean == loss)
      losses.lines.push_back(std::move(line));
    else if (is_share(series))
      shares.lines.push_back(std::move(line));
    else
      others.push_back({name, {std::move(line)}});
  }
  LineChart chart = {title, "step", {std::move(losses)}};
  if (!shares.lines.empty()) chart.panels.push_back(std::move(shares));
  for (ChartPanel& panel : others) chart.panels.push_back(std::move(panel));
  if (changes(curves.learning_rate)) chart.panels.push_back({"learning rate", {line_of("learning rate", curves.learning_rate)}});
  if (changes(curves.gradient_norm)) chart.panels.push_back({"gradient norm", {line_of("gradient norm", curves.gradient_norm)}});
  return chart;
}

Status write_training_chart(const std::string& file, const LineChart& chart) {
  return write_output(file, line_chart_svg(chart));
}

}  // namespace heddle::tool
