// One reduction of a tensor, as launches: of an operator's own output, or of what another operator has to know of its rows.
#pragma once

#include <cstdint>
#include <string>

#include "generate/launch_plan.h"
#include "generate/reduce/reduce_source.h"
#include "heddle/op.h"

namespace heddle::cuda {

class ReducePass {
 public:
  ReduceShape shape;   // all but its geometry, before choose()
  double epsilon = 0;  // of kinds that have one
  bool mean_of_nothing_is_zero = false;
  uint32_t input = 0;  // of the node, which is reduced

  // For a tensor like x, of which the dimensions in `set` go, or, where that varies, for smaller ones and any set. Appends the entry
  // `name`.
  plugin::Status choose(const heddle_tensor& x, uint32_t set, bool varies, const std::string& name, KernelSource* source);
  // Into `result`; `shifts`: the offset of what an earlier reduction left. Outputs in scratch are numbered as text/reduce.cuh has it:
  // by the dimensions that stay, in the order in which they are stored.
  void plan(const heddle_tensor& x, uint32_t set, Address result, uint64_t shifts, LaunchPlan* plan) const;

 private:
  uint32_t kernel_ = 0;
};

// A reduction together with the one that leaves its shifts, if it needs some.
class ReducePasses {
 public:
  ReducePass last;
  plugin::Status choose(const heddle_tensor& x, uint32_t set, bool varies, const std::string& name, KernelSource* source);
  void plan(const heddle_tensor& x, uint32_t set, Address result, LaunchPlan* plan) const;
  // What plan() takes of scratch for so many outputs of a reduction that varies; answers where.
  uint64_t take_scratch(int64_t outputs, LaunchPlan* plan) const;

 private:
  ReducePass first_;
};

// The dimensions that stay, as many as outputs of a reduction.
int64_t outputs_of(const heddle_tensor& x, uint32_t set);

}  // namespace heddle::cuda
