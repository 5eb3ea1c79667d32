// The losses of a training as a picture.
#pragma once

#include <string>
#include <vector>

#include "heddle/status.h"

namespace heddle::tool {

struct LossPoint {
  int64_t step = 0;
  double loss = 0;
};

// Keeps the losses of any number of steps in bounded memory: the first, the last, and between them every nth, where n doubles as they
// become many.
class Losses {
 public:
  void add(int64_t step, double loss);
  int64_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  // The first of those that were added; must not be empty.
  const LossPoint& first() const { return kept_.front(); }
  const LossPoint& last() const { return last_; }
  std::vector<LossPoint> points() const;

 private:
  static constexpr size_t max_kept = 4096;  // a picture has fewer columns
  std::vector<LossPoint> kept_;
  LossPoint last_;
  int64_t count_ = 0, every_ = 1;
};

// The losses of the steps, and those of the tests.
struct LossLines {
  Losses steps, tests;
};

// Writes an SVG of both lines, over axes with ticks at round numbers; that of the losses is logarithmic where they are positive and span
// more than two decades. Losses that are not finite are left out. Errors: file_unwritable.
Status write_loss_curve(const std::string& file, const std::string& title, const LossLines& losses);

}  // namespace heddle::tool
