// Options for nets that are derived from another net: a net with gradients of losses, a net that trains with these gradients, and the part
// of a net that predicts. heddle/training.h has the functions that take these options.
//
// Plain values, for one thread at a time. Names in these options are names of values, inputs and variables of the original net.
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
// In the formulas below, n is the number of steps done before the current step. During a warm-up of w steps the rate that a schedule gives
// is multiplied by (n + 1) / w.
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
  // Parses `schedule`: one of the schedules above as text, with arguments by position; power 1 and end 0 may be left out. `warm_up` is a
  // number of steps; 0: no warm-up. Errors: syntax, with a list of the valid forms; invalid_argument for numbers that are no valid rate.
  static Result<LearningRate> parse(double rate, std::string_view schedule, int64_t warm_up = 0);
  // True if the rate is the same in every step.
  bool is_constant() const { return varying_.empty() && warm_up_ == 0; }
  double rate() const { return rate_; }
  // Returns a pointwise program (heddle/expression.h) over x0, the number of steps done before.
  std::string program() const;

 private:
  double rate_ = 0.01;
  int64_t warm_up_ = 0;
  std::string varying_;  // a program over x0; empty: constant
};

struct DifferentiateOptions {
  // Values to minimise. The loss is the sum of all elements of all these values.
  std::vector<std::string> losses;
  // Variables, inputs of the net and other values whose gradients are requested. Empty: all trainable variables.
  std::vector<std::string> wanted;
  // Variables whose gradient must be a dense tensor with the variable's shape, even if the net only gathers rows from the variable. Without
  // this option, such a gradient has only those rows.
  std::vector<std::string> dense;
  // Extents of symbolic dims, with which the net is checked. If no extent is given for a symbol, the net is checked with arbitrary
  // multiples of 64. Give extents if the net is not valid for these.
  std::vector<std::pair<std::string, int64_t>> symbols;
  bool outputs = false;  // gradients become outputs of the net, in the order of `wanted`
};

// The gradient of one wanted value.
struct Gradient {
  std::string of;
  // Names of values of the new net. All of them are empty if no loss depends on the value `of`.
  std::string dense;  // "<of>.gradient", with the shape and dtype of the value
  // For a gradient that consists of rows (`dense` is empty then). `values`: "<of>.gradient.values", the rows. `indices`: the name of the
  // value that has the indices of the rows. If only one operator of the net gathers rows from the value, this is that operator's input of
  // indices, which keeps its name.
  std::string indices, values;
  bool any() const { return !dense.empty() || !values.empty(); }
};

// A net on several devices, each of which works on a part of the batch (data parallelism), in one process or with the ranks of others. Each
// device has a replica of the operators and variables. A session of such a net declares the communicator
// (SessionOptions::communicators), with these devices in this order.
struct DataParallelOptions {
  std::vector<std::string> devices;  // "sim:0", "sim:1", of one kind; one replica on each. Empty: one, on the host
  int64_t ranks = 1;                 // sessions that train together, each with its own batch
  std::string communicator = "data_parallel";
  std::vector<std::string> whole;  // inputs that each replica gets as they are; all others but scalars are split along axis 0
  // Variables that have no replicas, or beginnings of their names, followed by "*"; the operators that read them are on the host.
  std::vector<std::string> single;
  // BatchNormalization uses the statistics of the whole batch, so that nets with it learn the same for any number of replicas: two more
  // collectives in each, and two in its gradient. Otherwise each replica normalises its part by itself, and the running statistics are the
  // first one's.
  bool combine_statistics = false;
  // Gradients are reduced several at once, as soon as these have that many bytes together. 0: an eighth of all gradients, but 256 KiB to 25
  // MiB.
  int64_t bucket_bytes = 0;
  // Whether anything is asked for.
  bool any() const { return !devices.empty() || ranks > 1; }
};

struct TrainingOptions {
  std::vector<std::string> losses;  // see DifferentiateOptions
  // The optimizer: sgd, momentum, nesterov, adagrad, rmsprop, adam or adamw. `settings` are its settings by name: {"momentum", 0.9},
  // {"weight_decay", 0.0001}. docs/training.md lists them with their defaults.
  std::string optimizer = "sgd";
  std::vector<std::pair<std::string, double>> settings;
  LearningRate learning_rate;
  double clip_value = 0;  // clips gradients to [-clip_value, clip_value]; 0: off
  double clip_norm = 0;   // scales all gradients together to at most this 2-norm; 0: off
  // The net has an output "gradient_norm", f64 []: the 2-norm of all gradients together, before they are clipped. Of a gradient by rows it
  // has the row of each index, before rows of one index are added. Without this, a net has that output if clip_norm is given: after
  // clip_value.
  bool gradient_norm = false;
  double average = 0;              // decay of averages of the variables ("w.average"), below 1; 0: no averages are kept
  std::vector<std::string> dense;  // see DifferentiateOptions
  std::vector<std::pair<std::string, int64_t>> symbols;  // see DifferentiateOptions
  // Losses count as means over the batch: a replica's loss is weighed by the part of the batch that it has. A loss with rows of the batch
  // counts with all its elements.
  DataParallelOptions parallel;
};

struct PredictorOptions {
  std::vector<std::string> inputs;   // values that become the inputs; empty: those inputs of the net that the outputs need
  std::vector<std::string> outputs;  // values to compute
  std::string name = "predict";      // name of the new net
  bool average = false;              // uses the averages that training kept (in any of the nets) instead of the trained variables
  // New names for `inputs` and `outputs` in the new net, as pairs of old and new name.
  std::vector<std::pair<std::string, std::string>> rename = {};
  // The device of all operators of the new net; "": the session's device. None: each operator keeps the device that it has in the original
  // net.
  std::optional<std::string> device = {};
};

}  // namespace heddle
