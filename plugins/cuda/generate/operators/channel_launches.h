// Implements normalisations that depend only on each element's channel, as launches (text/channels.cuh): BatchNormalization for inference,
// LRN.
#pragma once

#include <cstdint>
#include <string>

#include "generate/launch_plan.h"
#include "generate/pointwise/fused_expression.h"
#include "heddle/op.h"

namespace heddle::cuda {

// The common part of both: one kernel over the elements as they are stored.
class ChannelLaunches : public Launches {
 public:
  FusedExpression epilogue;  // set before choose()

  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) final;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const final;

 protected:
  struct Numbers {
    int64_t count = 0, inner = 1, channels = 1;
  };
  // Returns the text of F's members other than load and store, and of what the kernel calls.
  virtual std::string members() const = 0;
  virtual const char* walk() const = 0;
  virtual void parameters(const Numbers& numbers, ParameterWriter& writer) const = 0;
  // Reads the other inputs, and decides whether several elements are read at once.
  virtual void look(const Operands&) {}
  virtual bool takes_packs() const = 0;

 private:
  Numbers numbers_of(const heddle_tensor& x) const;
  void all_parameters(const Numbers& numbers, ParameterWriter& writer) const;

  heddle_dtype dtype_ = HEDDLE_DTYPE_NONE;
  int width_ = 1;
  bool wide_ = false, one_channel_ = false;
};

// Computes (x - mean) * scale / sqrt(variance + epsilon) + bias; the inputs are x, scale, bias, mean and variance.
class BatchLaunches : public ChannelLaunches {
 public:
  double epsilon = 0;  // set before choose()

 private:
  std::string members() const final;
  const char* walk() const final { return "normalize_batch"; }
  void parameters(const Numbers& numbers, ParameterWriter& writer) const final;
  void look(const Operands& operands) final;
  bool takes_packs() const final { return true; }

  heddle_dtype scales_ = HEDDLE_DTYPE_NONE, statistics_ = HEDDLE_DTYPE_NONE;
};

// Computes x / (bias + alpha / size * sum of squares of `size` neighbouring channels)^beta.
class LocalLaunches : public ChannelLaunches {
 public:
  int64_t size = 1;  // set before choose()
  double alpha = 0, beta = 0, bias = 0;

 private:
  std::string members() const final { return {}; }
  const char* walk() const final { return "normalize_locally"; }
  void parameters(const Numbers& numbers, ParameterWriter& writer) const final;
  bool takes_packs() const final { return false; }
};

}  // namespace heddle::cuda
