// Implements reductions as launches: ReduceSum and similar operators, ArgMax and ArgMin, the global pools.
#pragma once

#include <cstdint>

#include "generate/launch_plan.h"
#include "generate/reduce/reduce_pass.h"
#include "heddle/op.h"

namespace heddle::cuda {

class ReduceLaunches : public Launches {
 public:
  ReducePasses passes;  // the reductions; set before choose()

  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) final;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const final;
  bool varies() const final { return varies_; }

 protected:
  // Finds the dimensions to reduce. Returns false if they are not known before the run.
  virtual bool knows(const Operands&) const { return true; }
  virtual plugin::Status reduced(const Operands& operands, uint32_t* set) const = 0;

 private:
  bool varies_ = false;
  uint32_t set_ = 0;
};

// The axes are input 1. An absent or empty input means all axes, unless the operator says that it means none.
class AxesReduction : public ReduceLaunches {
 public:
  bool none_when_empty = false, keeps_dims = true;

 private:
  bool knows(const Operands& operands) const final;
  plugin::Status reduced(const Operands& operands, uint32_t* set) const final;
};

class AxisReduction : public ReduceLaunches {
 public:
  int64_t axis = 0;

 private:
  plugin::Status reduced(const Operands& operands, uint32_t* set) const final;
};

// Reduces all dimensions but the first two: a global pool, of the mean, the largest element or, for ReduceKind::power, the p-norm.
class SpatialReduction : public ReduceLaunches {
 public:
  explicit SpatialReduction(ReduceKind kind, int64_t p = 2);

 private:
  plugin::Status reduced(const Operands& operands, uint32_t* set) const final;
};

}  // namespace heddle::cuda
