// Options for deriving nets from a net: gradients of losses, a net that trains with them, the part of it that predicts. heddle/training.h
// has the functions that take these options.
//
// Plain values, for one thread at a time. Names are those of values, inputs and variables in the net that is derived from.
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

// The learning rate of a training net: a number that the net computes from its step counter in each run.
//
// With n the number of steps done before, and a warm-up of w steps in which the rate rises linearly from 1/w of its value:
// - constant: rate
// - step(every, gamma): rate x gamma^floor(n / every)
// - exponential(gamma): rate x gamma^n
// - polynomial(steps, power, end): end + (rate - end) x (1 - min(n, steps) / steps)^power
// - cosine(steps, end): end + (rate - end) x (1 + cos(pi x min(n, steps) / steps)) / 2 (Loshchilov and Hutter, ICLR 2017)
// These are PyTorch's StepLR, ExponentialLR, PolynomialLR and CosineAnnealingLR.
class HEDDLE_API LearningRate {
 public:
  // Makes a rate of 0.01 in every step.
  LearningRate() = default;
  // Parses `schedule`: one of the above as text, with arguments by position; power 1 and end 0 may be left out. `warm_up` is in steps; 0:
  // none. Errors: syntax, with what can be written; invalid_argument for numbers that are no valid rate.
  static Result<LearningRate> parse(double rate, std::string_view schedule, int64_t warm_up = 0);
  // True if the rate is the same in every step.
  bool is_constant() const { return varying_.empty() && warm_up_ == 0; }
  double rate() const { return rate_; }
  // Returns a pointwise program (heddle/expression.h) over x0, the number of steps done before.
  std::string program() const;

 private:
  double rate_ = 0.01;
  int64_t warm_up_ = 0;
  std::string varying_;  // over x0; empty: constant
};

struct DifferentiateOptions {
  std::vector<std::string>
      losses;  // values to minimise; the sum if there are several. One that is not a scalar counts with the sum of its elements
  // Variables, inputs of the net and other values whose gradients are requested. Empty: all trainable variables.
  std::vector<std::string> wanted;
  // Variables whose gradient must be a dense tensor of their shape even if rows are gathered from them.
  std::vector<std::string> dense;
  // Extents of symbols, for a net that can not be checked with arbitrary extents (64 and others are tried).
  std::vector<std::pair<std::string, int64_t>> symbols;
  bool outputs = false;  // gradients become outputs of the net, in the order of `wanted`
};

// The gradient of one wanted value.
struct Gradient {
  std::string of;
  // Names of values; all empty: no loss depends on it.
  std::string dense;            // "<of>.gradient", with the shape and dtype of the value
  std::string indices, values;  // rows: "<of>.gradient.values" and the indices of the rows; dense is empty then
  bool any() const { return !dense.empty() || !values.empty(); }
};

struct TrainingOptions {
  std::vector<std::string> losses;  // see DifferentiateOptions
  // The optimizer: sgd, momentum, nesterov, adagrad, rmsprop, adam or adamw. `settings` are its settings by name: {"momentum", 0.9},
  // {"weight_decay", 0.0001}. docs/training.md lists them with their defaults.
  std::string optimizer = "sgd";
  std::vector<std::pair<std::string, double>> settings;
  LearningRate learning_rate;
  double clip_value = 0;           // clips gradients to [-clip_value, clip_value]; 0: off
  double clip_norm = 0;            // scales all gradients together to at most this 2-norm; 0: off
  double average = 0;              // decay of averages of the variables ("w.average"), below 1; 0: no averages are kept
  std::vector<std::string> dense;  // see DifferentiateOptions
  std::vector<std::pair<std::string, int64_t>> symbols;  // see DifferentiateOptions
};

struct PredictorOptions {
  std::vector<std::string> inputs;   // values that the caller gives; empty: the net's inputs that the outputs need
  std::vector<std::string> outputs;  // values to compute
  std::string name = "predict";      // name of the new net
  bool average = false;              // uses the averages that training kept, in any of the nets, instead of the weights
  // New names in the derived net for inputs and outputs above, as pairs of old and new name.
  std::vector<std::pair<std::string, std::string>> rename = {};
  // The device of its operators; "": the session's device. None: the device where each was trained.
  std::optional<std::string> device = {};
};

}  // namespace heddle
