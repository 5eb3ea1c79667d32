// Implements NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss as launches: statistics of each position's scores, the losses and their
// sum (text/loss.cuh), and the logarithms of probabilities if they are an output.
#pragma once

#include <cstdint>

#include "generate/launch_plan.h"
#include "generate/reduce/reduce_pass.h"
#include "generate/rows/row_elements.h"
#include "heddle/op.h"

namespace heddle::cuda {

enum class LossReduction : uint8_t { none, mean, sum };

class LossLaunches : public Launches {
 public:
  bool softmax = false, has_ignored = false;  // set before choose()
  int64_t ignored = 0;
  LossReduction reduction = LossReduction::mean;

  // The inputs are scores, labels, and weights if any.
  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) final;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const final;

 private:
  struct Numbers {
    int64_t count = 0, classes = 1, inner = 1, parts = 0, part = 0;
    uint64_t known = 0, partial = 0;
  };
  void parameters(const Numbers& numbers, ParameterWriter& writer) const;
  void write(KernelSource* source) const;

  heddle_dtype dtype_ = HEDDLE_DTYPE_NONE, labels_ = HEDDLE_I64;
  bool wide_ = false, weights_ = false;
  uint32_t kernel_ = 0;
  ReducePasses known_;
  RowElements logarithms_;
};

}  // namespace heddle::cuda
