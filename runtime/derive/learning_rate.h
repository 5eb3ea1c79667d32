// The learning rate of a training net: a number that the net computes from its step counter, in each run.
//
// With n the number of steps done before, and a warm-up of w steps in which the rate rises in a line from 1/w of it:
// - constant: rate
// - step(every, gamma): rate x gamma^floor(n / every)
// - exponential(gamma): rate x gamma^n
// - polynomial(steps, power, end): end + (rate - end) x (1 - min(n, steps) / steps)^power
// - cosine(steps, end): end + (rate - end) x (1 + cos(pi x min(n, steps) / steps)) / 2 (Loshchilov and Hutter, ICLR 2017)
// as in PyTorch's StepLR, ExponentialLR, PolynomialLR and CosineAnnealingLR.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/status.h"

namespace heddle {

class LearningRate {
 public:
  LearningRate() = default;
  // `schedule`: one of the above as text, arguments by place; power 1 and end 0 may be left out. Errors: syntax, with what can be written;
  // invalid_argument for numbers that make no rate.
  static Result<LearningRate> parse(double rate, std::string_view schedule, int64_t warm_up = 0);
  // Whether it is the same in every step.
  bool is_constant() const { return varying_.empty() && warm_up_ == 0; }
  double rate() const { return rate_; }
  // A pointwise program (heddle/expression.h) of x0, the number of steps before.
  std::string program() const;

 private:
  double rate_ = 0.01;
  int64_t warm_up_ = 0;
  std::string varying_;  // of x0; empty: constant
};

}  // namespace heddle
