// The numbers of a training over its steps, and their picture.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "charts/line_chart.h"
#include "heddle/status.h"
#include "heddle/trainer.h"

namespace heddle::tool {

struct SeriesPoint {
  int64_t step = 0;
  double value = 0;
};

// Keeps the numbers of any number of steps in bounded memory: the first, the last, and between them every nth, where n doubles as they
// become many.
class Series {
 public:
  void add(int64_t step, double value);
  int64_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  // The first of those that were added; must not be empty.
  const SeriesPoint& first() const { return kept_.front(); }
  const SeriesPoint& last() const { return last_; }
  std::vector<SeriesPoint> points() const;

 private:
  static constexpr size_t max_kept = 4096;  // a picture has fewer columns
  std::vector<SeriesPoint> kept_;
  SeriesPoint last_;
  int64_t count_ = 0, every_ = 1;
};

struct TrainingCurves {
  Series loss, learning_rate, gradient_norm;
  std::vector<std::pair<std::string, Series>> tests;  // by the name of the mean, in the order of the first evaluation
  void add(const TrainingStep& step);
  void add(const Evaluation& test);
  void add_test(const std::string& mean, int64_t step, double value);
};

// Returns the chart: the losses of steps and tests first, `loss` being the mean of tests that belongs to them; then the other means, those
// from 0 to 1 together; then the learning rate and the norm of the gradients, where they are known and change.
LineChart training_chart(const std::string& title, const std::string& loss, const TrainingCurves& curves);

// Writes the chart as an SVG. Errors: file_unwritable.
Status write_training_chart(const std::string& file, const LineChart& chart);

}  // namespace heddle::tool
