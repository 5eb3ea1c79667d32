// Implements the arithmetic of AllReduce, Reduce and ReduceScatter on one device: the elements of all parts of a group, of which the others
// have been copied there, are combined (text/combine.cuh).
#pragma once

#include <cstdint>

#include "generate/launch_plan.h"
#include "shared/collective_reduction.h"

namespace heddle::cuda {

class CombineLaunches final : public Launches {
 public:
  // Set before choose().
  operators::Reduction reduction = operators::Reduction::sum;
  int64_t parts = 1, self = 0;

  // Input 0 is this part's tensor; input 1 those of the others, one after the other. Output 0 may be input 0.
  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) override;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const override;

 private:
  void parameters(const Operands& operands, ParameterWriter& writer) const;
};

}  // namespace heddle::cuda
