// Implements one reduction of a tensor, as launches: for an operator's own output, or for statistics that another operator needs of its
// rows.
#pragma once

#include <cstdint>
#include <string>

#include "generate/launch_plan.h"
#include "generate/reduce/reduce_source.h"
#include "heddle/op.h"

namespace heddle::cuda {

class ReducePass {
 public:
  ReduceShape shape;   // all but its geometry; set before choose()
  double epsilon = 0;  // for kinds that have one
  bool mean_of_nothing_is_zero = false;
  uint32_t input = 0;  // of the node, which is reduced

  // Chooses kernels for a tensor like x whose dimensions in `set` are reduced or, if that varies, for smaller ones and any set. Appends the
  // entry `name`.
  plugin::Status choose(const heddle_tensor& x, uint32_t set, bool varies, const std::string& name, KernelSource* source);
  // Plans the launches that write `result`; `shifts` is the offset of the results of an earlier reduction. Outputs in scratch are numbered
  // as in text/reduce.cuh: by the dimensions that are kept, in the order in which they are stored.
  void plan(const heddle_tensor& x, uint32_t set, Address result, uint64_t shifts, LaunchPlan* plan) const;

 private:
  uint32_t kernel_ = 0;
};

// A reduction together with the one that computes its shifts, if it needs some.
class ReducePasses {
 public:
  ReducePass last;
  plugin::Status choose(const heddle_tensor& x, uint32_t set, bool varies, const std::string& name, KernelSource* source);
  void plan(const heddle_tensor& x, uint32_t set, Address result, LaunchPlan* plan) const;
  // Takes the scratch that plan() takes for that many outputs of a reduction that varies; returns its offset.
  uint64_t take_scratch(int64_t outputs, LaunchPlan* plan) const;

 private:
  ReducePass first_;
};

// Returns the number of outputs of a reduction: the product of the dimensions that are kept.
int64_t outputs_of(const heddle_tensor& x, uint32_t set);

}  // namespace heddle::cuda
