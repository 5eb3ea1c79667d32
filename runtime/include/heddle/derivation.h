// What is derived from a net and how: gradients of losses, a net that learns by them, the part of it that predicts. Options alone; what
// takes them is in heddle/training.h.
//
// Plain values, with no thread of their own. Names are those of values, inputs and variables in the net that is derived from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/export.h"
#include "heddle/status.h"

namespace heddle {

// The learning rate of a training net: a number that the net computes from its step counter, in each run.
//
// With n the number of steps done before, and a warm-up of w steps in which the rate rises in a line from 1/w of it:
// - constant: rate
// - step(every, gamma): rate x gamma^floor(n / every)
// - exponential(gamma): rate x gamma^n
// - polynomial(steps, power, end): end + (rate - end) x (1 - min(n, steps) / steps)^power
// - cosine(steps, end): end + (rate - end) x (1 + cos(pi x min(n, steps) / steps)) / 2 (Loshchilov and Hutter, ICLR 2017)
// as in PyTorch's StepLR, ExponentialLR, PolynomialLR and CosineAnnealingLR.
class HEDDLE_API LearningRate {
 public:
  // 0.01 in every step.
  LearningRate() = default;
  // `schedule`: one of the above as text, arguments by place; power 1 and end 0 may be left out. `warm_up` is in steps; 0: none. Errors:
  // syntax, with what can be written; invalid_argument for numbers that make no rate.
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

struct DifferentiateOptions {
  std::vector<std::string>
      losses;  // values that are to become small; of several, their sum. One that is no scalar counts with all elements
  // Variables, inputs of the net and other values whose gradients are wanted. Empty: all trainable variables.
  std::vector<std::string> wanted;
  // Variables whose gradient is to be a tensor of their shape though rows are taken from them.
  std::vector<std::string> dense;
  // Extents of symbols, where the net can't be judged with any (64 and more are tried).
  std::vector<std::pair<std::string, int64_t>> symbols;
  bool outputs = false;  // gradients leave the net, in the order of `wanted`
};

// What became of one that was wanted.
struct Gradient {
  std::string of;
  // Names of values; empty, all of them: no loss depends on it.
  std::string dense;            // "<of>.gradient", of the shape and dtype of what it is of
  std::string indices, values;  // of rows: "<of>.gradient.values", and what says where they belong; dense is empty then
  bool any() const { return !dense.empty() || !values.empty(); }
};

struct TrainingOptions {
  std::vector<std::string> losses;  // as DifferentiateOptions has it
  // sgd, momentum, nesterov, adagrad, rmsprop, adam or adamw, and its settings by name: {"momentum", 0.9}, {"weight_decay", 0.0001}.
  // docs/training.md lists them with their defaults.
  std::string optimizer = "sgd";
  std::vector<std::pair<std::string, double>> settings;
  LearningRate learning_rate;
  double clip_value = 0;                                 // gradients to [-it, it]; 0: not
  double clip_norm = 0;                                  // all gradients together to that 2-norm; 0: not
  double average = 0;                                    // decay of averages of the variables ("w.average"), below 1; 0: none are kept
  std::vector<std::string> dense;                        // as DifferentiateOptions has it
  std::vector<std::pair<std::string, int64_t>> symbols;  // as DifferentiateOptions has it
};

struct PredictorOptions {
  std::vector<std::string> inputs;   // values that will be given; empty: the net's inputs that the outputs need
  std::vector<std::string> outputs;  // values that will be made
  std::string name = "predict";      // of the net that is made
  bool average = false;              // with the averages that training kept, in whichever of the nets, in the place of the weights
  // Inputs and outputs by the names above, and what they are called in the net that is made.
  std::vector<std::pair<std::string, std::string>> rename = {};
  // Where its operators run; "": wherever the session does. None: each where it was trained.
  std::optional<std::string> device = {};
};

}  // namespace heddle
